//! What one end counted in one interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dialect::{FlowSampleExtension, SampleExtension};
use crate::limits::Cause;
use crate::media::FrameCounts;

/// The end that a figure comes from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The end that asked for the measurement.
    Client,
    /// The end that serves it.
    Server,
}

impl Role {
    /// What sentences call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Bytes and the calls that moved them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Bytes of payload.
    pub bytes: u64,
    /// System calls that moved at least one byte; absent where a dialect's peer doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
}

impl Traffic {
    /// Both added up; calls only where both are known.
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            calls: self.calls.zip(other.calls).map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// What one end counted in one interval, over all its flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// The version of this document's format: `linerate.sample/1`.
    pub schema: String,
    /// The end that counted.
    pub role: Role,
    /// 0 for the first interval.
    pub index: u32,
    /// The interval's start, on this end's monotonic clock, since this end's load began.
    pub from_ns: u64,
    /// The interval's end, likewise.
    pub to_ns: u64,
    /// The interval's end (UTC, nanoseconds since 1970, this end's clock).
    pub utc_ns: i64,
    /// Whether the interval belongs to the warm-up and is left out of every sum.
    #[serde(default)]
    pub warm_up: bool,
    /// Sent by this end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Traffic>,
    /// Received by this end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Traffic>,
    /// Transactions completed (rr, client).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    /// Mean latency of those transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_mean_ns: Option<f64>,
    /// Latencies of those that began after the warm-up, as [`IntervalHistogram`](crate::histogram::IntervalHistogram)
    /// writes them; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_hdr: Option<String>,
    /// Datagrams (UDP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramCounts>,
    /// The flows one by one; the first [`Sample::MAX_FLOWS`] where there are more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowSample>,
    /// What it cost this end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSample>,
    /// What limited what this end sent, as far as the interval alone tells: of the flow that stands for its direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Cause>,
    /// What only the run's dialect has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<SampleExtension>,
}

impl Sample {
    /// The name and version of the sample's JSON format.
    pub const SCHEMA: &'static str = "linerate.sample/1";
    /// The most flows that a sample lists one by one.
    pub const MAX_FLOWS: usize = 64;

    /// The first interval of an end, in which nothing has been counted yet.
    pub fn nothing(role: Role) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            role,
            index: 0,
            from_ns: 0,
            to_ns: 0,
            utc_ns: 0,
            warm_up: false,
            sent: None,
            received: None,
            transactions: None,
            latency_mean_ns: None,
            latency_hdr: None,
            datagrams: None,
            flows: Vec::new(),
            cpu: None,
            limit: None,
            extension: None,
        }
    }
}

/// One flow in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSample {
    /// The flow's number, the same at both ends.
    pub flow: u32,
    /// Bytes that this end sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Bytes that this end received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// What the kernel says of the connection at the interval's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpStatus>,
    /// What the QUIC connection says of its path at the interval's end; flows of one connection have
    /// the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<Box<QuicStatus>>,
    /// How full the buffer of the socket was at the interval's end, from 0 to 1, of what this end had sent and its
    /// interface had not taken (UDP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_ratio: Option<f64>,
    /// Datagrams of the interval, where they are counted flow by flow (iperf3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Box<DatagramCounts>>,
    /// Interarrival jitter (RFC 3550) at the interval's end, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// What only the run's dialect has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<FlowSampleExtension>,
}

/// The kernel's TCP_INFO (tcp(7), linux/tcp.h), as far as this kernel has it. Counters run from
/// the connection's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpStatus {
    /// Smoothed round-trip time.
    pub rtt_us: u32,
    /// Its variation.
    pub rtt_var_us: u32,
    /// Least round-trip time seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<u32>,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Largest segment sent.
    pub mss_bytes: u32,
    /// The path's MTU.
    pub pmtu_bytes: u32,
    /// Segments sent again.
    pub retransmitted_segments: u32,
    /// The kernel's estimate of the delivery rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_rate_bps: Option<u64>,
    /// Time with unacknowledged data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_us: Option<u64>,
    /// Part of it held up by the peer's receive window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd_limited_us: Option<u64>,
    /// Part of it held up by the local send buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_limited_us: Option<u64>,
    /// The peer's receive window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snd_wnd_bytes: Option<u32>,
    /// Times that reordering was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering_seen: Option<u32>,
    /// Bytes that this end has written and not sent yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notsent_bytes: Option<u32>,
    /// Bytes that have come and this end has not read yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_queue_bytes: Option<u32>,
    /// Segments sent and not acknowledged yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unacked_segments: Option<u32>,
}

