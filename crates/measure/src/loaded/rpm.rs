//! Round trips per minute: how responsive a path is, as one figure.
//!
//! Two formulas are in use, and they differ by a factor of 3 where latencies differ much. So each has its name here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The worst latencies that a trimmed mean leaves out, a share.
const TRIMMED: f64 = 0.05;
/// Nanoseconds of a minute.
const MINUTE_NS: f64 = 60e9;
/// Round trips until a new connection with TLS 1.3 gets its first byte: one for TCP, one for TLS, one for the request.
const ROUND_TRIPS: f64 = 3.0;

/// The mean of a distribution without its worst 5 %, nanoseconds; `None` where nothing was recorded. At least one
/// latency is left.
pub fn trimmed_mean_ns(histogram: &Histogram) -> Option<f64> {
    let all = histogram.len();
    let kept = (all as f64 * (1.0 - TRIMMED)).floor().max(1.0) as u64;
    let (mut left, mut sum) = (kept, 0.0);
    for (value_ns, count) in histogram.counts() {
        let taken = count.min(left);
        sum += value_ns as f64 * taken as f64;
        left -= taken;
    }
    (all > 0).then(|| sum / kept as f64)
}

/// The latencies that the formulas take, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RpmInput {
    /// Trimmed mean from the first packet of a new connection over TLS to the first byte of its response.
    pub foreign_mean_ns: f64,
    /// Trimmed mean of the round trip that the load sees.
    pub self_mean_ns: f64,
    /// The 90th percentiles of both.
    pub p90_ns: Option<(u64, u64)>,
}

/// Round trips per minute, by each formula. More is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rpm {
    /// draft-ietf-ippm-responsiveness-09: the mean of the rates. `(F + L) / 2` with
    /// `F = 60000 / ((TM(tcp) + TM(tls) + TM(http)) / 3)` and `L = 60000 / TM(self)`, TM the trimmed mean in ms. The
    /// sum of the three is taken as one time, from the first packet to the first byte.
    pub draft_09: f64,
    /// The older form (goresponsiveness): the rate of the mean, `60 / ((self + foreign) / 2)` with trimmed means in
    /// seconds, foreign being a third of the sum.
    pub mean_latency: f64,
    /// The older form with 90th percentiles; absent where there are too few latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<f64>,
}

impl Rpm {
    /// Computes them; `None` where a latency is not above 0.
    pub fn of(input: &RpmInput) -> Option<Self> {
        let RpmInput { foreign_mean_ns, self_mean_ns, p90_ns } = *input;
        let is_time = |ns: f64| ns.is_finite() && ns > 0.0;
        if !is_time(foreign_mean_ns) || !is_time(self_mean_ns) {
            return None;
        }
        let foreign_ns = foreign_mean_ns / ROUND_TRIPS;
        let of_mean = |foreign_ns: f64, self_ns: f64| MINUTE_NS / ((foreign_ns + self_ns) / 2.0);
        Some(Self {
            draft_09: (MINUTE_NS / foreign_ns + MINUTE_NS / self_mean_ns) / 2.0,
            mean_latency: of_mean(foreign_ns, self_mean_ns),
            p90: p90_ns
                .filter(|(foreign_ns, self_ns)| foreign_ns.saturating_add(*self_ns) > 0)
                .map(|(foreign_ns, self_ns)| {
                    of_mean(foreign_ns as f64 / ROUND_TRIPS, self_ns as f64)
                }),
        })
    }
}
