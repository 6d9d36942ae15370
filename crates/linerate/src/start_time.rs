//! The clock time at which a load is to begin.

use std::io::{BufRead, BufReader, Read};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// When a load is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At this time: nanoseconds since 1970, UTC.
    Time(i64),
    /// At a time that standard input names when all flows stand.
    Named,
}

impl StartAt {
    /// Parses a time as [`parse_start_time`] does, or `-`.
    ///
    /// # Errors
    /// Shows the text and the grammar.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "-" => Ok(Self::Named),
            text => parse_start_time(text)
                .map(Self::Time)
                .map_err(|error| format!("{error}, or - for a line of standard input")),
        }
    }

    /// The time, where it is known: nanoseconds since 1970, UTC.
    pub fn at_ns(self) -> Option<i64> {
        match self {
            Self::Time(utc_ns) => Some(utc_ns),
            Self::Named => None,
        }
    }
}

/// The longest line that names a start, bytes.
const MAX_LINE: u64 = 128;

/// Reads the line that names a start.
///
/// # Errors
/// Where there is none, or it is no time: a sentence.
pub(crate) fn read_start(input: impl Read) -> Result<i64, String> {
    let mut line = String::new();
    BufReader::new(input.take(MAX_LINE))
        .read_line(&mut line)
        .map_err(|error| format!("can't read the start from standard input: {error}"))?;
    if line.is_empty() {
        return Err(
            "standard input ended before it named the start: write a time and a line end, \
                    such as @1896091200.5"
                .to_owned(),
        );
    }
    parse_start_time(line.trim())
}

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
    fn a_start_is_named_by_a_line() {
        assert_eq!(StartAt::parse("-"), Ok(StartAt::Named));
        assert_eq!(StartAt::parse("@1.5"), Ok(StartAt::Time(1_500_000_000)));
        assert!(StartAt::parse("").unwrap_err().contains("or - for a line"));
        assert_eq!(read_start("@1.5\n@2\n".as_bytes()), Ok(1_500_000_000));
        assert_eq!(read_start("@1.5".as_bytes()), Ok(1_500_000_000));
        assert!(read_start("".as_bytes()).unwrap_err().contains("before it named the start"));
        assert!(read_start("soon\n".as_bytes()).unwrap_err().contains("'soon' is no time"));
        assert!(read_start("x".repeat(1_000).as_bytes()).is_err());
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
