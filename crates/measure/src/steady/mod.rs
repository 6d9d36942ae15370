//! Whether the rate of one run was steady: where its warm-up ended, and how much it varied.
//!
//! * The warm-up is found by MSER-5 (White, An effective truncation heuristic for bias reduction in simulation output,
//!   1997): of all places to cut, that after which the mean is known best, on means of 5 intervals. It counts only if
//!   what is cut off was slower than the rest by 2 standard errors, so a steady run is seldom cut. Where the first half
//!   of the rest is slower than the second by 5 % and by 4 standard errors, the run is not steady.
//! * A rate that changes for good is told by the place where the sum of its deviations from the mean is farthest from 0
//!   (CUSUM; Page, Continuous inspection schemes, 1954). It counts if the rates before and after it differ by a quarter
//!   and by 6 standard errors, as the place was searched for.
//! * Intervals beside each other are alike, so n of them know the mean as well as fewer independent ones. How many is
//!   told by the correlation of neighbours (a first-order autoregressive model), corrected for short series.
//!
//! All of this speaks of the one run. How runs vary is told by several of them ([`crate::repeats`]).

mod rates;
mod shares;
#[cfg(test)]
mod tests;

pub(crate) use rates::measured_intervals;
pub use rates::{RateChange, Steadiness, steadiness};
pub use shares::steady_fairness;

use crate::comparison::two_sided;

/// The fewest intervals that a warm-up is looked for in.
pub const LEAST_INTERVALS: usize = 40;
/// The intervals of a batch.
const BATCH: usize = 5;
/// The largest share of a run that may be cut off; a longer warm-up leaves too little.
const MOST_CUT: f64 = 0.4;
/// The standard errors by which a warm-up is slower than the rest.
const SLOWER_BY_ERRORS: f64 = 2.0;
/// The standard errors by which the first half of what is left is slower than the second, where the rate still rises.
/// More than for a warm-up, since a run without an answer costs more than a run that is cut a little.
const RISES_BY_ERRORS: f64 = 4.0;
/// The least share of the faster half by which the two halves differ then: a straight rise by a tenth. Standard errors
/// alone would tell of a drift by a thousandth where intervals hardly vary.
const RISES_BY: f64 = 0.05;

/// The rates before and after a change differ by so many standard errors, and by such a share of the higher one.
const CHANGED_BY_ERRORS: f64 = 6.0;
pub(crate) const CHANGED_BY: f64 = 0.25;
/// The fewest intervals on either side of a change: a shorter time is a warm-up, or a disturbance.
const LEAST_BESIDE_CHANGE: usize = 10;

/// Where the warm-up of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// It has so many intervals; 0: there is none.
    Intervals(usize),
    /// The rate rose for more than two fifths of the run.
    NotSteady,
}

/// Finds the warm-up in a series of rates; `None`: fewer than [`LEAST_INTERVALS`].
pub fn find_warm_up(values: &[f64]) -> Option<WarmUp> {
    if values.len() < LEAST_INTERVALS {
        return None;
    }
    let batches: Vec<f64> = values.chunks_exact(BATCH).map(mean).collect();
    let last = (MOST_CUT * batches.len() as f64) as usize;
    // Of equal places the first.
    let mut best = (f64::INFINITY, 0);
    for cut in 0..=last {
        let rest = batches.get(cut..).unwrap_or_default();
        let error = variance(rest) / rest.len() as f64;
        if error < best.0 {
            best = (error, cut * BATCH);
        }
    }
    let (warm_up, rest) = values.split_at(best.1);
    let (early, late) = rest.split_at(rest.len() / 2);
    Some(match () {
        () if rises(early, late) => WarmUp::NotSteady,
        () if is_slower(warm_up, rest) => WarmUp::Intervals(warm_up.len()),
        () => WarmUp::Intervals(0),
    })
}

