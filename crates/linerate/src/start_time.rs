//! The clock time at which a load is to begin.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Parses an RFC 3339 time, or `@` and seconds since 1970 with up to nine decimals. Nanoseconds
/// since 1970, UTC.
///
/// # Errors
/// Shows the text and the grammar. Whether the time has passed is not looked at.
pub fn parse_start_time(text: &str) -> Result<i64, String> {
    let parsed = match text.strip_prefix('@') {
        Some(seconds) => parse_seconds(seconds),
        None => parse_rfc3339(text),
    };
    parsed.ok_or_else(|| {
        format!(
            "'{text}' is no time: give RFC 3339 such as 2030-01-31T12:00:00Z, or seconds since 1970 \
             such as @1896091200.5"
        )
    })
}

/// This machine's clock: nanoseconds since 1970, UTC. A clock set before 1970 reads 0.
pub fn utc_now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn parse_rfc3339(text: &str) -> Option<i64> {
    let time: Timestamp = text.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

fn parse_seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole_ns = whole.parse::<i64>().ok()?.checked_mul(1_000_000_000)?;
    let fraction_ns = format!("{fraction:0<9}").parse::<i64>().ok()?;
    whole_ns.checked_add(fraction_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations() {
        for (text, ns) in [
            ("@0", 0),
            ("@1896091200", 1_896_091_200_000_000_000),
            ("@1896091200.5", 1_896_091_200_500_000_000),
            ("@1.000000001", 1_000_000_001),
            ("2030-01-31T12:00:00Z", 1_896_091_200_000_000_000),
            ("2030-01-31T13:00:00.25+01:00", 1_896_091_200_250_000_000),
        ] {
            assert_eq!(parse_start_time(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "@",
            "@-1",
            "@1.",
            "@.5",
            "@1.0000000001",
            "@99999999999999",
            "tomorrow",
            "12:00",
            "2030-01-31",
            "2030-02-31T00:00:00Z",
            "2030-01-31T12:00:00",
            "@1e9",
            "@1_0",
        ] {
            assert!(parse_start_time(text).is_err(), "{text:?}");
        }
    }
}
