//! Figures that only iperf3 has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One stream in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowInterval {
    /// Segments sent again in the interval, where this end sends over TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// UDP: datagrams sent, or by the numbers of those that came, sent by the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// UDP, receiver: datagrams lost; negative where more came late in the interval than were lost in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<i64>,
}

/// One stream in all, the omitted time left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowTotals {
    /// UDP: datagrams sent, or by the numbers of those that came, sent by the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// UDP: datagrams lost, as the receiver counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<i64>,
    /// Extremes of the intervals' figures, of a TCP connection that this end sends on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extremes: Option<TcpExtremes>,
}

/// Extremes of a TCP connection's figures over the intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TcpExtremes {
    /// Largest congestion window.
    pub max_snd_cwnd_bytes: u64,
    /// Largest window of the peer; 0 where the kernel doesn't tell.
    pub max_snd_wnd_bytes: u64,
    /// Largest round-trip time.
    pub max_rtt_us: u32,
    /// Smallest round-trip time.
    pub min_rtt_us: u32,
    /// Mean of the intervals' round-trip times.
    pub mean_rtt_us: u32,
    /// Reordering seen at the end.
    pub reorder: u32,
}

/// One end in all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndTotals {
    /// Processor time of the end's test, as the original tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<CpuPercent>,
    /// The congestion control in use; TCP only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// Processor time in percent of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPercent {
    /// In all.
    pub total: f64,
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}
