//! What limited a transfer: the place where data piled up, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Direction;

mod acknowledged;
mod advice;
mod delays;
mod explain;
mod find;
mod loss_window;
mod rules;
mod seen;
mod words;

pub use explain::{Explanation, Inquiry, LossRun, LossVerdict};
pub use find::{Limits, Measured, find_limits};
pub(crate) use seen::{median, quic_window_millionths};

/// Where data stood and waited. From the sender's program to the receiver's, a transfer is a chain of queues; the slow
/// link is the one with a full queue before it and an empty one behind it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The program that makes the data.
    Sender,
    /// The sender's socket buffer.
    SendBuffer,
    /// The queue of the sender's own network device.
    LocalQueue,
    /// The network between the two machines.
    Path,
    /// The window that the receiver grants.
    ReceiveWindow,
    /// The program or the socket that takes the data.
    Receiver,
}

/// Why data waited there.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The rate or the schedule that was asked for.
    OwnPacing,
    /// The sender's processor.
    LocalCpu,
    /// The sender did nothing: it was stopped, or waited for something else.
    SenderIdle,
    /// The size of the send buffer.
    SendBuffer,
    /// A shaper or the device of the sender's machine.
    LocalQueue,
    /// The receive window, or QUIC's flow control.
    ReceiveWindow,
    /// The congestion window had not grown yet: the test was too short.
    StartUp,
    /// Losses, which make the sender slow down.
    Loss,
    /// The rate of the slowest link.
    PathRate,
    /// The time that the path takes.
    PathDelay,
    /// The longest packet that the path carries: the datagrams are longer.
    PathMtu,
    /// The path; the figures don't tell what of it.
    Path,
    /// Times in which next to nothing was answered.
    Stalls,
    /// The receiver's processor.
    RemoteCpu,
    /// The receiver's socket buffer was full.
    ReceiverSocket,
    /// The receiver did nothing: it was stopped, or waited for something else.
    ReceiverIdle,
    /// Work and wake-ups at both ends.
    BothCpus,
}

/// What limited a direction, or one flow of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Where data waited.
    pub place: Place,
    /// Why.
    pub cause: Cause,
    /// Which way the data went; requests go up.
    pub direction: Direction,
    /// The flow's number; absent: the direction as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// Whether the evidence is far past its threshold, and most intervals say the same.
    pub sure: bool,
    /// The share of the measured time for which it holds, from 0 to 1; absent where samples don't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What it was concluded from.
    pub evidence: LimitEvidence,
    /// What to change, with a number; absent where nothing is to be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// What a limit was concluded from. A figure that isn't known is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LimitEvidence {
    /// Share of the time in which the sender had unacknowledged data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_ratio: Option<f64>,
    /// Part of it held up by the receive window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd_limited_ratio: Option<f64>,
    /// Part of it held up by the send buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_limited_ratio: Option<f64>,
    /// Bytes in the sender's socket that were not sent yet, median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_bytes: Option<u64>,
    /// Bytes in the receiver's socket that were not read yet, median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_queue_bytes: Option<u64>,
    /// Smoothed round-trip time under load, median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u32>,
    /// Least round-trip time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<u32>,
    /// Share of the segments or packets that were sent again, or lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_ratio: Option<f64>,
    /// The average congestion window of CUBIC or Reno at the rate of losses, against the one in use. Above 1 it takes
    /// three losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_window_ratio: Option<f64>,
    /// Share of the time in which QUIC's flow control held the sender up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_control_ratio: Option<f64>,
    /// Datagrams, or trains of them, that the UDP socket of a QUIC receiver dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u64>,
    /// Bytes that were acknowledged to the sender of a stream over TCP before they came to the receiver, median; absent
    /// where they are no more than two ends are apart that are looked at one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged_ahead_bytes: Option<u64>,
    /// Share of the datagrams that the sender's machine or its connection refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_ratio: Option<f64>,
    /// The longest UDP payload that the path carries, where QUIC's datagrams need longer ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu_bytes: Option<u32>,
    /// How much longer than the quickest datagram the last quarter of them was on its way, median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing_ns: Option<u64>,
    /// By how much that grew from the first quarter to the last; 0 where it didn't grow from each to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_growth_ns: Option<u64>,
    /// What the busiest thread of the sender ran and waited for a processor, as a share of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand_sender: Option<f64>,
    /// The same of the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand_receiver: Option<f64>,
}

#[cfg(test)]
mod tests;
