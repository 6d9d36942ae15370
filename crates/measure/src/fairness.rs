//! How evenly flows shared what there was.

/// Jain's fairness index over the flows' shares: `(sum x)^2 / (n * sum x^2)`, from 1/n (one flow
/// has all) to 1 (all have the same).
///
/// Source: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination for
/// Resource Allocation in Shared Computer Systems", DEC Research Report TR-301, 1984.
///
/// `None` where the index isn't defined or says nothing: fewer than two flows, nothing shared at
/// all, or a share that is negative or not finite.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    if shares.len() < 2 || shares.iter().any(|share| !share.is_finite() || *share < 0.0) {
        return None;
    }
    let greatest = shares.iter().copied().fold(0.0, f64::max);
    if greatest <= 0.0 {
        return None;
    }
    // The index doesn't change with the unit, so shares relative to the greatest can't overflow.
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| {
        let relative = share / greatest;
        (sum + relative, squares + relative * relative)
    });
    Some(sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::jain_index;

    #[test]
    fn equal_shares_are_perfectly_fair() {
        assert_eq!(jain_index(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
    }

    #[test]
    fn one_flow_with_everything_gives_one_over_n() {
        assert_eq!(jain_index(&[0.0, 8.0, 0.0, 0.0]), Some(0.25));
    }

    #[test]
    fn the_paper_example_of_half_the_users_gives_half() {
        assert_eq!(jain_index(&[1.0, 1.0, 0.0, 0.0]), Some(0.5));
    }

    #[test]
    fn undefined_where_there_is_nothing_to_compare() {
        assert_eq!(jain_index(&[]), None);
        assert_eq!(jain_index(&[3.0]), None);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
        assert_eq!(jain_index(&[1.0, f64::NAN]), None);
        assert_eq!(jain_index(&[1.0, -1.0]), None);
    }

    proptest! {
        #[test]
        fn bounded_and_free_of_scale(
            shares in proptest::collection::vec(1.0..1e12_f64, 2..50),
            scale in 1e-3..1e200_f64,
        ) {
            let index = jain_index(&shares).unwrap();
            let n = shares.len() as f64;
            prop_assert!(index >= 1.0 / n - 1e-12 && index <= 1.0 + 1e-12);
            let scaled: Vec<f64> = shares.iter().map(|share| share * scale).collect();
            prop_assert!((jain_index(&scaled).unwrap() - index).abs() < 1e-9);
        }
    }
}
