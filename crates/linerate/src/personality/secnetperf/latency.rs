//! The latency line, and the distribution behind it.

mod histogram;

use linerate_measure::dialect::perf::Latency;

pub use histogram::render_distribution;

/// The figures of the latency line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyLine {
    /// Requests per second.
    pub rps: u64,
    /// The latencies that were kept.
    pub latency: Latency,
}

impl LatencyLine {
    /// The figures of `completed` requests, of which these latencies were kept; `None` when there was less
    /// than one a second.
    pub fn of(latency: Option<Latency>, completed: u64, time_us: u64) -> Option<Self> {
        let rps = completed.saturating_mul(1_000_000).checked_div(time_us)?;
        Some(Self { rps, latency: latency.filter(|_| rps > 0)? })
    }

    /// The line.
    pub fn render(&self) -> String {
        let Latency { min, p50, p90, p99, p99_9, p99_99, p99_999, p99_9999, max, .. } =
            self.latency;
        format!(
            "Result: {} RPS, Latency,us 0th: {min}, 50th: {p50}, 90th: {p90}, 99th: {p99}, 99.9th: {p99_9}, \
             99.99th: {p99_99}, 99.999th: {p99_999}, 99.9999th: {p99_9999}, Max: {max}\n",
            self.rps
        )
    }
}

#[cfg(test)]
mod tests;
