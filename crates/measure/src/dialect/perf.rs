//! Figures that only QUIC's perf protocol has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One end in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interval {
    /// Streams whose exchange was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u64>,
}

/// One end in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndTotals {
    /// Connections that stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Streams whose exchange was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u64>,
    /// Connections that the server, or the path to it, broke off with streams unfinished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_off: Option<u64>,
    /// The sum of the rates of all uploads, kbit/s, whether they ran at a time or one after another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_rates_kbps: Option<u64>,
    /// The sum of the rates of all downloads, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download_rates_kbps: Option<u64>,
}
