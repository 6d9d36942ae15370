//! The options before `--`: one table that the parser, `-h` and the tests read.

use linerate_measure::plan::Family;

use super::number::{
    pair, pair_of_first, parse_fraction, parse_interval_us, parse_number, parse_port,
    parse_service, parse_size, unless_default,
};
use super::options::{Dirt, Options, Stop};
use super::unit::Unit;
use crate::getopt::{Flag, Takes};

/// What a flag does with its argument, which is empty where there is none.
pub type Take = fn(&mut Options, &str) -> Result<(), String>;

/// A flag with a value.
pub(super) const fn takes(
    short: char,
    value_name: &'static str,
    help: &'static str,
    take: Take,
) -> Flag<Take> {
    Flag::letter(short, Takes::Value, value_name, help, take)
}

/// A flag that has the next word as its value if it looks like one.
pub(super) const fn takes_if(
    short: char,
    is_value: fn(&str) -> bool,
    value_name: &'static str,
    help: &'static str,
    take: Take,
) -> Flag<Take> {
    Flag::letter(short, Takes::NextIf(is_value), value_name, help, take)
}

/// A flag without a value.
pub(super) const fn bare(short: char, help: &'static str, take: Take) -> Flag<Take> {
    Flag::letter(short, Takes::Nothing, "", help, take)
}

