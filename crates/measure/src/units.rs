//! Sizes, rates, durations and counts as people write them: one grammar, one parser, exact.
//!
//! ```text
//! quantity = number [" "] [suffix]
//! number   = digits ["." digits]
//! size     : k M G T P E (powers of 1000)  Ki Mi Gi Ti Pi Ei (powers of 1024), then an optional B
//! rate     : the same prefixes, then an optional bit/s or bps
//! duration : ns us ms s min h (µs and m are taken too); without a suffix: seconds
//! count    : the same prefixes as a size, nothing after them
//! ```
//!
//! K is taken for k, nothing else is forgiven: no sign, no exponent, no stray text. A value must
//! be a whole number of its base unit (byte, bit per second, nanosecond, one) and fit 64 bits.
//! The arithmetic is done in integers, so what was written is what is meant.

mod render;

pub use render::{render_bytes, render_count, render_duration_ns, render_rate};

/// A quantity that can't be read. The text shows what was written, what is wrong with it, and what
/// to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} {problem}: {grammar}")]
pub struct UnitError {
    text: String,
    problem: String,
    grammar: &'static str,
}

/// Reads a size in bytes: `1500`, `1500B`, `64k` (64,000), `64Ki` or `64KiB` (65,536).
///
/// # Errors
///
/// [`UnitError`] where the text isn't of the module's grammar, or isn't a whole number of bytes
/// below 2^64.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    parse(text, &SIZE)
}

/// Reads a rate in bits per second: `10G`, `2.5Gbit/s`, `100Mbps`.
///
/// # Errors
///
/// [`UnitError`] where the text isn't of the module's grammar, or isn't a whole number of bits per
/// second below 2^64.
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    parse(text, &RATE)
}

/// Reads a duration in nanoseconds: `500ms`, `10s`, `1.5h`; a plain number is in seconds.
///
/// # Errors
///
/// [`UnitError`] where the text isn't of the module's grammar, or isn't a whole number of
/// nanoseconds below 2^64.
pub fn parse_duration(text: &str) -> Result<u64, UnitError> {
    parse(text, &DURATION)
}

/// Reads a number of things: `10`, `10k` (10,000), `1Mi` (1,048,576).
///
/// # Errors
///
/// [`UnitError`] where the text isn't of the module's grammar, or isn't a whole number below 2^64.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    parse(text, &COUNT)
}

/// One sort of quantity: its words, and what its suffixes stand for.
struct Quantity {
    base_unit: &'static str,
    grammar: &'static str,
    factor_of: fn(&str) -> Option<u64>,
}

const SIZE: Quantity = Quantity {
    base_unit: "bytes",
    grammar: "write a size such as 1500, 64k (64,000 bytes), 64Ki (65,536 bytes) or 1.5MiB, \
              with k M G T P E (powers of 1000) or Ki Mi Gi Ti Pi Ei (powers of 1024)",
    factor_of: |suffix| prefix_factor(suffix.strip_suffix('B').unwrap_or(suffix)),
};

const RATE: Quantity = Quantity {
    base_unit: "bits per second",
    grammar: "write a rate such as 800k, 10G or 2.5Gbit/s (bits per second), \
              with k M G T P E (powers of 1000) or Ki Mi Gi Ti Pi Ei (powers of 1024)",
    factor_of: |suffix| {
        let prefix = suffix.strip_suffix("bit/s").or_else(|| suffix.strip_suffix("bps"));
        prefix_factor(prefix.unwrap_or(suffix))
    },
};

const DURATION: Quantity = Quantity {
    base_unit: "nanoseconds",
    grammar: "write a duration such as 500ms, 10s or 1.5h, with ns us ms s min (or m) h \
              (without a suffix: seconds)",
    factor_of: duration_factor,
};

const COUNT: Quantity = Quantity {
    base_unit: "things to count",
    grammar: "write a number such as 10, 10k (10,000) or 1Mi (1,048,576), \
              with k M G T P E (powers of 1000) or Ki Mi Gi Ti Pi Ei (powers of 1024)",
    factor_of: prefix_factor,
};

fn prefix_factor(prefix: &str) -> Option<u64> {
    Some(match prefix {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "P" => 1_000_000_000_000_000,
        "E" => 1_000_000_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        "Ei" => 1 << 60,
        _ => return None,
    })
}

fn duration_factor(suffix: &str) -> Option<u64> {
    Some(match suffix {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" | "min" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    })
}

fn parse(text: &str, quantity: &Quantity) -> Result<u64, UnitError> {
    scan(text, quantity).map_err(|problem| UnitError {
        text: quoted(text),
        problem,
        grammar: quantity.grammar,
    })
}

fn scan(text: &str, quantity: &Quantity) -> Result<u64, String> {
    if text.is_empty() {
        return Err("is empty".into());
    }
    if text.starts_with('-') {
        return Err("is negative".into());
    }
    let (whole, rest) = split_digits(text);
    if whole.is_empty() {
        return Err("doesn't begin with a digit".into());
    }
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("0", rest),
    };
    if fraction.is_empty() {
        return Err("has no digit after its point".into());
    }
    let suffix = match rest.strip_prefix(' ') {
        Some("") => return Err("ends with a space".into()),
        Some(suffix) => suffix,
        None => rest,
    };
    let factor = (quantity.factor_of)(suffix)
        .ok_or_else(|| format!("ends with {}, which is no suffix here", quoted(suffix)))?;
    let base_units = scale_whole(whole, factor)
        .zip(Some(scale_fraction(fraction, factor, quantity)?))
        .and_then(|(whole, fraction)| whole.checked_add(fraction));
    base_units.ok_or_else(|| format!("is more than {} {}", u64::MAX, quantity.base_unit))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// `whole * factor`; `None` on overflow.
fn scale_whole(whole: &str, factor: u64) -> Option<u64> {
    let digits = whole.bytes().map(|digit| u64::from(digit - b'0'));
    let value = digits
        .into_iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(digit))?;
    value.checked_mul(factor)
}

/// `0.fraction * factor`, where that is a whole number.
fn scale_fraction(fraction: &str, factor: u64, quantity: &Quantity) -> Result<u64, String> {
    /// With the greatest factor, 2^60, the product stays below 2^128.
    const MAX_DIGITS: usize = 20;

    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > MAX_DIGITS {
        return Err(format!("has more than {MAX_DIGITS} digits after its point"));
    }
    let (numerator, denominator) =
        fraction.bytes().fold((0_u128, 1_u128), |(value, scale), digit| {
            (value * 10 + u128::from(digit - b'0'), scale * 10)
        });
    let product = numerator * u128::from(factor);
    if product % denominator != 0 {
        return Err(format!("is not a whole number of {}", quantity.base_unit));
    }
    // Less than `factor`, because the fraction is less than 1.
    Ok((product / denominator) as u64)
}

/// The text in quotes, control characters made visible, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN_LETTERS: usize = 40;

    let shown: String = text.chars().take(SHOWN_LETTERS).collect();
    let cut = if shown.len() < text.len() { "..." } else { "" };
    format!("{shown:?}{cut}")
}

/// A share as a percentage: `0.05 %`.
pub fn render_percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        ..0.001 => format!("{percent:.1e} %"),
        ..0.1 => format!("{percent:.3} %"),
        ..10.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

#[cfg(test)]
mod tests;
