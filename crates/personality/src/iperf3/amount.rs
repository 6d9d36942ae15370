//! Numbers as iperf3 reads and prints them.
//!
//! Read: a decimal number and perhaps one letter of K, M, G or T in either case; 1024 a step for
//! sizes and counts, 1000 for rates. Printed: four places and a unit, 1024 a step for bytes and
//! 1000 for bits. docs/compat/iperf3.md has both.

/// What a letter behind a number is worth a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sizes, counts and times: K is 1024.
    Binary,
    /// Rates: K is 1000.
    Decimal,
}

impl Step {
    fn factor(self) -> f64 {
        match self {
            Self::Binary => 1024.0,
            Self::Decimal => 1000.0,
        }
    }
}

/// A number with its letter. What follows the letter is not looked at, as in the original;
/// None where there is no number, the letter is none of KMGT, or the number is negative or too
/// large to count.
pub fn parse_amount(text: &str, step: Step) -> Option<u64> {
    let (number, rest) = parse_leading_float(text)?;
    let steps = match rest.chars().next() {
        None => 0,
        Some('k' | 'K') => 1,
        Some('m' | 'M') => 2,
        Some('g' | 'G') => 3,
        Some('t' | 'T') => 4,
        Some(_) => return None,
    };
    let value = number * step.factor().powi(steps);
    // Nearly 2^63: the original's own limit is not far above, and no test needs as much.
    if !(0.0..9.2e18).contains(&value) {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    Some(value as u64)
}

/// The decimal number at the beginning, and what follows it; as C's `strtod` without its
/// hexadecimal numbers, infinities and not-a-numbers.
pub fn parse_leading_float(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let mut end;
    let mut longest = None;
    let mut exponent = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '0'..='9' => end = at + 1,
            '+' | '-' if at == 0 || ends_with_e(text.get(..at)) => continue,
            '.' if !exponent => end = at + 1,
            'e' | 'E' if longest.is_some() && !exponent => {
                exponent = true;
                continue;
            }
            _ => break,
        }
        if let Some(value) = text.get(..end).and_then(|prefix| prefix.parse::<f64>().ok()) {
            longest = Some((value, end));
        }
    }
    let (value, end) = longest?;
    Some((value, text.get(end..)?))
}

fn ends_with_e(prefix: Option<&str>) -> bool {
    prefix.is_some_and(|prefix| prefix.ends_with(['e', 'E']))
}

/// The integer at the beginning, as C's `atoi`; None where there is none.
pub fn parse_leading_integer(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let sign = text.len() - digits.len();
    text.get(..sign + count)?.parse().ok()
}

/// The integer at the beginning in the base that its prefix names, as C's `strtol` with base 0:
/// `52`, `064` and `0x34` are the same. None where there is none.
pub fn parse_any_base(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let count = digits.chars().take_while(|letter| letter.is_digit(base)).count();
    let value = i64::from_str_radix(digits.get(..count)?, base).ok()?;
    Some(if negative { -value } else { value })
}

/// In what unit rates are printed: the letters of `-f`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateFormat {
    /// Bits, with the step that fits.
    #[default]
    Fitting,
    /// Bits with 0 to 4 steps of 1000: kmgt.
    Bits(u8),
    /// Bytes with 0 to 4 steps of 1024: KMGT.
    Bytes(u8),
}

impl RateFormat {
    /// The format that a letter names.
    pub fn parse(letter: char) -> Option<Self> {
        let steps = |letters: &str| letters.find(letter).and_then(|at| u8::try_from(at + 1).ok());
        steps("kmgt").map(Self::Bits).or_else(|| steps("KMGT").map(Self::Bytes))
    }
}

const BYTE_UNITS: [&str; 5] = ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"];
const BIT_UNITS: [&str; 5] = ["bits", "Kbits", "Mbits", "Gbits", "Tbits"];

