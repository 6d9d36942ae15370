//! Numbers and pairs as netperf's options write them. What isn't a number is refused with a
//! sentence, where the original takes its beginning.

use crate::service_class::{parse_service_class, parse_type_of_service};

/// A whole number with an optional suffix: K, M, G are powers of 1024, k, m, g of 1000. A `b` or `B` for
/// bytes may follow.
pub(super) fn parse_number(text: &str) -> Result<i64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = text.get(digits.len()..).unwrap_or_default();
    let factor: i64 = match suffix.strip_suffix(['b', 'B']).unwrap_or(suffix) {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        _ => return Err(not_a_number(text)),
    };
    let number: i64 = digits.parse().map_err(|_| not_a_number(text))?;
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is too large"))
}

/// A number of bytes, packets or so: not negative, and within the wire's 31 bits.
pub(super) fn parse_size(text: &str) -> Result<u32, String> {
    let number = parse_number(text)?;
    u32::try_from(number)
        .ok()
        .filter(|size| i32::try_from(*size).is_ok())
        .ok_or_else(|| format!("'{text}' is not between 0 and 2147483647"))
}

/// The value of an option whose default is asked for with -1, which is absent then.
pub(super) fn unless_default<T>(
    text: &str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if text == "-1" { Ok(None) } else { parse(text).map(Some) }
}

/// A number with a fraction.
pub(super) fn parse_fraction(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| not_a_number(text))
}

/// A port.
pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("'{text}' is no port: they go from 0 to 65535"))
}

/// An interval in microseconds: suffix m milliseconds, u microseconds, s seconds; milliseconds
/// without one.
pub(super) fn parse_interval_us(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.get(digits.len()..).unwrap_or_default() {
        "" | "m" | "ms" => 1_000,
        "u" | "us" => 1,
        "s" => 1_000_000,
        _ => return Err(format!("'{text}' is no interval: a number and m, u or s")),
    };
    let number: u32 = digits.parse().map_err(|_| not_a_number(text))?;
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is too long an interval"))
}

/// The two halves of `a,b`, `a,` and `,b`; `a` alone is both.
pub(super) fn pair(text: &str) -> (Option<&str>, Option<&str>) {
    match text.split_once(',') {
        None => (Some(text), Some(text)),
        Some((first, second)) => (told(first), told(second)),
    }
}

/// Likewise, but `a` alone is the first.
pub(super) fn pair_of_first(text: &str) -> (Option<&str>, Option<&str>) {
    match text.split_once(',') {
        None => (Some(text), None),
        Some((first, second)) => (told(first), told(second)),
    }
}

/// The type-of-service byte: a number (decimal, `0x` or octal) or the name of a DSCP, a precedence or
/// a type of service.
pub(super) fn parse_service(text: &str) -> Result<u8, String> {
    let name = text.to_ascii_lowercase();
    let forwarding = match name.as_str() {
        // Lower effort (RFC 8622), best effort (RFC 2474).
        "le" => Some(1),
        "be" => Some(0),
        _ => parse_service_class(&name).or_else(|| parse_type_of_service(&name)),
    };
    if let Some(dscp) = forwarding {
        return Ok(dscp << 2);
    }
    let number = match (name.strip_prefix("0x"), name.strip_prefix('0')) {
        (Some(hexadecimal), _) => u8::from_str_radix(hexadecimal, 16),
        (None, Some(octal)) if !octal.is_empty() => u8::from_str_radix(octal, 8),
        _ => name.parse(),
    };
    number.map_err(|_| {
        format!(
            "'{text}' is no type of service: a number up to 255, cs0 to cs7, af11 to af43, ef, \
             lowdelay, throughput, reliability"
        )
    })
}

fn told(half: &str) -> Option<&str> {
    (!half.is_empty()).then_some(half)
}

fn not_a_number(text: &str) -> String {
    format!("'{text}' is no number: digits, and K, M, G (1024) or k, m, g (1000), and b for bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024_or_1000() {
        for (text, number) in [("5", 5), ("-5k", -5000), ("2K", 2048), ("1g", 1_000_000_000)] {
            assert_eq!(parse_number(text), Ok(number), "{text}");
        }
        for (text, number) in
            [("1460b", 1460), ("8192B", 8192), ("64KB", 65536), ("1mb", 1_000_000)]
        {
            assert_eq!(parse_number(text), Ok(number), "{text}");
        }
        for text in [
            "",
            "b",
            "x",
            "1.5K",
            "5x",
            "5KK",
            "5bb",
            "5bK",
            "9999999999999999999",
            "9999999999999G",
        ] {
            assert!(parse_number(text).is_err(), "{text}");
        }
        assert!(parse_size("-1").is_err() && parse_size("2G").is_err());
    }

    #[test]
    fn a_pair_may_have_one_half() {
        assert_eq!(pair("1"), (Some("1"), Some("1")));
        assert_eq!(pair("1,"), (Some("1"), None));
        assert_eq!(pair(",2"), (None, Some("2")));
        assert_eq!(pair_of_first("1"), (Some("1"), None));
        assert_eq!(pair_of_first("1,2"), (Some("1"), Some("2")));
    }

    #[test]
    fn services_have_names_and_numbers() {
        for (text, byte) in [
            ("cs1", 0x20),
            ("AF11", 0x28),
            ("lowdelay", 0x10),
            ("Throughput", 0x08),
            ("reliability", 0x04),
            ("0x10", 16),
            ("010", 8),
            ("46", 46),
        ] {
            assert_eq!(parse_service(text), Ok(byte), "{text}");
        }
        assert!(parse_service("256").is_err() && parse_service("nothing").is_err());
    }

    #[test]
    fn intervals_are_milliseconds_unless_told() {
        for (text, us) in [("5", 5000), ("5m", 5000), ("5u", 5), ("1s", 1_000_000)] {
            assert_eq!(parse_interval_us(text), Ok(us), "{text}");
        }
    }
}
