//! Figures that only QUIC's perf protocol has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One end in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interval {
    /// Connections that stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
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
    /// Bytes of requests that reached the server, as far as the transport tells (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploaded_bytes: Option<u64>,
    /// Bytes of responses that came (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downloaded_bytes: Option<u64>,
    /// From the start of the first thread to the end of the last one. Where the server was lost, the measured time
    /// is shorter (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ns: Option<u64>,
    /// Latencies of completed exchanges (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
}

/// Latencies as secnetperf has them: a percentile `p` of `n` sorted values is the one at `floor(n * p)`, in
/// microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// How many were kept.
    pub count: u64,
    /// Least.
    pub min: u32,
    /// 50th percentile.
    pub p50: u32,
    /// 90th percentile.
    pub p90: u32,
    /// 99th percentile.
    pub p99: u32,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: u32,
    /// 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p99_99: u32,
    /// 99.999th percentile.
    #[serde(rename = "p99.999")]
    pub p99_999: u32,
    /// 99.9999th percentile.
    #[serde(rename = "p99.9999")]
    pub p99_9999: u32,
    /// Greatest.
    pub max: u32,
}

impl Latency {
    /// Of these values, which are put in order; `None` where there is none.
    pub fn of(latencies_us: &mut [u32]) -> Option<Self> {
        latencies_us.sort_unstable();
        let count = latencies_us.len();
        let at = |share: f64| latencies_us.get((count as f64 * share) as usize).copied();
        Some(Self {
            count: count as u64,
            min: *latencies_us.first()?,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            p99_9: at(0.999)?,
            p99_99: at(0.9999)?,
            p99_999: at(0.99999)?,
            p99_9999: at(0.999999)?,
            max: *latencies_us.last()?,
        })
    }
}
