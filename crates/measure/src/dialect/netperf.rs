//! Figures that only netperf has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One end in all: of a test that is made several times, the means.
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
    /// How that was measured: netperf's letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_util_method: Option<String>,
    /// Service demand: microseconds of a processor per KB (1024 bytes) or per transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_demand_us: Option<f64>,
    /// Tests that the means are of (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Width of the confidence interval that was reached, percent of the mean result (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_width_percent: Option<f64>,
}

/// One connection in all.
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
}
