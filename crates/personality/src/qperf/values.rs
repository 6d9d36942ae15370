//! Values of options: numbers, sizes, seconds.

/// A number with an optional suffix: k, m, g, t, p, e are powers of 1000, the capital letters powers of
/// 1024. `None` where it is none, or above 2^62 - 1, the largest number of QUIC.
pub fn parse_size(text: &str) -> Option<u64> {
    let letter = text.chars().next_back().filter(char::is_ascii_alphabetic);
    let digits = letter.map_or(text, |_| text.get(..text.len() - 1).unwrap_or_default());
    let factor = letter.map_or(Some(1), |letter| {
        let steps = "kmgtpe".find(letter.to_ascii_lowercase())? as u32 + 1;
        let step: u64 = if letter.is_ascii_uppercase() { 1024 } else { 1000 };
        step.checked_pow(steps)
    })?;
    let bytes = parse_whole::<u64>(digits)?.checked_mul(factor)?;
    (bytes < 1 << 62).then_some(bytes)
}

/// Decimal digits and nothing else.
pub fn parse_whole<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_whole)
}

/// Seconds between reports: 0.001 to 86400, with a fraction.
pub fn parse_interval(text: &str) -> Option<f64> {
    let seconds: f64 = text.parse().ok()?;
    (0.001..=86_400.0).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_suffixes_are_powers_of_1000_and_capitals_of_1024() {
        for (text, bytes) in [
            ("7", 7),
            ("1k", 1_000),
            ("1K", 1_024),
            ("4M", 4 << 20),
            ("2g", 2_000_000_000),
            ("3T", 3 << 40),
            ("1p", 1_000_000_000_000_000),
            ("1E", 1 << 60),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in
            ["", "M", "1.5M", "-1", "+1", "1MB", "1x", "4E", "99999999999999999999", "1 M", "1ü"]
        {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn seconds_have_fractions_and_limits() {
        assert_eq!(parse_interval("0.1"), Some(0.1));
        for text in ["", "0", "-1", "nan", "inf", "1e9", "0.0001", "x"] {
            assert_eq!(parse_interval(text), None, "{text}");
        }
    }
}
