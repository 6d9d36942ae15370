//! The median and its exact confidence interval.
//!
//! The median of a distribution lies between the k-th least and the k-th greatest of n independent observations with
//! probability 1 - 2 P(B < k), where B is binomial(n, 1/2) (David and Nagaraja, Order Statistics, 3rd edition,
//! section 7.1). No distribution is assumed.

/// The most observations that an interval is computed for: 2^-n is a number of 64 bits until then.
pub const MOST_VALUES: usize = 1_000;

/// The largest k whose interval covers the median with this confidence; `None`: too few observations, or more than
/// [`MOST_VALUES`].
pub fn rank(count: usize, confidence: f64) -> Option<usize> {
    if count > MOST_VALUES {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    // P(B = 0), then P(B = k) from P(B = k - 1).
    let mut probability = 0.5_f64.powi(i32::try_from(count).ok()?);
    let (mut below, mut best) = (0.0, None);
    for k in 1..=count / 2 {
        below += probability;
        if below > tail {
            break;
        }
        best = Some(k);
        probability *= (count - k + 1) as f64 / k as f64;
    }
    best
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(sorted.len() / 2 - 1).map(|lower| f64::midpoint(*lower, upper))
}

/// The interval that covers the median with this confidence; `None`: too few observations.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let k = rank(values.len(), confidence)?;
    let sorted = sorted(values);
    Some((*sorted.get(k - 1)?, *sorted.get(sorted.len() - k)?))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        // 2 * P(B < k) at most 0.05.
        for (count, expected) in [
            (0, None),
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (12, Some(3)),
            (15, Some(4)),
            (20, Some(6)),
        ] {
            assert_eq!(rank(count, 0.95), expected, "{count}");
        }
        assert_eq!((rank(15, 0.99), rank(7, 0.99), rank(8, 0.99)), (Some(3), None, Some(1)));
        assert_eq!((rank(1_000, 0.95), rank(1_001, 0.95)), (Some(469), None));
    }

    #[test]
    fn the_benchmark_takes_its_ranks_from_here() {
        let table = include_str!("../../../../benches/comparison/ranks.json");
        let table: serde_json::Value = serde_json::from_str(table).unwrap();
        assert_eq!(table["confidence"], 0.95);
        let ranks = table["ranks"].as_array().unwrap();
        assert_eq!(ranks.len(), MOST_VALUES + 1);
        for (count, expected) in ranks.iter().enumerate() {
            assert_eq!(expected.as_u64(), Some(rank(count, 0.95).unwrap_or(0) as u64), "{count}");
        }
    }

    #[test]
    fn median_and_interval_are_observations_or_their_middle() {
        assert_eq!(
            (median(&[]), median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])),
            (None, Some(2.0), Some(2.5))
        );
        let values: Vec<f64> = (1..=15).rev().map(f64::from).collect();
        assert_eq!(median_interval(&values, 0.95), Some((4.0, 12.0)));
        assert_eq!(median_interval(&values[..5], 0.95), None);
    }
}