/// The place from which on the rate is another than before, for good; `None`: there is none, or the series has fewer
/// than [`LEAST_INTERVALS`].
pub fn find_change(values: &[f64]) -> Option<usize> {
    if values.len() < LEAST_INTERVALS {
        return None;
    }
    let middle = mean(values);
    let (mut sum, mut farthest) = (0.0_f64, (0.0, 0));
    for (place, value) in (1..).zip(values) {
        sum += value - middle;
        let is_beside = (LEAST_BESIDE_CHANGE..=values.len() - LEAST_BESIDE_CHANGE).contains(&place);

        if is_beside && sum.abs() > farthest.0 {
            farthest = (sum.abs(), place);
        }
    }
    if farthest.1 == 0 {
        return None;
    }
    let (before, after) = values.split_at(farthest.1);
    // What the rates vary around their own means.
    let around = |values: &[f64]| {
        let middle = mean(values);
        values.iter().map(|value| value - middle).collect::<Vec<f64>>()
    };
    let error = error_of_difference(before, after, &[around(before), around(after)].concat());
    let differ = (mean(after) - mean(before)).abs();
    let most = mean(before).max(mean(after));
    (differ > CHANGED_BY_ERRORS * error && differ > CHANGED_BY * most).then_some(farthest.1)
}

/// Whether a warm-up is slower than the rest.
fn is_slower(warm_up: &[f64], rest: &[f64]) -> bool {
    // A rate that still rises varies no more for that.
    let error = error_of_difference(warm_up, rest, &without_trend(rest));
    !warm_up.is_empty() && mean(rest) - mean(warm_up) > SLOWER_BY_ERRORS * error
}

/// Whether a rate still rises from the first half to the second.
fn rises(early: &[f64], late: &[f64]) -> bool {
    // The residuals of both halves count: a dip in the early half lowers its mean, and widens the error likewise.
    let error =
        error_of_difference(early, late, &[without_trend(early), without_trend(late)].concat());
    let rise = mean(late) - mean(early);
    let most = mean(late).abs().max(mean(early).abs());
    rise > RISES_BY_ERRORS * error && rise > RISES_BY * most
}

/// The standard error of the difference of two means, by residuals whose own mean is 0.
fn error_of_difference(before: &[f64], after: &[f64], residuals: &[f64]) -> f64 {
    let alike = likeness(residuals);
    let independent =
        |values: &[f64]| (values.len() as f64 * (1.0 - alike) / (1.0 + alike)).max(1.0);
    (variance(residuals) * (1.0 / independent(before) + 1.0 / independent(after))).sqrt()
}

/// Half the width of the 95 % interval of a series' mean, in the unit of its values; `None`: too few of them are
/// independent.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let alike = likeness(values);
    let independent = values.len() as f64 * (1.0 - alike) / (1.0 + alike);
    let t = two_sided(0.95, independent - 1.0)?;
    Some(t * (variance(values) / independent).sqrt())
}

/// The correlation of neighbours, from 0 to below 1. A short series shows less of it than there is.
fn likeness(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let products: f64 = values
        .windows(2)
        .filter_map(|pair| Some((pair.first()? - middle) * (pair.last()? - middle)))
        .sum();
    let seen = products / squares;
    (seen + (1.0 + 4.0 * seen) / values.len() as f64).clamp(0.0, 0.999)
}

/// The residuals of values around the straight line that fits them best.
fn without_trend(values: &[f64]) -> Vec<f64> {
    let (middle, center) = (mean(values), values.len().saturating_sub(1) as f64 / 2.0);
    let distance = |place: usize| place as f64 - center;
    let squares: f64 = (0..values.len()).map(|place| distance(place).powi(2)).sum();
    let products: f64 =
        values.iter().enumerate().map(|(place, value)| distance(place) * (value - middle)).sum();
    let slope = if squares > 0.0 { products / squares } else { 0.0 };
    values
        .iter()
        .enumerate()
        .map(|(place, value)| value - middle - slope * distance(place))
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn variance(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    squares / values.len().saturating_sub(1).max(1) as f64
}
