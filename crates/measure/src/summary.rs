//! What a run comes to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::{CpuSeconds, DatagramCounts};

mod judge;
mod machine;
mod summarize;
mod tally;
mod times;
mod unmet;

pub use judge::judge;
pub use machine::machine_notes;
pub use summarize::summarize;
pub use times::judge_server_times;
pub use unmet::{Quantity, Unmet, unmet};

/// What a run comes to, in base units. A field that was not measured is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// Payload that arrived, per second: the receivers' count over the receivers' time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<f64>,
    /// The same, client to server only (where both directions ran).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_up_bps: Option<f64>,
    /// The same, server to client only (where both directions ran).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_down_bps: Option<f64>,
    /// Payload that the senders handed to their stacks, per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bps: Option<f64>,
    /// Bytes of payload that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// Bytes of payload sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Measured time (the receivers' for a stream, the client's for rr).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    /// Bytes a sending call moved, mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_send: Option<f64>,
    /// Bytes a receiving call moved, mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_receive: Option<f64>,
    /// Transactions completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    /// Transactions completed per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions_per_s: Option<f64>,
    /// Transactions whose response never came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions_lost: Option<u64>,
    /// Transactions that were due by the schedule and never begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions_unsent: Option<u64>,
    /// Connections opened, used and closed per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_per_s: Option<f64>,
    /// The latency of a transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latency>,
    /// By a schedule: the latency from the real send, as a closed loop would count it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_ns: Option<Latency>,
    /// connect: from the first packet of a connection until it stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub establishment_ns: Option<Latency>,
    /// connect: from the first packet of a connection to the first byte of its response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<Latency>,
    /// Whether latency counts from the real send (`closed_loop`) or from the intended one
    /// (`open_loop`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_from: Option<LatencyFrom>,
    /// Datagrams, all flows together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramCounts>,
    /// Datagrams received per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams_per_s: Option<f64>,
    /// Lost datagrams as a share of those sent, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// Interarrival jitter (RFC 3550), mean over the flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// TCP segments sent again, all flows together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// CPU seconds of the threads that carried the flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<CpuOfEnds>,
    /// CPU seconds of both ends' threads per 10^9 bytes that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_gb: Option<f64>,
    /// CPU seconds of both ends' threads per transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_transaction: Option<f64>,
    /// Bytes that were checked and found right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_bytes: Option<u64>,
    /// Bytes that were checked and found wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_bytes: Option<u64>,
    /// Failures under load at both ends, by kind; of connections that come and go the client's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Jain's fairness index over the flows' goodput or transactions, 1/n to 1 (two flows or more).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
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
