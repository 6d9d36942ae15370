//! What one end counted in all, warm-up left out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dialect::{EndExtension, FlowExtension};
use crate::one_way::Transit;
use crate::plan::{Direction, Handshake, Workload};
use crate::sample::{CpuSeconds, DatagramCounts, MachineCpu, QuicStatus, Role, TcpStatus, Traffic};

mod disturbance;
mod unlisted;
mod waiting;

pub use disturbance::{
    Disturbance, GAP_NS, LATE_NS, OwnQueue, Quota, Standstills, ThreadDemand, WAKEUP_DELAY_NS,
};
pub use unlisted::{FirstWrong, FlowSum, Shares, Span, Unlisted};
pub use waiting::Waiting;

/// What one end counted from the end of the warm-up to the end of its load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndReport {
    /// The end that counted.
    pub role: Role,
    /// The machine it ran on.
    pub host: HostFacts,
    /// The flows, in the order of their numbers; the first [`EndReport::MAX_FLOWS`] where there
    /// are more.
    pub flows: Vec<FlowReport>,
    /// The other flows, added up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<Unlisted>,
    /// Measured time of this end, all flows together.
    pub elapsed_ns: u64,
    /// The time that all flows to this end shared, and what arrived in it; absent where there was none, or where the
    /// dialect or the peer doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_time: Option<SharedTime>,
    /// CPU of the threads that carried the flows; absent where the dialect or the peer doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSeconds>,
    /// How the threads that carried the flows waited; absent where the dialect or the peer doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// What disturbed this end; absent where the dialect or the peer doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Box<Disturbance>>,
    /// CPU of the whole machine in that time, processor by processor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_cpu: Vec<MachineCpu>,
    /// The latency of every transaction: an HDR histogram in nanoseconds (V2 format, base64).
    /// In a closed loop it counts from the real send, by a schedule from the intended one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_hdr: Option<String>,
    /// By a schedule: the same from the real send, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_hdr: Option<String>,
    /// connect: from the first packet of a connection until it stood, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub establishment_hdr: Option<String>,
    /// connect: from the first packet of a connection to the first byte of its response, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_hdr: Option<String>,
    /// Media, receiver: how much longer each datagram was on its way than the fastest, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_variation_hdr: Option<String>,
    /// Media, sender: from when each frame was due until it was sent, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_delay_hdr: Option<String>,
    /// connect over QUIC, client: how the measured connections agreed on their keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<Handshakes>,
    /// Failures under load, counted by kind: `reset`, `refused`, `timed_out`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// What the reader of the result must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What only the run's dialect has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<EndExtension>,
}

impl EndReport {
    /// The most flows that a report lists one by one.
    pub const MAX_FLOWS: usize = 1000;

    /// Whether what this end says of lost datagrams holds, whatever the other end has sent.
    pub(crate) fn knows_loss(&self) -> bool {
        matches!(self.extension, Some(EndExtension::Iperf3(_)))
    }

    /// Whether this end's conductor woke up later than [`LATE_NS`].
    pub(crate) fn stood_still(&self) -> bool {
        let lateness = self.disturbance.as_ref().and_then(|disturbance| disturbance.lateness);
        lateness.is_some_and(|late| late.longest_ns > LATE_NS)
    }

    /// How late this end's conductor woke up, altogether: what is longer than [`WAKEUP_DELAY_NS`], or, of an end that doesn't
    /// count it, than [`LATE_NS`].
    pub(crate) fn wakeup_delay_ns(&self) -> Option<u64> {
        let disturbance = self.disturbance.as_ref()?;
        let long_ones = disturbance.lateness.map(|late| late.total_ns);
        disturbance.wakeup_delay_ns.or(long_ones)
    }

    /// Adds up the flows that are too many to be listed.
    pub fn limit_flows(&mut self, workload: &Workload) {
        if self.flows.len() <= Self::MAX_FLOWS {
            return;
        }
        let mut unlisted = self.unlisted.take().unwrap_or_default();
        for direction in [Direction::Up, Direction::Down] {
            let belongs = |flow: &&FlowReport| workload.flow_direction(flow.flow) == direction;
            let mut span = Span::default();
            for flow in self.flows.iter().filter(belongs) {
                span.cover(Span { from_ns: flow.from_ns, to_ns: flow.to_ns });
            }
            for flow in self.flows.iter().skip(Self::MAX_FLOWS).filter(belongs) {
                unlisted.of_mut(direction).add(workload, flow, span);
            }
        }
        self.flows.truncate(Self::MAX_FLOWS);
        self.unlisted = Some(unlisted);
    }

    /// The report of an end that has counted nothing yet.
    pub fn nothing(role: Role) -> Self {
        Self {
            role,
            host: HostFacts::default(),
            flows: Vec::new(),
            unlisted: None,
            elapsed_ns: 0,
            shared_time: None,
            cpu: None,
            waiting: None,
            disturbance: None,
            machine_cpu: Vec::new(),
            latency_hdr: None,
            service_hdr: None,
            establishment_hdr: None,
            first_byte_hdr: None,
            delay_variation_hdr: None,
            send_delay_hdr: None,
            handshakes: None,
            errors: BTreeMap::new(),
            notes: Vec::new(),
            extension: None,
        }
    }
}

