//! How two ways to measure compare: one estimate for each figure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::{COMPARED, Compared, Figures};
use super::interval::{median, median_interval, rank};
use super::student::two_sided;

/// The confidence of all intervals of one figure. Quantiles of one latency share the error between them (Bonferroni).
pub const CONFIDENCE: f64 = 0.95;

/// The difference that is seen with a probability of at least 90 %, in halves of the interval's width. One of half the
/// width is seen in every second comparison. Found by simulation: 1.9 for normal figures, 2.2 for figures of Laplace's
/// distribution, 2.0 where one run in 20 is spoiled.
const SEEN_TIMES: f64 = 2.2;
/// Pairs tell it whose interval has this rank, the third least and the third greatest ratio, or a greater one: the
/// width of others hangs on single runs.
const LEAST_RANK: usize = 3;
/// The fewest stored runs of each side that tell it.
const LEAST_STORED: usize = 5;

/// How an interval was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Method {
    /// The median of the ratios within pairs, with the exact interval of the median from order statistics.
    #[serde(rename = "median_pair_ratio/order_statistic")]
    MedianOfPairs,
    /// The ratio of the geometric means, with Welch's interval of the difference of the logarithms.
    #[serde(rename = "geometric_mean_ratio/welch")]
    Welch,
}

/// What can be said of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A's figure is the higher one.
    AHigher,
    /// B's figure is the higher one.
    BHigher,
    /// The interval holds 1: a difference was not seen, which is no proof that there is none.
    NoDifferenceSeen,
    /// Too few runs for an interval.
    TooFew,
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureRatio {
    /// The figure: the name of a metric, or of a quantile of one.
    pub name: String,
    /// The median of A's runs.
    pub a: f64,
    /// The median of B's runs.
    pub b: f64,
    /// B's figure over A's.
    pub ratio: f64,
    /// The interval's lower end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The interval's upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The interval's confidence.
    pub confidence: f64,
    /// How ratio and interval were computed.
    pub method: Method,
    /// Complete pairs; of stored runs the smaller number of both sides.
    pub pairs: usize,
    /// A difference that such a comparison shows with a probability of 90 %, a share of A's figure. Absent: there are
    /// too few runs to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_seen: Option<f64>,
    /// What can be said.
    pub verdict: Finding,
}

impl FigureRatio {
    fn new(name: String, [a, b]: [f64; 2], log_ratio: f64, method: Method) -> Self {
        Self {
            name,
            a,
            b,
            ratio: log_ratio.exp(),
            low: None,
            high: None,
            confidence: CONFIDENCE,
            method,
            pairs: 0,
            smallest_seen: None,
            verdict: Finding::TooFew,
        }
    }

    fn with_interval(
        self,
        log_interval: Option<(f64, f64)>,
        confidence: f64,
        pairs: usize,
    ) -> Self {
        let Some((low, high)) = log_interval else { return Self { confidence, pairs, ..self } };
        let tells_smallest = match self.method {
            Method::MedianOfPairs => rank(pairs, confidence).is_some_and(|rank| rank >= LEAST_RANK),
            Method::Welch => pairs >= LEAST_STORED,
        };
        let verdict = match () {
            () if low > 0.0 => Finding::BHigher,
            () if high < 0.0 => Finding::AHigher,
            () => Finding::NoDifferenceSeen,
        };
        Self {
            low: Some(low.exp()),
            high: Some(high.exp()),
            smallest_seen: tells_smallest.then(|| (SEEN_TIMES * (high - low) / 2.0).exp_m1()),
            confidence,
            pairs,
            verdict,
            ..self
        }
    }

    /// The figure's place among all that are compared.
    pub fn compared(&self) -> Option<&'static Compared> {
        Compared::of_name(&self.name)
    }
}