/// Whether the next word is the rate of `-c` or `-C`.
fn is_rate(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Interim results come every so many seconds unless `-D` says otherwise.
const INTERIM_S: f64 = 1.0;

/// The options before `--`, in the order of the alphabet.
pub const GLOBAL: &[Flag<Take>] = &[
    takes('a', "send,recv", "Alignment of the local buffers", |o, v| {
        let (send, receive) = pair(v);
        set(&mut o.local.alignment.send, send, parse_size)?;
        set(&mut o.local.alignment.receive, receive, parse_size)
    }),
    takes('A', "send,recv", "Alignment of the remote buffers", |o, v| {
        let (send, receive) = pair(v);
        set(&mut o.remote.alignment.send, send, parse_size)?;
        set(&mut o.remote.alignment.receive, receive, parse_size)
    }),
    takes('b', "local,remote", "Pace: sends in an interval (-w)", |o, v| {
        let (local, remote) = pair_of_first(v);
        set_or_default(&mut o.local.burst, local, parse_size)?;
        set_or_default(&mut o.remote.burst, remote, parse_size)
    }),
    takes('B', "text", "Brand at the end of the result line, with -P 0", |o, v| {
        o.shown.brand = Some(v.to_owned());
        Ok(())
    }),
    takes_if('c', is_rate, "rate", "Measure and report the local processors", |o, v| {
        o.local.cpu.measured = true;
        set_rate(&mut o.local.cpu.rate, v)
    }),
    takes_if('C', is_rate, "rate", "Measure and report the remote processors", |o, v| {
        o.remote.cpu.measured = true;
        set_rate(&mut o.remote.cpu.rate, v)
    }),
    bare('d', "Show the plan of the test on standard error", |o, _| {
        o.shown.debug += 1;
        Ok(())
    }),
    takes('D', "secs,units", "Interim results every so many seconds (1)", |o, v| {
        let (seconds, _units) = pair_of_first(v);
        o.shown.interim_s.get_or_insert(INTERIM_S);
        set(&mut o.shown.interim_s, seconds, parse_interim_s)
    }),
    takes('f', "unit", "Unit: G M K B (1024), g m k b (bits), x transactions, u usec", |o, v| {
        o.shown.unit = Some(Unit::parse(v)?);
        Ok(())
    }),
    takes('F', "local,remote", "Files that fill the buffers; TCP_SENDFILE sends it", |o, v| {
        let (local, remote) = pair_of_first(v);
        if let Some(local) = local {
            o.file = Some(local.to_owned());
            o.local.fill_file = Some(local.to_owned());
        }
        if let Some(remote) = remote {
            o.remote.fill_file = Some(at_most_31_bytes(remote)?);
        }
        Ok(())
    }),
    bare('h', "Show this text", |o, _| {
        o.stop = o.stop.take().or(Some(Stop::Help));
        Ok(())
    }),
    takes('H', "host,family", "Where the netserver is (localhost)", |o, v| {
        let (host, family) = pair_of_first(v);
        if let Some(host) = host {
            o.control.host = host.to_owned();
            o.control.names_host = true;
        }
        set_family(&mut o.family, family)
    }),
    takes('i', "max,min", "Iterations, at most and at least, 3 to 30", |o, v| {
        let (most, least) = pair(v);
        o.repeat.bound(
            most.map(parse_iterations).transpose()?,
            least.map(parse_iterations).transpose()?,
        );
        Ok(())
    }),
    takes('I', "level,width", "Confidence: 95 or 99 %, width of the interval in %", |o, v| {
        let (level, width) = pair_of_first(v);
        o.repeat.bound_as_usual();
        set(&mut o.repeat.level_percent, level, parse_size)?;
        set(&mut o.repeat.width_percent, width, parse_fraction)
    }),
    bare('j', "Keep statistics of latency", |o, _| {
        o.shown.statistics = true;
        Ok(())
    }),
    takes('k', "dirty,clean", "Bytes of the local buffers to write to, to read", |o, v| {
        set_dirt(&mut o.local.dirt, v)
    }),
    takes('K', "dirty,clean", "Bytes of the remote buffers to write to, to read", |o, v| {
        set_dirt(&mut o.remote.dirt, v)
    }),
    takes(
        'l',
        "length",
        "Seconds (10); negative: bytes or transactions; 0: until interrupted",
        |o, v| {
            o.length = parse_number(v.strip_suffix('s').unwrap_or(v))?;
            Ok(())
        },
    ),
    takes('L', "host,family", "The local address", |o, v| {
        let (host, family) = pair_of_first(v);
        o.shown.local_host = host.map(str::to_owned).or(o.shown.local_host.take());
        set_family(&mut o.family, family)
    }),
    takes('n', "cpus", "Number of local processors, for the service demand", |o, v| {
        set_or_default(&mut o.local.cpu.count, Some(v), parse_size)
    }),
    bare('N', "No control connection: test against a port (9, 7 or 19)", |o, _| {
        o.control.alone = true;
        Ok(())
    }),
    takes('o', "send,recv", "Offset of the local buffers", |o, v| {
        let (send, receive) = pair(v);
        set_or_default(&mut o.local.offset.send, send, parse_size)?;
        set_or_default(&mut o.local.offset.receive, receive, parse_size)
    }),
    takes('O', "send,recv", "Offset of the remote buffers", |o, v| {
        let (send, receive) = pair(v);
        set_or_default(&mut o.remote.offset.send, send, parse_size)?;
        set_or_default(&mut o.remote.offset.receive, receive, parse_size)
    }),
    takes('p', "port,lport", "The netserver's port (12865), the local port", |o, v| {
        let (port, local) = pair_of_first(v);
        set_port(&mut o.control.port, port)?;
        set_port(&mut o.control.local_port, local)
    }),
    takes('P', "0|1", "Hide or show headers (1)", |o, v| {
        o.shown.headers = parse_number(v)? != 0;
        Ok(())
    }),
    bare('r', "Confidence in the result is enough, whatever the processors", |o, _| {
        o.repeat.result_only = true;
        Ok(())
    }),
    takes('s', "seconds", "Wait between set-up and data", |o, v| {
        o.wait_s = parse_size(v)?;
        Ok(())
    }),
    bare('S', "SO_KEEPALIVE on the data connection", |o, _| {
        o.socket.keep_alive = true;
        Ok(())
    }),
    takes('t', "test", "The test (TCP_STREAM)", |o, v| {
        o.test = v.to_ascii_uppercase();
        Ok(())
    }),
    takes('T', "local,remote", "Processors that the two ends run on", |o, v| {
        let (local, remote) = pair(v);
        o.shown.binds_cpu = true;
        set_or_default(&mut o.local.cpu.bound, local, parse_size)?;
        set_or_default(&mut o.control.server_cpu, remote, parse_size)
    }),
    takes('v', "level", "Verbosity: 0 the result alone, 1, 2 (1)", |o, v| {
        o.shown.verbosity = parse_size(v)?.min(2);
        Ok(())
    }),
    bare('V', "Show the version", |o, _| {
        o.stop = o.stop.take().or(Some(Stop::Version));
        Ok(())
    }),
    takes('w', "local,remote", "Length of a pacing interval: m milliseconds, u, s", |o, v| {
        let (local, remote) = pair_of_first(v);
        set_or_default(&mut o.local.interval_us, local, parse_interval_us)?;
        set_or_default(&mut o.remote.interval_us, remote, parse_interval_us)
    }),
    takes('W', "send,recv", "Buffers in the local rings", |o, v| {
        let (send, receive) = pair(v);
        set(&mut o.local.width.send, send, parse_size)?;
        set(&mut o.local.width.receive, receive, parse_size)
    }),
    takes('y', "local,remote", "SO_PRIORITY", |o, v| {
        let (local, remote) = pair(v);
        set_or_default(&mut o.local.priority, local, parse_size)?;
        set_or_default(&mut o.remote.priority, remote, parse_size)
    }),
    takes(
        'Y',
        "local,remote",
        "Type of service: a number, cs1, af11, ef, lowdelay, ...",
        |o, v| {
            let (local, remote) = pair(v);
            set_or_default(&mut o.local.service, local, parse_service)?;
            set_or_default(&mut o.remote.service, remote, parse_service)
        },
    ),
    takes('Z', "passphrase", "Passphrase that the netserver requires", |o, v| {
        o.control.passphrase = Some(v.to_owned());
        Ok(())
    }),
    bare('4', "IPv4", |o, _| {
        o.family = Some(Family::Ipv4);
        Ok(())
    }),
    bare('6', "IPv6", |o, _| {
        o.family = Some(Family::Ipv6);
        Ok(())
    }),
    Flag::name(
        "busy-poll",
        "Never sleep in TCP_RR and UDP_RR; takes a processor (ours alone)",
        |o, _| {
            o.requests.busy_poll = true;
            Ok(())
        },
    ),
    Flag::name(
        "fine-latency",
        "Nanoseconds in MIN_, MAX_, P50_, P90_, P99_LATENCY (ours alone)",
        |o, _| {
            o.shown.fine_latency = true;
            Ok(())
        },
    ),
];

/// Sets what was told; what wasn't stays.
pub(super) fn set<T>(
    place: &mut Option<T>,
    told: Option<&str>,
    parse: fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    if let Some(text) = told {
        *place = Some(parse(text)?);
    }
    Ok(())
}

/// Likewise; -1 takes back what was set, as the original's own default.
pub(super) fn set_or_default<T>(
    place: &mut Option<T>,
    told: Option<&str>,
    parse: fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    if let Some(text) = told {
        *place = unless_default(text, parse)?;
    }
    Ok(())
}

pub(super) fn set_port(place: &mut u16, told: Option<&str>) -> Result<(), String> {
    if let Some(text) = told {
        *place = parse_port(text)?;
    }
    Ok(())
}

pub(super) fn set_family(place: &mut Option<Family>, told: Option<&str>) -> Result<(), String> {
    if let Some(text) = told {
        *place = parse_family(text)?;
    }
    Ok(())
}

fn set_rate(place: &mut Option<f32>, told: &str) -> Result<(), String> {
    if !told.is_empty() {
        *place = Some(parse_fraction(told)? as f32);
    }
    Ok(())
}

/// A negative interval asks the original to read the clock at each operation; ours is exact anyway.
fn parse_interim_s(text: &str) -> Result<f64, String> {
    let seconds = parse_fraction(text)?.abs();
    if !(0.001..=86_400.0).contains(&seconds) {
        return Err(format!("'{text}' is no interval for interim results: 0.001 to 86400 seconds"));
    }
    Ok(seconds)
}

/// A number of iterations; -1 is the fewest that there can be.
fn parse_iterations(text: &str) -> Result<u32, String> {
    unless_default(text, parse_size).map(Option::unwrap_or_default)
}

fn at_most_31_bytes(path: &str) -> Result<String, String> {
    if path.len() > 31 {
        return Err(format!("'{path}' is too long: the wire has room for 31 bytes of a path"));
    }
    Ok(path.to_owned())
}

/// Buffers of which neither half is told, or both are -1, stay as they are.
fn set_dirt(place: &mut Option<Dirt>, told: &str) -> Result<(), String> {
    let (dirty, clean) = pair(told);
    let mut dirty_bytes = place.map(|dirt| dirt.dirty_bytes);
    let mut clean_bytes = place.map(|dirt| dirt.clean_bytes);
    set_or_default(&mut dirty_bytes, dirty, parse_size)?;
    set_or_default(&mut clean_bytes, clean, parse_size)?;
    let is_told = dirty_bytes.is_some() || clean_bytes.is_some();
    *place = is_told.then(|| Dirt {
        dirty_bytes: dirty_bytes.unwrap_or_default(),
        clean_bytes: clean_bytes.unwrap_or_default(),
    });
    Ok(())
}

/// Reads the family beside a host: text with a 6 is IPv6, `inet` or text with a 4 is IPv4, `unspec`
/// and `0` are either.
pub(super) fn parse_family(text: &str) -> Result<Option<Family>, String> {
    let lower = text.to_ascii_lowercase();
    if lower.contains('6') {
        Ok(Some(Family::Ipv6))
    } else if lower.contains("inet") || lower.contains('4') {
        Ok(Some(Family::Ipv4))
    } else if lower.contains("unspec") || lower == "0" {
        Ok(None)
    } else {
        Err(format!("'{text}' is no address family: 4, 6, inet, inet6 or unspec"))
    }
}
