//! What comes out of a netperf test.

use std::net::SocketAddr;

use linerate_measure::EndReport;
use linerate_measure::histogram::Histogram;

use crate::socket::TcpFigures;

/// What an end shows for a size that it doesn't know.
pub const SIZE_UNKNOWN: i32 = -1;

/// What one test came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Time of the test at this end: from just before the connection was made to the moment when
    /// the peer had finished.
    pub elapsed_ns: u64,
    /// Whether somebody asked to stop before its end.
    pub interrupted: bool,
    /// Whether the server told its figures; else those of its end are not known, whatever they say.
    pub server_told: bool,
    /// What this end counted, with its one flow, or all connections as one. Of bulk its latencies are how long each
    /// call took, where that was asked for.
    pub report: EndReport,
    /// This end, as netperf tells it.
    pub local: EndFigures,
    /// The server's end, as it tells.
    pub remote: EndFigures,
    /// This end's address of the data connection.
    pub local_address: Option<SocketAddr>,
    /// The server's.
    pub remote_address: Option<SocketAddr>,
    /// What the kernel said of the one TCP connection when data was over, where it was asked.
    pub tcp: Option<TcpFigures>,
}

impl Outcome {
    /// The latencies of the report.
    pub fn latency(&self) -> Histogram {
        let told = self.report.latency_hdr.as_deref().map(Histogram::from_base64);
        told.and_then(Result::ok).unwrap_or_default()
    }

    /// Transactions given up because no response came in time.
    pub fn transactions_lost(&self) -> u64 {
        self.report.flows.first().and_then(|flow| flow.transactions_lost).unwrap_or(0)
    }

    /// Segment size agreed (TCP).
    pub fn mss_bytes(&self) -> Option<u32> {
        self.report.flows.first()?.socket.as_ref()?.mss_bytes
    }
}

/// What one end did. What it doesn't tell is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndFigures {
    /// Bytes it sent.
    pub bytes_sent: u64,
    /// Bytes it received.
    pub bytes_received: u64,
    /// Its calls that sent; over UDP, the datagrams that it sent.
    pub send_calls: u64,
    /// Its calls that received; over UDP, the datagrams that came.
    pub receive_calls: u64,
    /// Sends that its stack refused (UDP).
    pub failed_sends: u64,
    /// Transactions it completed.
    pub transactions: u64,
    /// Its own time, where it tells.
    pub elapsed_s: Option<f64>,
    /// Bytes of its sends; 0 at this end, -1 at the server's: not asked for.
    pub send_bytes: i32,
    /// Bytes of its receives, likewise.
    pub receive_bytes: i32,
    /// Buffers of its send ring.
    pub send_width: i32,
    /// Buffers of its receive ring.
    pub receive_width: i32,
    /// SO_SNDBUF.
    pub send_buffer: BufferFigures,
    /// SO_RCVBUF.
    pub receive_buffer: BufferFigures,
    /// Whether TCP_NODELAY is in force.
    pub no_delay: bool,
    /// Processor use, where it was measured.
    pub cpu: Option<CpuFigures>,
    /// Segments that were sent again (TCP).
    pub retransmits: Option<u32>,
    /// The congestion control in use, where it is known (TCP).
    pub congestion: Option<String>,
    /// SO_PRIORITY as set: -1 not asked for, -2 refused.
    pub priority: i32,
    /// The type-of-service byte as set, likewise.
    pub service: i32,
    /// Sends of one interval, 0: no pace.
    pub interval_burst: u32,
    /// The interval.
    pub interval_us: u32,
}

/// A socket buffer's sizes; -1: not known or not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferFigures {
    /// Asked for.
    pub asked: i32,
    /// As the kernel had it when the socket was made.
    pub at_start: i32,
    /// As the kernel had it at the end.
    pub at_end: i32,
}

impl Default for BufferFigures {
    fn default() -> Self {
        Self { asked: SIZE_UNKNOWN, at_start: SIZE_UNKNOWN, at_end: SIZE_UNKNOWN }
    }
}

/// How busy one machine was during a test, all its processors and everything that ran on them; where both
/// ends are on one machine, what the threads of this end's test took of it, and a share that isn't known of
/// them alone is -1. Shares are in percent of one processor's time, as the mean over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuFigures {
    /// Everything but idle.
    pub util_percent: f64,
    /// In user mode.
    pub user_percent: f64,
    /// In the kernel.
    pub system_percent: f64,
    /// Waiting for I/O.
    pub iowait_percent: f64,
    /// Serving hardware interrupts.
    pub irq_percent: f64,
    /// Serving software interrupts.
    pub softirq_percent: f64,
    /// The busiest processor's share.
    pub peak_percent: f64,
    /// The busiest processor.
    pub peak_cpu: i32,
    /// Processors; 0: not told.
    pub cpus: u32,
    /// How it was measured: netperf's code, see [`method_letter`].
    pub method: u32,
}

/// What a server tells about its processors (`-t REM_CPU`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Its rate; on Linux 100, the clock ticks of a second.
    pub rate: f32,
    /// How many there are.
    pub cpus: u32,
}

/// The letter that netperf shows for a way of measuring processor use; `?` for an unknown code.
pub fn method_letter(method: u32) -> char {
    const LETTERS: [char; 13] = ['U', 'I', 'P', 'T', 'L', 'R', 'N', 'K', 'S', 'C', 'E', 'M', 'O'];
    usize::try_from(method).ok().and_then(|code| LETTERS.get(code)).copied().unwrap_or('?')
}