/// An amount of bytes: `1.10 GBytes`.
pub fn render_bytes(bytes: f64) -> String {
    let (value, unit) = fit(bytes, 1024.0, &BYTE_UNITS);
    render_four_places(value, unit)
}

/// A rate without its `/sec`: `9.42 Gbits`.
pub fn render_rate(bytes_per_second: f64, format: RateFormat) -> String {
    let bits = bytes_per_second * 8.0;
    let (value, unit) = match format {
        RateFormat::Fitting => fit(bits, 1000.0, &BIT_UNITS),
        RateFormat::Bits(steps) => (
            bits / 1000f64.powi(i32::from(steps)),
            BIT_UNITS.get(usize::from(steps)).copied().unwrap_or_default(),
        ),
        RateFormat::Bytes(steps) => (
            bytes_per_second / 1024f64.powi(i32::from(steps)),
            BYTE_UNITS.get(usize::from(steps)).copied().unwrap_or_default(),
        ),
    };
    render_four_places(value, unit)
}

fn fit<'a>(value: f64, step: f64, units: &[&'a str; 5]) -> (f64, &'a str) {
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while value >= step {
        let Some(next) = units.next() else { break };
        value /= step;
        unit = next;
    }
    (value, unit)
}

fn render_four_places(value: f64, unit: &str) -> String {
    if value < 9.995 {
        format!("{value:4.2} {unit}")
    } else if value < 99.95 {
        format!("{value:4.1} {unit}")
    } else {
        format!("{value:4.0} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_one_letter() {
        assert_eq!(parse_amount("10K", Step::Binary), Some(10_240));
        assert_eq!(parse_amount("10k", Step::Decimal), Some(10_000));
        assert_eq!(parse_amount("1.5M", Step::Decimal), Some(1_500_000));
        assert_eq!(parse_amount("2Gbit", Step::Decimal), Some(2_000_000_000));
        assert_eq!(parse_amount("1e3", Step::Binary), Some(1000));
        for wrong in ["", "abc", "5q", "-5", "1e300", "inf", "0x10"] {
            assert_eq!(parse_amount(wrong, Step::Binary), None, "{wrong}");
        }
    }

    #[test]
    fn integers_may_have_something_behind_them() {
        assert_eq!(parse_leading_integer("10s"), Some(10));
        assert_eq!(parse_leading_integer(" -3.5"), Some(-3));
        assert_eq!(parse_leading_integer("s10"), None);
        assert_eq!(parse_any_base("0x34"), Some(52));
        assert_eq!(parse_any_base("064"), Some(52));
        assert_eq!(parse_any_base("52"), Some(52));
        assert_eq!(parse_any_base("0"), Some(0));
        assert_eq!(parse_any_base("-1"), Some(-1));
        assert_eq!(parse_any_base("ef"), None);
    }

    /// Values that the original printed.
    #[test]
    fn four_places_are_printed() {
        assert_eq!(render_bytes(0.0), "0.00 Bytes");
        assert_eq!(render_bytes(131_072.0), " 128 KBytes");
        assert_eq!(render_bytes(15_808.0 * 64.0), " 988 KBytes");
        assert_eq!(render_bytes(1_048_575.0), "1024 KBytes");
        assert_eq!(render_bytes(8192.0), "8.00 KBytes");
        assert_eq!(render_bytes(9.9949e9), "9.31 GBytes");
        assert_eq!(render_rate(131_072.0 / 1.000_812, RateFormat::Fitting), "1.05 Mbits");
        assert_eq!(render_rate(0.0, RateFormat::Fitting), "0.00 bits");
        assert_eq!(render_rate(1_863_861_375.0, RateFormat::Bits(1)), "14910891 Kbits");
        assert_eq!(render_rate(1_943_011_328.0, RateFormat::Bytes(2)), "1853 MBytes");
        assert_eq!(RateFormat::parse('k'), Some(RateFormat::Bits(1)));
        assert_eq!(RateFormat::parse('T'), Some(RateFormat::Bytes(4)));
        assert_eq!(RateFormat::parse('x'), None);
    }
}