impl TcpStatus {
    /// The congestion window.
    pub fn cwnd_bytes(&self) -> u64 {
        u64::from(self.cwnd_segments) * u64::from(self.mss_bytes)
    }

    /// About so many bytes are sent and not acknowledged yet: segments times the largest segment.
    pub fn in_flight_bytes(&self) -> Option<u64> {
        Some(u64::from(self.unacked_segments?) * u64::from(self.mss_bytes))
    }
}

/// What a QUIC connection says of its path (RFC 9002, section 5 and appendix A and B). Counters run
/// from the connection's start and are of this end's sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuicStatus {
    /// Smoothed round-trip time.
    pub rtt_us: u32,
    /// Least round-trip time seen.
    pub min_rtt_us: u32,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Largest UDP payload sent.
    pub mtu_bytes: u32,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets held to be lost.
    pub lost_packets: u64,
    /// Times that the congestion window was made smaller; with BBR, which answers later, that packets
    /// were lost or marked which had left since the time before.
    pub congestion_events: u64,
    /// Part of them because the peer had seen marks of explicit congestion notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_events: Option<u64>,
    /// Bytes of the packets held to be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
    /// Bytes sent and neither acknowledged nor held to be lost, when the peer last acknowledged
    /// something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_bytes: Option<u64>,
    /// UDP datagrams received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_datagrams: Option<u64>,
    /// Part of them that a router on the path had marked "congestion experienced" (RFC 3168, section 5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_ce_datagrams: Option<u64>,
    /// ACK frames sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_acks: Option<u64>,
    /// ACK frames received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_acks: Option<u64>,
    /// Of a stream that sends in bulk: at least so many of its bytes the peer has acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_bytes: Option<u64>,
    /// DATA_BLOCKED frames sent: times that the peer's limit of all streams held the connection (RFC 9000,
    /// section 19.12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_blocked: Option<u64>,
    /// STREAM_DATA_BLOCKED frames sent: times that its limit of one stream held that stream (section 19.13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_data_blocked: Option<u64>,
    /// What the connection waited for before it could send more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<QuicWaits>,
    /// Datagrams, or with receive offload trains of datagrams, that came to this end's UDP socket since it was opened
    /// and were dropped because its buffer was full. Connections that share the socket have the same count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u64>,
}

/// How long a QUIC connection waited for what. At each moment it waits for one of these; the times begin with its
/// first packet, and add up to its age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QuicWaits {
    /// Its turn in the thread that carries it, or room in the UDP socket's buffer.
    pub turn_ns: u64,
    /// Packets were spaced out, by the pacer of the congestion control or for a rate that was asked for.
    pub pacing_ns: u64,
    /// The congestion window was full.
    pub congestion_ns: u64,
    /// The peer allowed no more bytes, of the connection or of its only sending stream. Where the connection had several
    /// sending streams at a time, those that limits of their own held are part of `application_ns`, and this is absent if
    /// the connection's limit held it never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_control_ns: Option<u64>,
    /// There was nothing to send.
    pub application_ns: u64,
}

impl QuicWaits {
    /// All times, each once; `None`: not known.
    pub fn times(self) -> [Option<u64>; 5] {
        let Self { turn_ns, pacing_ns, congestion_ns, flow_control_ns, application_ns } = self;
        [Some(turn_ns), Some(pacing_ns), Some(congestion_ns), flow_control_ns, Some(application_ns)]
    }

