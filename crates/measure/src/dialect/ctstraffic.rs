//! Figures that only ctsTraffic has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One end in one interval: connections until its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interval {
    /// Connections that stand.
    pub open: u64,
    /// Connections that were completed.
    pub completed: u64,
    /// Connections that an error of the network ended.
    pub network_errors: u64,
    /// Connections that an error of the protocol ended: data that was wrong, missing or too much.
    pub data_errors: u64,
    /// Media streams: frames of the interval. A server knows nothing of what arrives: its counts are of START.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
}

/// Frames of media streams by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Frames {
    /// Frames of which as many bytes came in time as they have.
    pub completed: u64,
    /// Frames of which less came.
    pub dropped: u64,
    /// Frames of which more came. Server: repeated STARTs.
    pub repeated: u64,
    /// Datagrams that were too late, too early, malformed or wrong. Server: datagrams that were not START.
    pub errors: u64,
}

/// One end in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndTotals {
    /// Connections that were completed.
    pub completed: u64,
    /// Connections that an error of the network ended.
    pub network_errors: u64,
    /// Connections that an error of the protocol ended.
    pub data_errors: u64,
    /// Bytes sent, ids and `DONE` included.
    pub sent_bytes: u64,
    /// Bytes received, likewise.
    pub received_bytes: u64,
    /// Media streams: frames of them all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// A client of media streams: packets that arrived and were dropped because a socket's buffer was full. Datagrams
    /// that the kernel merged (receive offload) count as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u64>,
    /// A server of media streams: datagrams that a queue of its machine dropped, and that never were on the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_drops: Option<u64>,
    /// Transfers: bytes of data sent that the other ends have acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged_bytes: Option<u64>,
}
