//! What a run comes to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{Explanation, Limit};
use crate::one_way::OneWay;
use crate::quantile::QuantileInterval;
use crate::sample::{CpuSeconds, DatagramCounts};

mod judge;
mod machine;
mod summarize;
mod tally;
mod times;
mod uneven;
mod unmet;

pub use judge::{judge, judge_dialect};
pub use machine::machine_notes;
pub(crate) use machine::{others_share, steal_share};
pub use summarize::summarize;
pub use times::judge_server_times;
pub(crate) use uneven::uneven_ends;
pub use unmet::{Quantity, Unmet, unmet};
pub(crate) use unmet::{differs_in_time, send_time_s};

/// What a run comes to, in base units. A field that was not measured is absent. What each field counts is told by its
/// [`Metric`](crate::metric::Metric), from where the JSON Schema has it too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// [`GOODPUT`](crate::metric::GOODPUT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<f64>,
    /// [`GOODPUT_UP`](crate::metric::GOODPUT_UP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_up_bps: Option<f64>,
    /// [`GOODPUT_DOWN`](crate::metric::GOODPUT_DOWN).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_down_bps: Option<f64>,
    /// [`SENT_RATE`](crate::metric::SENT_RATE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bps: Option<f64>,
    /// [`RECEIVED_BYTES`](crate::metric::RECEIVED_BYTES).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// [`DRAINED_BYTES`](crate::metric::DRAINED_BYTES).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drained_bytes: Option<u64>,
    /// [`SENT_BYTES`](crate::metric::SENT_BYTES).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// [`ELAPSED`](crate::metric::ELAPSED).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    /// [`BYTES_PER_SEND`](crate::metric::BYTES_PER_SEND).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_send: Option<f64>,
    /// [`BYTES_PER_RECEIVE`](crate::metric::BYTES_PER_RECEIVE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_receive: Option<f64>,
    /// [`TRANSACTIONS`](crate::metric::TRANSACTIONS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    /// [`TRANSACTIONS_PER_S`](crate::metric::TRANSACTIONS_PER_S).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions_per_s: Option<f64>,
    /// [`TRANSACTIONS_LOST`](crate::metric::TRANSACTIONS_LOST).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions_lost: Option<u64>,
    /// [`TRANSACTIONS_UNSENT`](crate::metric::TRANSACTIONS_UNSENT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions_unsent: Option<u64>,
    /// [`CONNECTIONS_PER_S`](crate::metric::CONNECTIONS_PER_S).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_per_s: Option<f64>,
    /// [`LATENCY`](crate::metric::LATENCY).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latency>,
    /// The 95 % intervals of its quantiles, of one run: [`latency_intervals`](crate::quantile::latency_intervals).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_intervals: Vec<QuantileInterval>,
    /// [`SERVICE`](crate::metric::SERVICE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_ns: Option<Latency>,
    /// [`ESTABLISHMENT`](crate::metric::ESTABLISHMENT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub establishment_ns: Option<Latency>,
    /// [`FIRST_BYTE`](crate::metric::FIRST_BYTE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<Latency>,
    /// Media: how much longer a datagram was on its way than the fastest (one-way delay variation).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_variation_ns: Option<Latency>,
    /// Media: from when a frame was due until it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_delay_ns: Option<Latency>,
    /// Whether latency counts from the real send (`closed_loop`) or from the intended one
    /// (`open_loop`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_from: Option<LatencyFrom>,
    /// [`DATAGRAMS`](crate::metric::DATAGRAMS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramCounts>,
    /// [`DATAGRAMS_PER_S`](crate::metric::DATAGRAMS_PER_S).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams_per_s: Option<f64>,
    /// [`LOSS_RATIO`](crate::metric::LOSS_RATIO).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// [`JITTER`](crate::metric::JITTER).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// [`RETRANSMITS`](crate::metric::RETRANSMITS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// [`CPU`](crate::metric::CPU).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<CpuOfEnds>,
    /// [`CPU_PER_GB`](crate::metric::CPU_PER_GB).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_gb: Option<f64>,
    /// [`CPU_PER_TRANSACTION`](crate::metric::CPU_PER_TRANSACTION).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_transaction: Option<f64>,
    /// [`VERIFIED_BYTES`](crate::metric::VERIFIED_BYTES).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_bytes: Option<u64>,
    /// [`WRONG_BYTES`](crate::metric::WRONG_BYTES).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_bytes: Option<u64>,
    /// [`ERRORS`](crate::metric::ERRORS).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// [`FAIRNESS`](crate::metric::FAIRNESS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// The delay of each direction of the path, under the load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_way: Vec<OneWay>,
    /// What limited each direction, the worst flow's first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// What the losses that limited a stream over TCP or TLS were, where further runs were asked to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Box<Explanation>>,
}

/// CPU seconds of each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuOfEnds {
    /// The client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<CpuSeconds>,
    /// The server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<CpuSeconds>,
}

/// From which moment latency counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LatencyFrom {
    /// From the real send: the next request waits for the last response.
    ClosedLoop,
    /// From the intended send.
    OpenLoop,
}

/// The distribution of a latency. A quantile that the sample can't support is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Latency {
    /// Number of observations.
    pub count: u64,
    /// Least.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// 50th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<u64>,
    /// 90th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90: Option<u64>,
    /// 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<u64>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9", skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<u64>,
    /// 99.99th percentile.
    #[serde(rename = "p99.99", skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<u64>,
    /// 99.999th percentile.
    #[serde(rename = "p99.999", skip_serializing_if = "Option::is_none")]
    pub p99_999: Option<u64>,
    /// Greatest.
    pub max: u64,
}

#[cfg(test)]
mod tests;