/// Compares pairs of runs, A's figures first. A figure counts in the pairs in which both runs have it, above 0.
pub fn compare_pairs(pairs: &[[Figures; 2]]) -> Vec<FigureRatio> {
    let values_of = |one: &Compared| -> Vec<[f64; 2]> {
        let name = one.name();
        pairs.iter().filter_map(|[a, b]| Some([positive(a, &name)?, positive(b, &name)?])).collect()
    };
    each_figure(values_of, |one, values: Vec<[f64; 2]>, confidence| {
        let logs: Vec<f64> = values.iter().map(|[a, b]| b.ln() - a.ln()).collect();
        let of_side =
            |place: usize| median(&values.iter().map(|pair| pair[place]).collect::<Vec<_>>());
        let estimate = FigureRatio::new(
            one.name(),
            [of_side(0)?, of_side(1)?],
            median(&logs)?,
            Method::MedianOfPairs,
        );
        Some(estimate.with_interval(median_interval(&logs, confidence), confidence, logs.len()))
    })
}

/// Compares runs that were not interleaved, A's first: what else changed between them can't be told from the
/// difference. One run a side has no interval.
pub fn compare_stored(a: &[Figures], b: &[Figures]) -> Vec<FigureRatio> {
    let values_of = |one: &Compared| -> Vec<Vec<f64>> {
        let name = one.name();
        let of_side =
            |runs: &[Figures]| runs.iter().filter_map(|figures| positive(figures, &name)).collect();
        let sides: [Vec<f64>; 2] = [of_side(a), of_side(b)];
        if sides.iter().any(Vec::is_empty) { Vec::new() } else { sides.into() }
    };
    each_figure(values_of, |one, sides: Vec<Vec<f64>>, confidence| {
        let [a, b] = sides.try_into().ok()?;
        let [of_a, of_b] = [&a, &b].map(|side| LogSpread::of(side));
        let difference = of_b.mean - of_a.mean;
        let estimate =
            FigureRatio::new(one.name(), [median(&a)?, median(&b)?], difference, Method::Welch);
        let half_width = welch_half_width(&of_a, &of_b, confidence);
        let interval = half_width.map(|half| (difference - half, difference + half));
        Some(estimate.with_interval(interval, confidence, a.len().min(b.len())))
    })
}

/// An estimate for each figure that has values. Quantiles of one metric share the error between them.
fn each_figure<V>(
    values_of: impl Fn(&Compared) -> Vec<V>,
    estimate: impl Fn(&Compared, Vec<V>, f64) -> Option<FigureRatio>,
) -> Vec<FigureRatio> {
    let measured: Vec<(&Compared, Vec<V>)> = COMPARED
        .iter()
        .map(|one| (one, values_of(one)))
        .filter(|(_, values)| !values.is_empty())
        .collect();
    let mut quantiles: BTreeMap<&str, usize> = BTreeMap::new();
    for (one, _) in &measured {
        *quantiles.entry(one.metric.name).or_default() += usize::from(one.quantile.is_some());
    }
    let estimates = measured.into_iter().filter_map(|(one, values)| {
        let family = quantiles.get(one.metric.name).copied().unwrap_or(1).max(1);
        estimate(one, values, 1.0 - (1.0 - CONFIDENCE) / family as f64)
    });
    estimates.collect()
}

fn positive(figures: &Figures, name: &str) -> Option<f64> {
    figures.get(name).copied().filter(|value| value.is_finite() && *value > 0.0)
}

/// The logarithms of one side's figures.
struct LogSpread {
    mean: f64,
    /// The variance of the mean; not a number of one figure.
    variance_of_mean: f64,
    count: f64,
}

impl LogSpread {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
        Self { mean, variance_of_mean: squares / (count - 1.0) / count, count }
    }
}

/// Welch's interval with the degrees of freedom of Welch and Satterthwaite.
fn welch_half_width(a: &LogSpread, b: &LogSpread, confidence: f64) -> Option<f64> {
    let variance = a.variance_of_mean + b.variance_of_mean;
    let part = |side: &LogSpread| side.variance_of_mean.powi(2) / (side.count - 1.0);
    let degrees = variance.powi(2) / (part(a) + part(b));
    // Equal figures have no spread: nothing can be said of them.
    two_sided(confidence, degrees).map(|t| t * variance.sqrt())
}
