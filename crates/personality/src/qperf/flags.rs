//! The table of options: how each is written, what help tells of it, and what it does.

use std::path::PathBuf;

use super::command_line::Typed;
use super::options::{Congestion, Version};
use super::values::{parse_interval, parse_size, parse_whole};
use crate::getopt::{Flag, Takes};
use crate::target::is_address;

/// What an option does with its argument, which is empty where there is none.
pub type Take = fn(&mut Typed, &str) -> Result<(), Wrong>;

/// Why an option's argument can't be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is out of range or no value of this kind.
    Value,
    /// A sentence of our own.
    Because(&'static str),
}

const fn row(
    (short, long): (Option<char>, &'static str),
    (takes, value_name): (Takes, &'static str),
    help: &'static str,
    meaning: Take,
) -> Flag<Take> {
    Flag { short, long, takes, value_name, help, is_ours: false, meaning }
}

const fn ours(flag: Flag<Take>) -> Flag<Take> {
    Flag { is_ours: true, ..flag }
}

use Takes::{NextIf, Nothing, Value};

/// All options of the original and of its fork, and ours.
#[rustfmt::skip]
pub const TABLE: &[Flag<Take>] = &[
    row((Some('c'), ""), (Value, "target"),
        "run as client and connect to target server",
        |o, v| text(&mut o.client, v)),
    row((Some('s'), ""), (NextIf(is_address), "address"),
        "run as server, on this address (default 0.0.0.0)",
        |o, v| {
            o.server = true;
            if v.is_empty() { Ok(()) } else { text(&mut o.rest.listen.address, v) }
        }),
    row((Some('P'), ""), (Value, "target"),
        "run as proxy to target server",
        |o, v| text(&mut o.proxy, v)),
    row((None, "cc"), (Value, "[reno,cubic]"),
        "congestion control algorithm to use (default reno)",
        |o, v| put(&mut o.rest.congestion, match v {
            "reno" => Some(Congestion::Reno),
            "cubic" => Some(Congestion::Cubic),
            _ => None,
        })),
    row((Some('e'), ""), (Nothing, ""),
        "measure time for connection establishment and first byte only",
        |o, _| set(&mut o.rest.ends_with_first_byte)),
    row((Some('g'), ""), (Nothing, ""),
        "enable UDP generic segmentation offload",
        |o, _| set(&mut o.rest.segments)),
    row((Some('i'), "report-interval"), (Value, "seconds"),
        "time between reports (default 1.0)",
        |o, v| put(&mut o.rest.interval_s, parse_interval(v))),
    row((Some('w'), "iw"), (Value, "packets"),
        "initial congestion window (default 10)",
        |o, v| put(&mut o.rest.window_packets, parse_positive(v))),
    row((Some('t'), ""), (Value, "seconds"),
        "run for so long (default 10)",
        |o, v| put(&mut o.rest.runtime_s, parse_positive(v))),
    row((Some('p'), "port"), (Value, "port"),
        "port to connect to, or of a server to listen on (default 18080)",
        |o, v| put(&mut o.rest.port, parse_whole(v))),
    row((None, "listen-addr"), (Value, "address"),
        "address that a server or proxy listens on (default 0.0.0.0)",
        |o, v| text(&mut o.rest.listen.address, v)),
    row((None, "listen-port"), (Value, "port"),
        "port that a server or proxy listens on (default 18080)",
        |o, v| some(&mut o.rest.listen.port, parse_whole(v))),
    row((None, "tls-cert"), (Value, "file"),
        "certificate of a server or proxy (default server.crt)",
        |o, v| path(&mut o.rest.listen.certificate, v)),
    row((None, "tls-key"), (Value, "file"),
        "its private key (default server.key)",
        |o, v| path(&mut o.rest.listen.key, v)),
    row((Some('q'), "quicly-buffer"), (Value, "bytes"),
        "receive windows of QUIC (default 1M)",
        |o, v| put(&mut o.rest.buffers.quic_bytes, parse_buffer(v))),
    row((Some('u'), "udp-buffer"), (Value, "bytes"),
        "buffers of the UDP socket (default 1M)",
        |o, v| put(&mut o.rest.buffers.udp_bytes, parse_buffer(v))),
    row((Some('b'), "qperf-buffer"), (Value, "bytes"),
        "what a proxy holds for each direction (default 1M)",
        |o, v| put(&mut o.rest.buffers.proxy_bytes, parse_buffer(v))),
    row((Some('l'), "log-tls"), (Value, "file"),
        "append TLS secrets to this file",
        |o, v| file(&mut o.rest.files.tls_log, v)),
    row((None, "print-raw"), (Nothing, ""),
        "print rates without prefixes",
        |o, _| set(&mut o.rest.prints_raw)),
    row((None, "max-ack-delay"), (Value, "ms"),
        "acknowledgement delay asked of the peer (default 25; 18446744073709551615: extension off)",
        |o, v| put(&mut o.rest.acks.max_delay_ms, parse_ack_delay(v))),
    row((None, "first-ack-freq-packet-number"), (Value, "number"),
        "packet that the first ACK_FREQUENCY follows (default 1000; accepted, see the manual)",
        |o, v| put(&mut o.rest.acks.first_packet, parse_whole(v))),
    row((None, "ack-freq-cwnd-fraction"), (Value, "number"),
        "part of the window for each acknowledgement (default 8; accepted, see the manual)",
        |o, v| put(&mut o.rest.acks.window_fraction, parse_positive(v))),
    row((None, "alpn"), (Value, "name"),
        "application protocol of both sides of a proxy (default none)",
        |o, v| if v.len() > LONGEST_ALPN_BYTES { Err(Wrong::Value) } else { text(&mut o.rest.proxy.alpn, v) }),
    row((None, "wait-for-svr"), (Nothing, ""),
        "a proxy completes a client's handshake after that with the target",
        |o, _| set(&mut o.rest.proxy.waits_for_server)),
    row((None, "session"), (Value, "file"),
        "load and store the session with the server, for 0-RTT",
        |o, v| file(&mut o.rest.files.session, v)),
    row((None, "session-cache"), (Value, "file"),
        "keep the last session of a server or proxy across restarts, for 0-RTT",
        |o, v| file(&mut o.rest.listen.session_cache, v)),
    row((None, "quic-version"), (Value, "version"),
        "rfc-1 or draft-29 (default rfc-1; a server takes both)",
        |o, v| match v {
            "rfc-1" => some(&mut o.rest.version, Some(Version::Rfc1)),
            "draft-29" => some(&mut o.rest.version, Some(Version::Draft29)),
            "draft-27" => Err(Wrong::Because(NO_DRAFT_27)),
            _ => Err(Wrong::Value),
        }),
    row((None, "events"), (Value, "file"),
        "write transport events to this file, a JSON object a line",
        |o, v| file(&mut o.rest.files.events, v)),
    ours(row((None, "qlog"), (Value, "directory"),
        "write a qlog file of each connection of a client (ours alone)",
        |o, v| file(&mut o.rest.files.qlog, v))),
    row((Some('v'), "version"), (Nothing, ""),
        "print the version",
        |o, _| set(&mut o.wants_version)),
    row((Some('h'), "help"), (Nothing, ""),
        "print this help",
        |o, _| set(&mut o.wants_help)),
];

/// The longest name of an application protocol (RFC 7301).
const LONGEST_ALPN_BYTES: usize = 255;
/// The longest delay that the transport parameter has, ms (RFC 9000, section 18.2).
const LONGEST_ACK_DELAY_MS: u32 = (1 << 14) - 1;

const NO_DRAFT_27: &str =
    "--quic-version: draft-27 isn't spoken here; give rfc-1 or draft-29, or use the original";

fn parse_positive(text: &str) -> Option<u32> {
    parse_whole(text).filter(|number| *number > 0)
}

fn parse_buffer(text: &str) -> Option<u64> {
    parse_size(text).filter(|bytes| *bytes > 0)
}

/// The largest number turns the extension off.
fn parse_ack_delay(text: &str) -> Option<Option<u32>> {
    match parse_whole::<u64>(text)? {
        u64::MAX => Some(None),
        ms => u32::try_from(ms).ok().filter(|ms| (1..=LONGEST_ACK_DELAY_MS).contains(ms)).map(Some),
    }
}

fn set(place: &mut bool) -> Result<(), Wrong> {
    *place = true;
    Ok(())
}

fn put<T>(place: &mut T, value: Option<T>) -> Result<(), Wrong> {
    *place = value.ok_or(Wrong::Value)?;
    Ok(())
}

fn some<T>(place: &mut Option<T>, value: Option<T>) -> Result<(), Wrong> {
    *place = Some(value.ok_or(Wrong::Value)?);
    Ok(())
}

fn text(place: &mut Option<String>, value: &str) -> Result<(), Wrong> {
    some(place, Some(value.to_owned()).filter(|value| !value.is_empty()))
}

fn path(place: &mut PathBuf, value: &str) -> Result<(), Wrong> {
    put(place, Some(PathBuf::from(value)).filter(|_| !value.is_empty()))
}

fn file(place: &mut Option<PathBuf>, value: &str) -> Result<(), Wrong> {
    some(place, Some(PathBuf::from(value)).filter(|_| !value.is_empty()))
}
