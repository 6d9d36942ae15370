//! Values of flags, each within the limits of the original.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::Failure;

use super::amount::{Step, parse_amount, parse_leading_float, parse_leading_integer};
use super::fault::wrong_unit;

pub(super) fn parse_port(value: &str) -> Result<u16, Failure> {
    bounded(value, 1, 65_535, Code::BAD_PORT)
        .and_then(|port| u16::try_from(port).map_err(|_| Failure::of(Code::BAD_PORT)))
}

/// Seconds between reports; what isn't a number is refused, where the original would go without.
pub(super) fn parse_interval(value: &str) -> Result<f64, Failure> {
    let seconds = parse_leading_float(value).map(|(seconds, _)| seconds);
    let fits = |seconds: &f64| *seconds == 0.0 || (0.1..=60.0).contains(seconds);
    seconds.filter(fits).ok_or(Failure::of(Code::INTERVAL))
}

pub(super) fn parse_keepalive(value: &str) -> Result<[u32; 3], Failure> {
    let mut parts = [0; 3];
    if !value.is_empty() {
        for (part, text) in parts.iter_mut().zip(value.split('/')) {
            if !text.is_empty() {
                *part = bounded(text, 0, i64::from(i16::MAX), Code::KEEPALIVE)?;
            }
        }
    }
    let [idle, interval, count] = parts;
    if idle > 0 && idle <= interval * count {
        return Err(Failure::of(Code::KEEPALIVE));
    }
    Ok(parts)
}

/// What a flag without an argument does.
pub(super) fn set(place: &mut bool) -> Result<(), Failure> {
    *place = true;
    Ok(())
}

/// Puts a value that was read in its place.
pub(super) fn put<T>(place: &mut Option<T>, value: Result<T, Failure>) -> Result<(), Failure> {
    *place = Some(value?);
    Ok(())
}

/// Puts a name or a text in its place.
pub(super) fn text(place: &mut Option<String>, value: &str) -> Result<(), Failure> {
    put(place, Ok(value.to_owned()))
}

/// Puts a path in its place.
pub(super) fn path(place: &mut Option<PathBuf>, value: &str) -> Result<(), Failure> {
    put(place, Ok(PathBuf::from(value)))
}

/// Takes nothing.
pub(super) fn refuse(code: Code) -> Result<(), Failure> {
    Err(Failure::of(code))
}

/// The integer at the beginning of a text, within limits.
pub(super) fn bounded(text: &str, least: i64, most: i64, code: Code) -> Result<u32, Failure> {
    let value = parse_leading_integer(text).filter(|value| (least..=most).contains(value));
    value.and_then(|value| u32::try_from(value).ok()).ok_or(Failure::of(code))
}

pub(super) fn amount(text: &str, step: Step) -> Result<u64, Failure> {
    parse_amount(text, step).ok_or_else(|| wrong_unit(text))
}

pub(super) fn small_amount(text: &str) -> Result<u32, Failure> {
    let value = amount(text, Step::Binary)?;
    u32::try_from(value).map_err(|_| wrong_unit(text))
}

pub(super) fn split_slash(value: &str) -> (&str, Option<&str>) {
    match value.split_once('/') {
        Some((before, after)) => (before, Some(after)),
        None => (value, None),
    }
}

/// A host and, after a `%`, a device. The scope of a link-local address stays with it. Brackets around an address, with
/// its `%` or before it, are dropped.
pub(super) fn split_device(value: &str) -> (String, Option<String>) {
    let bare = value.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let bare = bare.map(|(address, rest)| format!("{address}{rest}"));
    let value = bare.as_deref().unwrap_or(value);
    let is_link_local =
        |host: &str| host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_unicast_link_local());
    match value.split_once('%') {
        Some((host, device)) if !host.is_empty() && !device.is_empty() && !is_link_local(host) => {
            (host.to_owned(), Some(device.to_owned()))
        }
        _ => (value.to_owned(), None),
    }
}
