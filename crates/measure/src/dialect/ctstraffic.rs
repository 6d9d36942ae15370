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
}
