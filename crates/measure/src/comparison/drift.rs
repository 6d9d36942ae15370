//! Whether figures changed in the course of a comparison, whatever was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interval::median;
use super::order::Side;

/// A trend over the runs in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// The figure.
    pub name: String,
    /// The change from one run to the next, percent: the median of the slopes between all runs (Theil and Sen).
    pub per_run_percent: f64,
    /// How likely a trend as strong is where there is none (Mann and Kendall).
    pub p: f64,
}

/// The drift of a figure over runs in the order in which they were made, each side about its own median; `None`: fewer
/// than four runs.
pub(crate) fn drift_of(name: &str, runs: &[(Side, f64)]) -> Option<Drift> {
    let logs: Vec<(Side, f64)> = runs
        .iter()
        .filter(|(_, value)| *value > 0.0)
        .map(|(side, value)| (*side, value.ln()))
        .collect();
    if logs.len() < 4 {
        return None;
    }
    let middle = |side: Side| {
        let of_side: Vec<f64> =
            logs.iter().filter(|(one, _)| *one == side).map(|(_, log)| *log).collect();
        median(&of_side).unwrap_or_default()
    };
    let middles = Side::BOTH.map(middle);
    let rest: Vec<f64> = logs.iter().map(|(side, log)| log - middles[side.index()]).collect();
    let (mut slopes, mut score) = (Vec::new(), 0_i64);
    for (place, early) in rest.iter().enumerate() {
        for (distance, late) in rest[place + 1..].iter().enumerate() {
            slopes.push((late - early) / (distance + 1) as f64);
            score += i64::from(late > early) - i64::from(late < early);
        }
    }
    let count = rest.len() as f64;
    let variance = count * (count - 1.0) * (2.0 * count + 5.0) / 18.0;
    // Continuity: the score moves in steps of 2.
    let z = (score.abs() - 1).max(0) as f64 / variance.sqrt();
    let per_run_percent = median(&slopes)?.exp_m1() * 100.0;
    Some(Drift { name: name.to_owned(), per_run_percent, p: outside_normal(z) })
}

/// How likely a normal number is at least this far from its mean, to both sides, in standard deviations; within 2e-7
/// (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26).
fn outside_normal(z: f64) -> f64 {
    const TERMS: [f64; 5] =
        [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    TERMS.iter().fold(0.0, |sum, term| sum * t + term) * t * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_the_normal_distribution_are_those_of_the_tables() {
        for (z, expected) in [(0.0, 1.0), (1.0, 0.317_31), (1.959_96, 0.05), (3.0, 0.002_70)] {
            assert!((outside_normal(z) - expected).abs() < 1e-5, "{z}: {}", outside_normal(z));
        }
    }

    #[test]
    fn a_trend_is_told_and_a_difference_between_the_sides_is_none() {
        let sides = [Side::A, Side::B, Side::B, Side::A];
        let runs = |per_run: f64, of_b: f64| -> Vec<(Side, f64)> {
            let value = |(place, side): (usize, &Side)| {
                let wobble = if place % 3 == 0 { 1.01 } else { 0.99 };
                (
                    *side,
                    100.0
                        * wobble
                        * per_run.powi(place as i32)
                        * if *side == Side::B { of_b } else { 1.0 },
                )
            };
            sides.iter().cycle().take(24).enumerate().map(value).collect()
        };
        let trend = drift_of("goodput_bps", &runs(0.99, 1.0)).unwrap();
        assert!((trend.per_run_percent + 1.0).abs() < 0.2 && trend.p < 0.01, "{trend:?}");
        let level = drift_of("goodput_bps", &runs(1.0, 2.0)).unwrap();
        assert!(level.per_run_percent.abs() < 0.2 && level.p > 0.2, "{level:?}");
        assert_eq!(drift_of("goodput_bps", &runs(1.0, 1.0)[..3]), None);
    }
}
