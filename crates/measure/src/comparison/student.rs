//! Student's distribution: what an interval over a few runs needs.

use std::f64::consts::PI;

/// The t that this share of Student's distribution lies within, to both sides of 0: 0.95 and 10 degrees of freedom
/// give 2.228. The degrees need not be whole. `None`: none, or no share between 0 and 1.
pub(crate) fn two_sided(confidence: f64, degrees: f64) -> Option<f64> {
    let makes_sense = degrees > 0.0 && confidence > 0.0 && confidence < 1.0;
    let outside = |t: f64| regularised_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5);
    let (mut low, mut high) = (0.0, 1.0);
    while makes_sense && outside(high) > 1.0 - confidence {
        (low, high) = (high, high * 2.0);
        if high > 1e12 {
            return None;
        }
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if outside(middle) > 1.0 - confidence { low = middle } else { high = middle }
    }
    makes_sense.then(|| f64::midpoint(low, high))
}

/// The regularised incomplete beta function, by its continued fraction (Press et al., Numerical Recipes, 3rd edition,
/// section 6.4).
pub(crate) fn regularised_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - regularised_beta(1.0 - x, b, a);
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    let bounded = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / bounded(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / bounded(1.0 + term * d);
            c = bounded(1.0 + term / c);
            fraction *= d * c;
        }
        if (fraction / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction / a
}

/// The logarithm of the gamma function, by Lanczos' approximation (g = 7, 9 terms).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let terms = TERMS.iter().zip(1_u8..).map(|(term, place)| term / (x + f64::from(place)));
    let sum = 0.999_999_999_999_809_9 + terms.sum::<f64>();
    let t = x + 7.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (confidence, degrees, expected) in [
            (0.95, 1.0, 12.706),
            (0.95, 2.0, 4.303),
            (0.95, 10.0, 2.228),
            (0.99, 10.0, 3.169),
            (0.95, 30.0, 2.042),
            (0.95, 2.5, 3.575),
            (0.95, 1e6, 1.960),
        ] {
            let t = two_sided(confidence, degrees).unwrap();
            assert!((t - expected).abs() < 0.001_5, "{confidence} {degrees}: {t}");
        }
        assert_eq!(
            (two_sided(0.95, 0.0), two_sided(1.0, 3.0), two_sided(0.0, 3.0)),
            (None, None, None)
        );
    }
}
