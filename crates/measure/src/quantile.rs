//! How well one run knows the quantiles of its latencies.
//!
//! Of n independent observations, the quantile q lies between the one of rank l and the one of rank u with 95 %
//! probability, where l and u are the places at which the binomial distribution B(n, q) leaves 2.5 % below and above
//! (David and Nagaraja, Order Statistics, 3rd edition, section 7.1). No distribution is assumed.
//!
//! Latencies beside each other are not independent: what holds one up, holds up its neighbours. So n is divided by the
//! overdispersion D. The run is divided into blocks of whole intervals, and D says how many times more the number of
//! latencies above the quantile varies from block to block than that of independent ones would:
//!
//! ```text
//! D = max(1, k/(k-1) * sum over the blocks of (x - n p)^2 / (N p (1 - p)))
//! ```
//!
//! with k blocks, x of n latencies of a block above the quantile, and p the share of all N latencies that are. Where D
//! is above 1, it is an estimate by k blocks, so that n is divided by (t/z)^2 too: Student's t with k - 1 degrees of
//! freedom over the normal distribution's z. Ranks of the smaller sample are those of the same share of the whole one.
//!
//! The interval speaks of this run. How runs vary is told by several of them ([`crate::repeats`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::two_sided;
use crate::histogram::{CLASSES, Histogram, IntervalHistogram};
use crate::sample::{Role, Sample};

#[cfg(test)]
mod tests;

/// The share of such intervals that hold the quantile.
pub const CONFIDENCE: f64 = 0.95;
/// The fewest blocks that the overdispersion is told from.
pub const LEAST_BLOCKS: usize = 8;
/// The most blocks: longer ones hold more of what belongs together.
const MOST_BLOCKS: usize = 20;
/// The 97.5th percentile of the normal distribution.
const NORMAL: f64 = 1.959_964;
/// The expected number of observations above the quantile from which on the normal distribution stands for the binomial.
const NORMAL_FROM: f64 = 1_000.0;

const QUANTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("p99.999", 0.99999),
];

/// A quantile of the latency with its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantileInterval {
    /// The quantile as the latency has it: `p50`, `p99.9`.
    pub name: String,
    /// The quantile's value, as the latency has it.
    pub value_ns: u64,
    /// The lower end of the interval.
    pub low_ns: u64,
    /// The upper end.
    pub high_ns: u64,
    /// How many times more than independent ones the latencies above the quantile vary from block to block; at least 1.
    pub overdispersion: f64,
    /// The blocks of whole intervals that this was told from.
    pub blocks: usize,
    /// The interval's confidence: the share of such intervals that hold the quantile.
    pub confidence: f64,
}

/// The interval of each quantile of the client's latency, where its samples have histograms of at least
/// [`LEAST_BLOCKS`] intervals of the measured part.
///
/// A quantile is left out where the observations don't support it, or wouldn't if there were as few as independent ones
/// that tell as much.
pub fn latency_intervals(latency_hdr: Option<&str>, samples: &[Sample]) -> Vec<QuantileInterval> {
    let Some(Ok(all)) = latency_hdr.map(Histogram::from_base64) else { return Vec::new() };
    let mut measured: Vec<&Sample> =
        samples.iter().filter(|sample| sample.role == Role::Client && !sample.warm_up).collect();
    measured.sort_by_key(|sample| sample.to_ns);
    let texts = measured.iter().filter_map(|sample| sample.latency_hdr.as_deref());
    let read: Result<Vec<_>, _> = texts.map(IntervalHistogram::from_base64).collect();
    read.map_or(Vec::new(), |intervals| intervals_of(&all, &intervals))
}

/// The interval of each quantile, of all latencies of a run and those of its intervals, in order of time.
fn intervals_of(all: &Histogram, intervals: &[IntervalHistogram]) -> Vec<QuantileInterval> {
    let blocks = blocks_of(intervals);
    if blocks.len() < LEAST_BLOCKS {
        return Vec::new();
    }
    QUANTILES.iter().filter_map(|(name, q)| interval_of(name, *q, all, &blocks)).collect()
}