    /// Of all times, in the order of [`QuicWaits::times`].
    pub fn of_times(times: [Option<u64>; 5]) -> Self {
        let [turn, pacing, congestion, flow_control_ns, application] = times;
        Self {
            turn_ns: turn.unwrap_or(0),
            pacing_ns: pacing.unwrap_or(0),
            congestion_ns: congestion.unwrap_or(0),
            flow_control_ns,
            application_ns: application.unwrap_or(0),
        }
    }

    /// What was waited since an earlier reading.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let mut times = self.times();
        for (now, before) in times.iter_mut().zip(before.times()) {
            *now = now.map(|now| now.saturating_sub(before.unwrap_or(0)));
        }
        Self::of_times(times)
    }

    /// All times together.
    pub fn sum_ns(self) -> u64 {
        self.times().into_iter().flatten().fold(0, u64::saturating_add)
    }
}

/// Counts of datagrams. A sender knows `sent` and `refused`, a receiver the others; a document of
/// both ends has all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DatagramCounts {
    /// Accepted by the sender's stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Refused by the sender's own stack (ENOBUFS and the like): never on the path, so not lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Different datagrams received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Sent and never received, local socket drops included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Runs of lost datagrams with numbers beside each other: one cause may lose many. In a sample those that ended
    /// in its interval, of the measured part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_events: Option<u64>,
    /// Received again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
    /// Received after one that was sent later (RFC 4737, section 3.3, Type-P-Reordered).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Received so far behind the newest that a first arrival can't be told from a second one;
    /// counted as lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Arrived at the receiving host and dropped by its socket because the buffer was full
    /// (the counter of SO_RXQ_OVFL): part of `lost` that the path is not to blame for. With
    /// receive offload the kernel counts trains of datagrams; each dropped one is taken to have
    /// had as many as the mean of those received. 0 is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_by_socket: Option<u64>,
    /// The frames that the datagrams of a media stream make up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FrameCounts>,
    /// Runs of lost datagrams with numbers beside each other, before the last frame that arrived (media).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_bursts: Option<u64>,
    /// Datagrams of the longest of these runs; 0: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_loss_burst: Option<u64>,
}

impl DatagramCounts {
    /// Both added up, field by field, and of the longest bursts the longer one; a field that one of
    /// them lacks is the other's.
    pub fn plus(self, other: Self) -> Self {
        fn merge<T>(a: Option<T>, b: Option<T>, merge: impl Fn(T, T) -> T) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(merge(a, b)),
                (a, b) => a.or(b),
            }
        }
        let add = |a, b| merge(a, b, u64::saturating_add);
        Self {
            sent: add(self.sent, other.sent),
            refused: add(self.refused, other.refused),
            received: add(self.received, other.received),
            lost: add(self.lost, other.lost),
            loss_events: add(self.loss_events, other.loss_events),
            duplicated: add(self.duplicated, other.duplicated),
            reordered: add(self.reordered, other.reordered),
            late: add(self.late, other.late),
            dropped_by_socket: add(self.dropped_by_socket, other.dropped_by_socket),
            frames: merge(self.frames, other.frames, FrameCounts::plus),
            loss_bursts: add(self.loss_bursts, other.loss_bursts),
            longest_loss_burst: merge(self.longest_loss_burst, other.longest_loss_burst, u64::max),
        }
    }
}

/// CPU time of one end in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSample {
    /// Of the threads that carry the flows.
    pub load: CpuSeconds,
    /// Seconds that these threads were ready to run and had no processor, all together; absent where the kernel doesn't
    /// count them (/proc/TID/schedstat).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    /// Of the machine, processor by processor, everything that ran on it included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine: Vec<MachineCpu>,
    /// Interrupts the machine served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<u64>,
}

/// CPU seconds of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSeconds {
    /// In user mode.
    pub user_s: f64,
    /// In the kernel on behalf of the threads.
    pub system_s: f64,
}

