//! Text to number, for flags: the grammar is [`linerate_measure::units`]'s; here a value also has
//! to fit the type it goes into. What a value may be beyond that is the plan's to check.

use linerate_measure::hunt::LatencyLimit;
use linerate_measure::plan::{LocalAddress, parse_port};
use linerate_measure::step::Size;
use linerate_measure::{Pacing, units};

use super::load::{ActiveFlows, Omit};

/// A number of bytes.
///
/// # Errors
/// Says what is wrong and shows the grammar.
pub fn bytes(text: &str) -> Result<u64, String> {
    units::parse_bytes(text).map_err(|error| error.to_string())
}

/// A number of bytes, or a range of them.
///
/// # Errors
/// Likewise, and shows how a range is written.
pub fn byte_range(text: &str) -> Result<Size, String> {
    match text.split_once("..") {
        None => bytes(text)
            .map(Size::Fixed)
            .map_err(|error| format!("{error}; or a range such as 1k..1M")),
        Some((low, high)) => Ok(Size::Range { low_bytes: bytes(low)?, high_bytes: bytes(high)? }),
    }
}

/// A number of bytes of one send, one datagram or one message.
///
/// # Errors
/// Likewise, and where it is 4 GiB or more.
pub fn size(text: &str) -> Result<u32, String> {
    narrow(bytes(text)?, text, "bytes")
}

/// A number of things: sends, transactions.
///
/// # Errors
/// Says what is wrong and shows the grammar.
pub fn count(text: &str) -> Result<u64, String> {
    units::parse_count(text).map_err(|error| error.to_string())
}

/// A number of flows, threads or tests.
///
/// # Errors
/// Likewise, and where it is above 2^32 - 1.
pub fn small_count(text: &str) -> Result<u32, String> {
    narrow(count(text)?, text, "")
}

/// How many flows may have a request on its way at a time: a number, or `all`, which is no number.
///
/// # Errors
/// As [`small_count`], with the word beside the grammar.
pub fn active_flows(text: &str) -> Result<ActiveFlows, String> {
    match text {
        "all" => Ok(ActiveFlows::All),
        text => {
            small_count(text).map(ActiveFlows::Most).map_err(|error| format!("{error}; or all"))
        }
    }
}

/// A warm-up: a duration, or `auto`.
///
/// # Errors
/// As [`duration`], with the word beside the grammar.
pub fn omit(text: &str) -> Result<Omit, String> {
    match text {
        "auto" => Ok(Omit::Auto),
        text => duration(text).map(Omit::Time).map_err(|error| format!("{error}; or auto")),
    }
}

/// Bits per second.
///
/// # Errors
/// Says what is wrong and shows the grammar.
pub fn rate(text: &str) -> Result<u64, String> {
    units::parse_rate(text).map_err(|error| error.to_string())
}

/// How packets are spaced out: `on`, `off` or bits per second.
///
/// # Errors
/// Says what is wrong and shows the grammar.
pub fn pacing(text: &str) -> Result<Pacing, String> {
    match text {
        "on" => Ok(Pacing::On),
        "off" => Ok(Pacing::Off),
        text => rate(text).map(|bps| Pacing::Rate { bps }),
    }
}

/// Requests or connections per second; parts of one are allowed.
///
/// # Errors
/// Where it is neither a plain decimal number nor one of the grammar of counts.
pub fn per_second(text: &str) -> Result<f64, String> {
    let plain = text.strip_suffix("/s").unwrap_or(text);
    if plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && let Ok(number) = plain.parse::<f64>()
    {
        return Ok(number);
    }
    count(plain).map(|number| number as f64)
}

/// A share from a percentage, with or without its sign: `0.1%` is 0.001.
///
/// # Errors
/// Where it is no decimal number from 0 to 100.
pub fn percent(text: &str) -> Result<f64, String> {
    let digits = text.strip_suffix('%').unwrap_or(text).trim_end();
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match digits.parse::<f64>() {
        Ok(percent) if is_plain && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err(format!("'{text}' is no percentage: give a number from 0 to 100, such as 0.1%")),
    }
}

/// A percentile of latency and its bound: `p99=1ms`.
///
/// # Errors
/// Where it is no percentile between 0 and 100, or the time isn't of the grammar.
pub fn latency_limit(text: &str) -> Result<LatencyLimit, String> {
    let wrong = || {
        format!(
            "'{text}' is no limit: give a percentile between 0 and 100 and a time, such as p99=1ms"
        )
    };
    let (name, bound) = text.split_once('=').ok_or_else(wrong)?;
    let digits = name.strip_prefix('p').ok_or_else(wrong)?;
    let percentile = percent(digits).map_err(|_| wrong())? * 100.0;
    if digits.ends_with('%') || percentile <= 0.0 || percentile >= 100.0 {
        return Err(wrong());
    }
    Ok(LatencyLimit { percentile, bound_ns: duration(bound)? })
}

