//! Values on axes: their steps, and how they read.

use linerate_measure::units::{render_bytes, render_count, render_duration_ns, render_rate};

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Bits per second.
    Rate,
    /// Things per second.
    PerSecond,
    /// Nanoseconds.
    Duration,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// Hundredths.
    Percent,
}

impl Quantity {
    /// What the script calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::PerSecond => "per_second",
            Self::Duration => "duration",
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Percent => "percent",
        }
    }

    /// A value with its unit and no needless zeros: `2 Gbit/s`, `1.5 ms`.
    pub(crate) fn render(self, value: f64) -> String {
        let whole = |value: f64| value.max(0.0).round() as u64;
        if value == 0.0 {
            return "0".to_owned();
        }
        let text = match self {
            Self::Rate => render_rate(value),
            Self::PerSecond => format!("{} /s", render_count(value)),
            Self::Duration => render_duration_ns(whole(value)),
            Self::Bytes => render_bytes(whole(value)),
            Self::Count => render_count(value),
            Self::Percent => format!("{value:.2} %"),
        };
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        if number.contains('.') {
            return format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.'));
        }
        text
    }
}

/// The step of an axis from 0 to `high` that has about `count` of them: 1, 2, 2.5 or 5 times a power of ten.
pub(crate) fn step(high: f64, count: f64) -> f64 {
    let rough = high / count;
    if !rough.is_finite() || rough <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// The end of an axis that holds `most`, and its marks, 0 among them.
pub(crate) fn axis(most: f64) -> (f64, Vec<f64>) {
    let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
    let step = step(most, 4.0);
    // The greatest value stays below the frame.
    let high = most * 1.04;
    let marks = (0..8).map(|number| f64::from(number) * step);
    (high, marks.take_while(|mark| *mark <= high).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_no_needless_zeros() {
        for (quantity, value, text) in [
            (Quantity::Rate, 2e9, "2 Gbit/s"),
            (Quantity::Rate, 9.41e9, "9.41 Gbit/s"),
            (Quantity::Rate, 100e6, "100 Mbit/s"),
            (Quantity::Duration, 1_500_000.0, "1.5 ms"),
            (Quantity::Duration, -1.0, "0 ns"),
            (Quantity::Rate, 0.0, "0"),
            (Quantity::Bytes, 64_000.0, "64 kB"),
            (Quantity::Count, 0.0, "0"),
            (Quantity::PerSecond, 20_000.0, "20k /s"),
            (Quantity::Percent, 150.0, "150 %"),
        ] {
            assert_eq!(quantity.render(value), text);
        }
    }

    #[test]
    fn an_axis_holds_its_values_and_has_few_marks() {
        for most in [1e-9, 0.3, 1.0, 9.99, 10.0, 8e9, 1e300] {
            let (high, marks) = axis(most);
            assert!(high > most && (2..=6).contains(&marks.len()), "{most}: {marks:?}");
        }
        for most in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(axis(most).0 > 1.0);
        }
    }
}