/// A time in which all flows of a stream ran that come to an end, and what arrived in it.
///
/// Flows end one after the other: what sockets and the path's queues hold when the senders' time is up arrives at the
/// pace of the flows that are left. So a total over the time of the last flow says little of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedTime {
    /// When the first byte of any flow arrived that counts, since this end's load began.
    pub from_ns: u64,
    /// When the time of the load was over, counted from there, or the first flow had ended, whichever came first.
    pub to_ns: u64,
    /// Payload of all flows that arrived in between.
    pub bytes: u64,
}

/// How connections agreed on their keys (RFC 8446, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Handshakes {
    /// With a certificate.
    pub full: u64,
    /// With a ticket of an earlier connection.
    pub resumed: u64,
    /// Likewise, the request in the first packets (0-RTT), which the server took.
    pub early: u64,
}

impl Handshakes {
    /// One more.
    pub fn record(&mut self, handshake: Handshake) {
        let count = match handshake {
            Handshake::Full => &mut self.full,
            Handshake::Resumed => &mut self.resumed,
            Handshake::Early => &mut self.early,
        };
        *count = count.saturating_add(1);
    }

    /// Both added up.
    pub fn plus(self, other: Self) -> Self {
        Self {
            full: self.full.saturating_add(other.full),
            resumed: self.resumed.saturating_add(other.resumed),
            early: self.early.saturating_add(other.early),
        }
    }
}

/// What one flow did at one end, warm-up left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowReport {
    /// The flow's number, the same at both ends.
    pub flow: u32,
    /// Sent by this end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Traffic>,
    /// Received by this end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Traffic>,
    /// Start of the flow's measured time on this end's monotonic clock, since this end's load
    /// began: first byte received or first send, or the end of the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
    /// Its end: last byte received or last send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
    /// Transactions completed (rr, client).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    /// Transactions given up because no response came in time (UDP rr, client), or because their
    /// flow ended before it came (many at once or by a schedule).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions_lost: Option<u64>,
    /// Transactions that were due by the schedule and never begun (client).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions_unsent: Option<u64>,
    /// Datagrams (UDP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramCounts>,
    /// Interarrival jitter (RFC 3550, section 6.4.1 and appendix A.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// How long datagrams were on their way by the two ends' clocks (native, receiver).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transit: Option<Box<Transit>>,
    /// Segments sent again in the measured time (TCP): another dialect counts them itself, or its peer tells this alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// What the kernel said of the connection at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpStatus>,
    /// What stood in the socket's queues (TCP, TLS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<SocketQueues>,
    /// What the QUIC connection said of its path at the flow's end. Packets are counted from the
    /// end of the warm-up on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicStatus>,
    /// What checking every byte found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// The socket as the kernel granted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketFacts>,
    /// How the flow ended, where not as planned: `reset`, `closed_early`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What only the run's dialect has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<FlowExtension>,
    /// QUIC: the code that the peer's application reset or stopped the flow's stream with, or closed its
    /// connection with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<u64>,
}

/// What stood in a TCP socket's queues in the measured part: the medians of looks every 50 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketQueues {
    /// Bytes written and not sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_bytes: Option<u64>,
    /// Bytes that had come and were not read yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_queue_bytes: Option<u64>,
}

/// What checking every byte of a flow found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Bytes checked and found right.
    pub verified_bytes: u64,
    /// Bytes found wrong.
    pub wrong_bytes: u64,
    /// Offset in the flow of the first wrong byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_wrong_offset: Option<u64>,
    /// Length of the run of wrong bytes that starts there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_wrong_extent_bytes: Option<u64>,
    /// Every run of wrong bytes, in the order in which they were found, the first
    /// [`WRONG_RUNS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong_runs: Vec<WrongRun>,
}

/// The most runs of wrong bytes that a flow's report lists.
pub const WRONG_RUNS_MAX: usize = 256;

/// Wrong bytes beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrongRun {
    /// Offset in the flow of the first.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
}

/// A socket as the kernel granted it. What isn't known is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketFacts {
    /// This end's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// The other end's. A socket that isn't connected has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The congestion control in use (TCP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// SO_SNDBUF as granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u32>,
    /// SO_RCVBUF as granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u32>,
    /// TCP_MAXSEG as agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// The longest IP packet that the route to the peer carries, as far as the kernel knows (UDP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_mtu_bytes: Option<u32>,
    /// Segmentation offload in use when sending (UDP GSO).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso: Option<bool>,
    /// Receive offload in use (UDP GRO).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro: Option<bool>,
    /// What seals records or packets, where the flow has keys: `aes128`, `aes256` or `chacha20`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The machine and program of one end. linerate tells all of it; what another program doesn't tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostFacts {
    /// linerate's version, or what another dialect's peer calls its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The host's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// Kernel name and release.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    /// Processor architecture.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// Processor model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Processors in use by the kernel.
    #[serde(skip_serializing_if = "is_zero")]
    pub cpus_online: u32,
    /// The processors that the load's threads were found on when they ended, in the order of the
    /// threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran_on_cpus: Vec<u32>,
    /// One-minute load average before the load began: what else the machine was doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_average_1m: Option<f64>,
}