/// Two ports, the lower first.
///
/// # Errors
/// Where it isn't LOW-HIGH, both 1 to 65535.
pub fn port_range(text: &str) -> Result<(u16, u16), String> {
    let parsed = text.split_once('-').map(|(low, high)| (port(low), port(high)));
    match parsed {
        Some((Ok(low), Ok(high))) if low <= high => Ok((low, high)),
        _ => Err(format!("'{text}' is no range of ports: give LOW-HIGH, such as 20000-60999")),
    }
}

/// A rate that must not be 0.
///
/// # Errors
/// Likewise, and where it is 0.
pub fn positive_rate(text: &str) -> Result<u64, String> {
    positive(rate(text)?, "a rate of 0 allows no traffic: leave the flag out for no limit")
}

/// Nanoseconds.
///
/// # Errors
/// Says what is wrong and shows the grammar.
pub fn duration(text: &str) -> Result<u64, String> {
    units::parse_duration(text).map_err(|error| error.to_string())
}

/// Nanoseconds, not 0.
///
/// # Errors
/// Likewise, and where it is 0.
pub fn positive_duration(text: &str) -> Result<u64, String> {
    positive(duration(text)?, "a time of 0 allows no test: leave the flag out for no limit")
}

/// A number of tests at once, not 0.
///
/// # Errors
/// Says what is wrong and shows the grammar.
pub fn positive_count(text: &str) -> Result<u32, String> {
    match small_count(text)? {
        0 => Err("0 would refuse every client: give 1 or more".to_owned()),
        number => Ok(number),
    }
}

/// A differentiated-services code point.
///
/// # Errors
/// Where it isn't a whole number up to 63.
pub fn dscp(text: &str) -> Result<u8, String> {
    match text.parse::<u8>() {
        Ok(point) if point <= 63 => Ok(point),
        _ => Err(format!("'{text}' is no code point: give a whole number, 0 to 63")),
    }
}

/// An IPv4 or IPv6 address, with its interface where it has one.
///
/// # Errors
/// Where it is neither.
pub fn address(text: &str) -> Result<LocalAddress, String> {
    text.parse()
}

/// A port to reach a server on.
///
/// # Errors
/// Where it isn't a whole number from 1 to 65535.
pub fn port(text: &str) -> Result<u16, String> {
    parse_port(text)
}

/// A mark.
///
/// # Errors
/// Where it isn't `key=value` or the key is empty or not made of letters, digits, `.`, `_`, `-`.
pub fn tag(text: &str) -> Result<(String, String), String> {
    let wrong = || {
        format!("'{text}' is no tag: give key=value, the key of letters, digits, '.', '_' and '-'")
    };
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if key.is_empty() || !key.chars().all(plain) {
        return Err(wrong());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// A fingerprint: SHA-256, 64 hexadecimal digits, colons allowed. It comes back in lower case
/// without colons.
///
/// # Errors
/// Where it isn't that.
pub fn fingerprint(text: &str) -> Result<String, String> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    if digits.len() == 64 && digits.chars().all(|c| c.is_ascii_hexdigit()) {
        Ok(digits.to_ascii_lowercase())
    } else {
        Err("a fingerprint has 64 hexadecimal digits, colons allowed: `linerate serve` prints the \
             server's"
            .to_owned())
    }
}

fn narrow(value: u64, text: &str, what: &str) -> Result<u32, String> {
    u32::try_from(value).map_err(|_| {
        let what = if what.is_empty() { String::new() } else { format!(" {what}") };
        format!("'{text}' is too much: at most {}{what}", u32::MAX)
    })
}

fn positive(value: u64, sentence: &str) -> Result<u64, String> {
    if value == 0 { Err(sentence.to_owned()) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_may_have_colons_and_capitals() {
        let plain = "0123456789abcdef".repeat(4);
        let pairs: Vec<String> = plain
            .to_uppercase()
            .as_bytes()
            .chunks(2)
            .map(|pair| String::from_utf8_lossy(pair).into_owned())
            .collect();
        assert_eq!(fingerprint(&pairs.join(":")).unwrap(), plain);
        assert_eq!(fingerprint(&plain).unwrap(), plain);
        for text in ["", "0123", &"g".repeat(64), &"0".repeat(65)] {
            assert!(fingerprint(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_are_0_to_100_and_percentiles_between_them() {
        assert_eq!(percent("0.1%"), Ok(0.001));
        assert_eq!(percent("100"), Ok(1.0));
        for text in ["", "%", "-1", "101%", "1e1", "NaN", "inf", "1.1.1"] {
            assert!(percent(text).is_err(), "{text}");
        }
        let limit = latency_limit("p99.9=1ms").unwrap();
        assert!((limit.percentile - 99.9).abs() < 1e-9 && limit.bound_ns == 1_000_000);
        for text in ["", "p99", "99=1ms", "p0=1ms", "p100=1ms", "p99%=1ms", "p99=", "pNaN=1s"] {
            assert!(latency_limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tags_have_a_key() {
        assert_eq!(tag("a=b=c").unwrap(), ("a".to_owned(), "b=c".to_owned()));
        assert_eq!(tag("a.b-c_1=").unwrap(), ("a.b-c_1".to_owned(), String::new()));
        for text in ["", "a", "=b", "a b=c", "ä=b"] {
            assert!(tag(text).is_err(), "{text}");
        }
    }
}