/// As many intervals as it takes are put together, so that there are at most [`MOST_BLOCKS`].
fn blocks_of(intervals: &[IntervalHistogram]) -> Vec<IntervalHistogram> {
    let together = intervals.len().div_ceil(MOST_BLOCKS).max(1);
    // The rest is not a block as long as the others.
    let blocks = intervals.chunks_exact(together).map(|chunk| {
        let mut block = IntervalHistogram::default();
        chunk.iter().for_each(|interval| block.merge(interval));
        block
    });
    blocks.collect()
}

fn interval_of(
    name: &str,
    q: f64,
    all: &Histogram,
    blocks: &[IntervalHistogram],
) -> Option<QuantileInterval> {
    let count = all.len();
    let overdispersion = overdispersion(q, blocks);
    let t = match overdispersion > 1.0 {
        true => two_sided(CONFIDENCE, blocks.len() as f64 - 1.0)?,
        false => NORMAL,
    };
    let independent = count as f64 / overdispersion * (NORMAL / t).powi(2);
    let (low, high) = ranks(independent as u64, q)?;
    // Ranks of the same shares, the lower one rounded down and the upper one up.
    let scale = count as f64 / (independent as u64) as f64;
    let low = ((low - 1) as f64 * scale) as u64 + 1;
    let high = ((high as f64 * scale).ceil() as u64).min(count);
    let quantile = ((q * count as f64).ceil() as u64).clamp(low, high);
    Some(QuantileInterval {
        name: name.to_owned(),
        value_ns: all.value_at_rank(quantile)?.1,
        low_ns: all.value_at_rank(low)?.0,
        high_ns: all.value_at_rank(high)?.1,
        overdispersion: (overdispersion * 1e3).round() / 1e3,
        blocks: blocks.len(),
        confidence: CONFIDENCE,
    })
}

/// How many times more than independent latencies those above the quantile vary from block to block.
fn overdispersion(q: f64, blocks: &[IntervalHistogram]) -> f64 {
    let Some(class) = class_at(q, blocks) else { return 1.0 };
    let total: u64 = blocks.iter().map(IntervalHistogram::len).sum();
    let above: u64 = blocks.iter().map(|block| block.above(class)).sum();
    let share = above as f64 / total.max(1) as f64;
    let squares: f64 = blocks
        .iter()
        .map(|block| (block.above(class) as f64 - block.len() as f64 * share).powi(2))
        .sum();
    let k = blocks.len() as f64;
    let independent = total as f64 * share * (1.0 - share);
    (k / (k - 1.0) * squares / independent).max(1.0)
}

/// Of the classes with latencies above and not above them, the one whose share above it is nearest to that of the
/// quantile; `None`: all latencies are of one class.
fn class_at(q: f64, blocks: &[IntervalHistogram]) -> Option<usize> {
    let mut all = IntervalHistogram::default();
    blocks.iter().for_each(|block| all.merge(block));
    let total = all.len();
    let wanted = (1.0 - q) * total as f64;
    let (mut above, mut best) = (total, None);
    for (class, count) in all.counts().iter().enumerate().take(CLASSES) {
        above = above.saturating_sub(*count);
        let away = (above as f64 - wanted).abs();
        if above > 0 && above < total && best.is_none_or(|(least, _)| away < least) {
            best = Some((away, class));
        }
    }
    best.map(|(_, class)| class)
}

/// The ranks, from 1, of the observations that the quantile lies between with 95 % probability, of so many independent
/// ones; `None`: there are too few.
fn ranks(count: u64, q: f64) -> Option<(u64, u64)> {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let (n, above) = (count as f64, 1.0 - q);
    let mean = n * above;
    // Counted from the greatest: at most `few` lie above the quantile with 2.5 %, at most `many` with 97.5 %.
    let (few, many) = if mean >= NORMAL_FROM {
        let around = NORMAL * (mean * q).sqrt();
        (Some((mean - around - 0.5).floor() as u64), (mean + around - 0.5).ceil() as u64)
    } else {
        let (mut few, mut many) = (None, 0);
        // The logarithm of the probability that just so many do.
        let mut logarithm = n * q.ln();
        let mut within = logarithm.exp();
        while within < 1.0 - tail && many < count {
            if within <= tail {
                few = Some(many);
            }
            logarithm += ((n - many as f64) / (many as f64 + 1.0) * above / q).ln();
            many += 1;
            within += logarithm.exp();
        }
        (few, many)
    };
    let (low, high) = (count.checked_sub(many)?, count.checked_sub(few?)?);
    (low >= 1).then_some((low, high))
}
