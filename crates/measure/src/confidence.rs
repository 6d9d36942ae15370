//! How far the mean of a few values may be from the true mean.

/// Student's t, two-sided, for 1 to 30 degrees of freedom; more count as 30. `level_percent` is 95 or 99.
pub fn student(level_percent: u32, freedom: u32) -> f64 {
    const OF_95: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    const OF_99: [f64; 30] = [
        63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
        2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
        2.771, 2.763, 2.756, 2.750,
    ];
    let place = usize::try_from(freedom.clamp(1, 30) - 1).unwrap_or(0);
    let table = if level_percent == 95 { OF_95 } else { OF_99 };
    table.get(place).copied().unwrap_or(f64::INFINITY)
}

/// Half the width of the confidence interval of the values' mean; `None` of fewer than two values.
/// `level_percent` is 95 or 99.
pub fn half_width(values: &[f64], level_percent: u32) -> Option<f64> {
    let freedom =
        u32::try_from(values.len().checked_sub(1)?).ok().filter(|freedom| *freedom > 0)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / f64::from(freedom) / count).sqrt();
    Some(student(level_percent, freedom) * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_students() {
        // Standard deviation 1, standard error 1 / sqrt(3), t(95 %, 2) = 4.303.
        let width = half_width(&[9.0, 10.0, 11.0], 95).unwrap();
        assert!((width - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(half_width(&[5.0; 4], 99), Some(0.0));
        assert_eq!(half_width(&[5.0], 95), None);
        assert_eq!(half_width(&[], 95), None);
    }
}
