//! Figures that only netperf has, and one end of its tests as netperf sees it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EndExtension, FlowExtension};
use crate::histogram::Histogram;
use crate::report::{EndReport, FlowReport};

/// One end in all. What the client calculates of a test that is made several times is the mean of all iterations
/// in the run's reports, and of its own iteration in an earlier iteration's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndTotals {
    /// The result as netperf prints it (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    /// Its unit, by netperf's name: `10^6bits/s`, `Trans/s`, ... (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_units: Option<String>,
    /// How busy the machine's processors were, in percent of all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_util_percent: Option<f64>,
    /// Service demand: microseconds of a processor per KB (1024 bytes) or per transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_demand_us: Option<f64>,
    /// Tests that the means are of (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// The result of each of several iterations, in their order (client).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub iteration_throughputs: Vec<f64>,
    /// Width of the confidence interval that was reached, percent of the mean result (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_width_percent: Option<f64>,
    /// Processor use in this iteration, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuUse>,
    /// Bulk: how long each call took, where that was asked for. An HDR histogram in nanoseconds (V2 format, base64).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_times_hdr: Option<String>,
    /// The client's address of the data connection. Of connections that come and go, what was asked for;
    /// absent where neither an address nor a port was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The server's address of the data connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
}

/// How busy one machine was during a test: all its processors and everything that ran on them. Where both ends
/// are on one machine, what the threads of this end's test took of it. Shares are in percent of one processor's
/// time, as the mean over all processors; a share that isn't known is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuUse {
    /// Everything but idle.
    pub util_percent: f64,
    /// In user mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_percent: Option<f64>,
    /// In the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_percent: Option<f64>,
    /// Waiting for I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iowait_percent: Option<f64>,
    /// Serving hardware interrupts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irq_percent: Option<f64>,
    /// Serving software interrupts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub softirq_percent: Option<f64>,
    /// The busiest processor's share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_percent: Option<f64>,
    /// The busiest processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_cpu: Option<u32>,
    /// Processors; 0, which documents leave out: not told.
    #[serde(skip_serializing_if = "is_zero")]
    pub cpus: u32,
    /// How it was measured: netperf's letter.
    pub method: String,
}

/// One connection, or all of those that come and go, in all. What wasn't asked for or isn't known is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowTotals {
    /// Bytes of a send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_bytes: Option<u32>,
    /// Bytes of a receive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_bytes: Option<u32>,
    /// Buffers of the send ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_width: Option<u32>,
    /// Buffers of the receive ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_width: Option<u32>,
    /// SO_SNDBUF.
    #[serde(skip_serializing_if = "BufferSizes::is_unknown")]
    pub send_buffer: BufferSizes,
    /// SO_RCVBUF.
    #[serde(skip_serializing_if = "BufferSizes::is_unknown")]
    pub receive_buffer: BufferSizes,
    /// Whether TCP_NODELAY is in force.
    #[serde(skip_serializing_if = "is_false")]
    pub no_delay: bool,
    /// SO_PRIORITY as set; -2: refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The type-of-service byte as set, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<i32>,
    /// Sends of one interval of a pace.
    #[serde(skip_serializing_if = "is_zero")]
    pub interval_burst: u32,
    /// The interval.
    #[serde(skip_serializing_if = "is_zero")]
    pub interval_us: u32,
    /// Transactions that the server counted (server).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
}

/// A socket buffer's sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BufferSizes {
    /// Asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u32>,
    /// As the kernel had it when the socket was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_start: Option<u32>,
    /// As the kernel had it at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_end: Option<u32>,
}

impl BufferSizes {
    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// One end of a netperf test, read from its report.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    report: &'a EndReport,
}

impl<'a> End<'a> {
    /// The end of this report.
    pub fn of(report: &'a EndReport) -> Self {
        Self { report }
    }

    fn flow(&self) -> Option<&'a FlowReport> {
        self.report.flows.first()
    }

    /// The figures of the end that only netperf has.
    pub fn totals(&self) -> Option<&'a EndTotals> {
        match &self.report.extension {
            Some(EndExtension::Netperf(totals)) => Some(totals),
            _ => None,
        }
    }

    /// The figures of its connection that only netperf has.
    pub fn settings(&self) -> FlowTotals {
        match self.flow().and_then(|flow| flow.extension.as_ref()) {
            Some(FlowExtension::Netperf(totals)) => *totals,
            _ => FlowTotals::default(),
        }
    }

    /// Bytes that it sent.
    pub fn bytes_sent(&self) -> u64 {
        self.flow().and_then(|flow| flow.sent).map_or(0, |sent| sent.bytes)
    }

    /// Bytes that it received.
    pub fn bytes_received(&self) -> u64 {
        self.flow().and_then(|flow| flow.received).map_or(0, |received| received.bytes)
    }

    /// Bytes that it sent and received.
    pub fn bytes_moved(&self) -> u64 {
        self.bytes_sent().saturating_add(self.bytes_received())
    }

    /// Its calls that sent; over UDP, the datagrams that it sent.
    pub fn send_calls(&self) -> u64 {
        let datagrams = self.flow().and_then(|flow| flow.datagrams?.sent);
        datagrams.or(self.flow().and_then(|flow| flow.sent?.calls)).unwrap_or(0)
    }

    /// Its calls that received; over UDP, the datagrams that came.
    pub fn receive_calls(&self) -> u64 {
        let datagrams = self.flow().and_then(|flow| flow.datagrams?.received);
        datagrams.or(self.flow().and_then(|flow| flow.received?.calls)).unwrap_or(0)
    }

    /// Sends that its stack refused (UDP).
    pub fn refused_sends(&self) -> u64 {
        self.flow().and_then(|flow| flow.datagrams?.refused).unwrap_or(0)
    }

    /// Transactions that it completed.
    pub fn transactions(&self) -> u64 {
        let counted = self.flow().and_then(|flow| flow.transactions);
        counted.or(self.settings().transactions).unwrap_or(0)
    }

    /// Transactions given up because no response came in time.
    pub fn transactions_lost(&self) -> u64 {
        self.flow().and_then(|flow| flow.transactions_lost).unwrap_or(0)
    }

    /// Segments that were sent again (TCP).
    pub fn retransmits(&self) -> Option<u64> {
        let flow = self.flow()?;
        let of_kernel = flow.tcp.map(|tcp| u64::from(tcp.retransmitted_segments));
        flow.retransmitted_segments.or(of_kernel)
    }

    /// The congestion control in use, where it is known (TCP).
    pub fn congestion(&self) -> Option<&'a str> {
        self.flow()?.socket.as_ref()?.congestion.as_deref()
    }

    /// Segment size agreed (TCP).
    pub fn mss_bytes(&self) -> Option<u32> {
        self.flow()?.socket.as_ref()?.mss_bytes
    }

    /// Processor use, where it was measured.
    pub fn cpu(&self) -> Option<&'a CpuUse> {
        self.totals()?.cpu.as_ref()
    }

    /// How long each transaction took, or of bulk each call; empty where that isn't known.
    pub fn latency(&self) -> Histogram {
        let of_calls = self.totals().and_then(|totals| totals.call_times_hdr.as_deref());
        let told = of_calls.or(self.report.latency_hdr.as_deref()).map(Histogram::from_base64);
        told.and_then(Result::ok).unwrap_or_default()
    }
}
