//! The latency line, and the distribution behind it.

mod histogram;

pub use histogram::render_distribution;

/// The figures of the latency line.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyLine {
    /// Requests per second.
    pub rps: u64,
    /// The least latency, µs.
    pub least_us: u32,
    /// 50, 90, 99, 99.9, 99.99, 99.999 and 99.9999 %, µs.
    pub percentiles_us: [u32; 7],
    /// The greatest latency, µs.
    pub greatest_us: u32,
}

const PERCENTILES: [(f64, &str); 7] = [
    (0.5, "50th"),
    (0.9, "90th"),
    (0.99, "99th"),
    (0.999, "99.9th"),
    (0.9999, "99.99th"),
    (0.99999, "99.999th"),
    (0.999999, "99.9999th"),
];

impl LatencyLine {
    /// The figures of `completed` requests, of which these latencies were kept; `None` when there was less
    /// than one a second. A percentile is the original's: of `n` sorted values the one at `floor(n × p)`.
    pub fn of(latencies_us: &[u32], completed: u64, time_us: u64) -> Option<Self> {
        let count = latencies_us.len() as u64;
        let rps = completed.saturating_mul(1_000_000).checked_div(time_us)?;
        if rps == 0 {
            return None;
        }
        let mut sorted = latencies_us.to_vec();
        sorted.sort_unstable();
        let at = |share: f64| sorted.get((count as f64 * share) as usize).copied();
        let mut percentiles_us = [0; PERCENTILES.len()];
        for (value, (share, _)) in percentiles_us.iter_mut().zip(PERCENTILES) {
            *value = at(share)?;
        }
        let (least_us, greatest_us) = (*sorted.first()?, *sorted.last()?);
        Some(Self { rps, least_us, percentiles_us, greatest_us })
    }

    /// The line.
    pub fn render(&self) -> String {
        let mut text = format!("Result: {} RPS, Latency,us 0th: {}", self.rps, self.least_us);
        for (value, (_, name)) in self.percentiles_us.iter().zip(PERCENTILES) {
            text.push_str(&format!(", {name}: {value}"));
        }
        text.push_str(&format!(", Max: {}\n", self.greatest_us));
        text
    }
}

#[cfg(test)]
mod tests;