impl CpuSeconds {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self { user_s: self.user_s + other.user_s, system_s: self.system_s + other.system_s }
    }

    /// What was used since an earlier reading, in hundredths of a second, in which the kernel counts; never negative.
    pub fn since(self, earlier: Self) -> Self {
        let less = |now: f64, before: f64| ((now - before).max(0.0) * 100.0).round() / 100.0;
        Self {
            user_s: less(self.user_s, earlier.user_s),
            system_s: less(self.system_s, earlier.system_s),
        }
    }
}

/// CPU seconds of one processor (/proc/stat, proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineCpu {
    /// The processor's number.
    pub cpu: u32,
    /// In user mode, nice included.
    pub user_s: f64,
    /// In the kernel.
    pub system_s: f64,
    /// Serving hardware interrupts.
    pub irq_s: f64,
    /// Serving software interrupts, the network stack's receive side among them.
    pub softirq_s: f64,
    /// Taken by the hypervisor.
    pub steal_s: f64,
    /// Idle or waiting for I/O.
    pub idle_s: f64,
}

/// Counters that are read this much later than an interval's end, or less, differ by how coarse they are.
const READ_LATE_S: f64 = 0.02;

impl CpuSample {
    /// Makes it fit an interval: counters are read a little later than the interval ends, and count in hundredths of a
    /// second. No machine is busy for longer than there is time.
    pub fn fit(&mut self, time_ns: u64) {
        let time_s = time_ns as f64 / 1e9;
        let read_s = self.machine.iter().map(MachineCpu::all_s).fold(0.0, f64::max);
        let used_s = self.load.user_s + self.load.system_s;
        let late = if read_s > time_s + READ_LATE_S { time_s / read_s } else { 1.0 };
        let most_s = time_s * self.machine.len() as f64;
        let share = if most_s > 0.0 && used_s * late > most_s { most_s / used_s } else { late };
        self.load.user_s *= share;
        self.load.system_s *= share;
        self.wait_s = self.wait_s.map(|wait_s| wait_s * late);
        fit_machine(&mut self.machine, time_ns);
    }
}

impl MachineCpu {
    /// All of its states together: the time that was read.
    pub fn all_s(&self) -> f64 {
        let Self { cpu: _, user_s, system_s, irq_s, softirq_s, steal_s, idle_s } = *self;
        user_s + system_s + irq_s + softirq_s + steal_s + idle_s
    }
}

/// Makes what processors did fit a time: the states of one that was read for longer keep their shares.
pub fn fit_machine(cpus: &mut [MachineCpu], time_ns: u64) {
    let time_s = time_ns as f64 / 1e9;
    for cpu in cpus.iter_mut().filter(|cpu| time_s > 0.0 && cpu.all_s() > time_s) {
        let share = time_s / cpu.all_s();
        let MachineCpu { cpu: _, user_s, system_s, irq_s, softirq_s, steal_s, idle_s } = cpu;
        for state_s in [user_s, system_s, irq_s, softirq_s, steal_s, idle_s] {
            *state_s *= share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_machine_is_busy_for_longer_than_there_is_time() {
        let busy = |cpu| MachineCpu { cpu, user_s: 0.3, idle_s: 0.1, ..MachineCpu::default() };
        let mut sample = CpuSample {
            load: CpuSeconds { user_s: 0.4, system_s: 0.2 },
            wait_s: Some(0.2),
            machine: vec![busy(0), busy(1)],
            interrupts: None,
        };
        // 400 ms were read of an interval of 100 ms.
        sample.fit(100_000_000);
        assert!((sample.machine[0].user_s - 0.075).abs() < 1e-12);
        assert!((sample.machine[1].all_s() - 0.1).abs() < 1e-12);
        assert!((sample.load.user_s + sample.load.system_s - 0.15).abs() < 1e-12);
        assert!((sample.wait_s.unwrap() - 0.05).abs() < 1e-12);
        let before = sample.clone();
        sample.fit(100_000_000);
        assert!((sample.load.user_s - before.load.user_s).abs() < 1e-12);
    }
}
