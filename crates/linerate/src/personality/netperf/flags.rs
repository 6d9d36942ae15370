//! The options before `--`: one table that the parser, `-h` and the tests read.

use linerate_engine::netperf::Dirt;
use linerate_measure::plan::Family;

use super::number::{
    pair, pair_of_first, parse_fraction, parse_interval_us, parse_number, parse_port,
    parse_service, parse_size, unless_default,
};
use super::typed::{Deed, Stop, bare, ours, parse_family, takes, takes_if};
use super::unit::Unit;
use linerate_personality::getopt::Flag;

/// Whether the next word is the rate of `-c` or `-C`.
fn is_rate(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Interim results come every so many seconds unless `-D` says otherwise.
const INTERIM_S: f64 = 1.0;

/// The options before `--`, in the order of the alphabet.
pub(super) const GLOBAL: &[Flag<Deed>] = &[
    takes('a', "send,recv", "Alignment of the local buffers", |t, v| {
        let (send, receive) = pair(v);
        set(&mut t.local.send_alignment, send, parse_size)?;
        set(&mut t.local.receive_alignment, receive, parse_size)
    }),
    takes('A', "send,recv", "Alignment of the remote buffers", |t, v| {
        let (send, receive) = pair(v);
        set(&mut t.remote.send_alignment, send, parse_size)?;
        set(&mut t.remote.receive_alignment, receive, parse_size)
    }),
    takes('b', "local,remote", "Pace: sends in an interval (-w)", |t, v| {
        let (local, remote) = pair_of_first(v);
        set_or_default(&mut t.local_burst, local, parse_size)?;
        set_or_default(&mut t.remote_burst, remote, parse_size)
    }),
    takes('B', "text", "Brand at the end of the result line, with -P 0", |t, v| {
        t.shown.brand = Some(v.to_owned());
        Ok(())
    }),
    takes_if('c', is_rate, "rate", "Measure and report the local processors", |t, v| {
        t.local.cpu = true;
        set_rate(&mut t.local.cpu_rate, v)
    }),
    takes_if('C', is_rate, "rate", "Measure and report the remote processors", |t, v| {
        t.remote.cpu = true;
        set_rate(&mut t.remote.cpu_rate, v)
    }),
    bare('d', "Show the plan of the test on standard error", |t, _| {
        t.shown.debug += 1;
        Ok(())
    }),
    takes('D', "secs,units", "Interim results every so many seconds (1)", |t, v| {
        let (seconds, _units) = pair_of_first(v);
        t.shown.interim_s.get_or_insert(INTERIM_S);
        set(&mut t.shown.interim_s, seconds, parse_interim_s)
    }),
    takes('f', "unit", "Unit: G M K B (1024), g m k b (bits), x transactions, u usec", |t, v| {
        t.shown.unit = Some(Unit::parse(v)?);
        Ok(())
    }),
    takes('F', "local,remote", "Files that fill the buffers; TCP_SENDFILE sends it", |t, v| {
        let (local, remote) = pair_of_first(v);
        if let Some(local) = local {
            t.file = Some(local.to_owned());
            t.local.fill_file = Some(local.to_owned());
        }
        if let Some(remote) = remote {
            t.remote.fill_file = Some(at_most_31_bytes(remote)?);
        }
        Ok(())
    }),
    bare('h', "Show this text", |t, _| {
        t.stop = t.stop.take().or(Some(Stop::Help));
        Ok(())
    }),
    takes('H', "host,family", "Where the netserver is (localhost)", |t, v| {
        let (host, family) = pair_of_first(v);
        if let Some(host) = host {
            t.control.host = host.to_owned();
            t.names_host = true;
        }
        set_family(&mut t.family, family)
    }),
    takes('i', "max,min", "Iterations, at most and at least, 3 to 30", |t, v| {
        let (most, least) = pair(v);
        t.repeat.bound(
            most.map(parse_iterations).transpose()?,
            least.map(parse_iterations).transpose()?,
        );
        Ok(())
    }),
    takes('I', "level,width", "Confidence: 95 or 99 %, width of the interval in %", |t, v| {
        let (level, width) = pair_of_first(v);
        t.repeat.bound_as_usual();
        set(&mut t.repeat.level_percent, level, parse_size)?;
        set(&mut t.repeat.width_percent, width, parse_fraction)
    }),
    bare('j', "Keep statistics of latency", |t, _| {
        t.shown.statistics = true;
        Ok(())
    }),
    takes('k', "dirty,clean", "Bytes of the local buffers to write to, to read", |t, v| {
        set_dirt(&mut t.local.dirt, v)
    }),
    takes('K', "dirty,clean", "Bytes of the remote buffers to write to, to read", |t, v| {
        set_dirt(&mut t.remote.dirt, v)
    }),
    takes(
        'l',
        "length",
        "Seconds (10); negative: bytes or transactions; 0: until interrupted",
        |t, v| {
            t.length = parse_number(v.strip_suffix('s').unwrap_or(v))?;
            Ok(())
        },
    ),
    takes('L', "host,family", "The local address", |t, v| {
        let (host, family) = pair_of_first(v);
        t.shown.local_host = host.map(str::to_owned).or(t.shown.local_host.take());
        set_family(&mut t.family, family)
    }),
    takes('n', "cpus", "Number of local processors, for the service demand", |t, v| {
        set_or_default(&mut t.local.cpu_count, Some(v), parse_size)
    }),
    bare('N', "No control connection: test against a port (9, 7 or 19)", |t, _| {
        t.alone = true;
        Ok(())
    }),
    takes('o', "send,recv", "Offset of the local buffers", |t, v| {
        let (send, receive) = pair(v);
        set_or_default(&mut t.local.send_offset, send, parse_size)?;
        set_or_default(&mut t.local.receive_offset, receive, parse_size)
    }),
    takes('O', "send,recv", "Offset of the remote buffers", |t, v| {
        let (send, receive) = pair(v);
        set_or_default(&mut t.remote.send_offset, send, parse_size)?;
        set_or_default(&mut t.remote.receive_offset, receive, parse_size)
    }),
    takes('p', "port,lport", "The netserver's port (12865), the local port", |t, v| {
        let (port, local) = pair_of_first(v);
        set_port(&mut t.control.port, port)?;
        set_port(&mut t.control.local_port, local)
    }),
    takes('P', "0|1", "Hide or show headers (1)", |t, v| {
        t.shown.headers = parse_number(v)? != 0;
        Ok(())
    }),
    bare('r', "Confidence in the result is enough, whatever the processors", |t, _| {
        t.repeat.result_only = true;
        Ok(())
    }),
    takes('s', "seconds", "Wait between set-up and data", |t, v| {
        t.wait_s = parse_size(v)?;
        Ok(())
    }),
    bare('S', "SO_KEEPALIVE on the data connection", |t, _| {
        t.options.keep_alive = true;
        Ok(())
    }),
    takes('t', "test", "The test (TCP_STREAM)", |t, v| {
        t.test = v.to_ascii_uppercase();
        Ok(())
    }),
    takes('T', "local,remote", "Processors that the two ends run on", |t, v| {
        let (local, remote) = pair(v);
        t.shown.binds_cpu = true;
        set_or_default(&mut t.local.bind_cpu, local, parse_size)?;
        set_or_default(&mut t.control.server_cpu, remote, parse_size)
    }),
    takes('v', "level", "Verbosity: 0 the result alone, 1, 2 (1)", |t, v| {
        t.shown.verbosity = parse_size(v)?.min(2);
        Ok(())
    }),
    bare('V', "Show the version", |t, _| {
        t.stop = t.stop.take().or(Some(Stop::Version));
        Ok(())
    }),
    takes('w', "local,remote", "Length of a pacing interval: m milliseconds, u, s", |t, v| {
        let (local, remote) = pair_of_first(v);
        set_or_default(&mut t.local_interval_us, local, parse_interval_us)?;
        set_or_default(&mut t.remote_interval_us, remote, parse_interval_us)
    }),
    takes('W', "send,recv", "Buffers in the local rings", |t, v| {
        let (send, receive) = pair(v);
        set(&mut t.local.send_width, send, parse_size)?;
        set(&mut t.local.receive_width, receive, parse_size)
    }),
    takes('y', "local,remote", "SO_PRIORITY", |t, v| {
        let (local, remote) = pair(v);
        set_or_default(&mut t.local.priority, local, parse_size)?;
        set_or_default(&mut t.remote.priority, remote, parse_size)
    }),
    takes(
        'Y',
        "local,remote",
        "Type of service: a number, cs1, af11, ef, lowdelay, ...",
        |t, v| {
            let (local, remote) = pair(v);
            set_or_default(&mut t.local.service, local, parse_service)?;
            set_or_default(&mut t.remote.service, remote, parse_service)
        },
    ),
    takes('Z', "passphrase", "What the netserver wants to hear first", |t, v| {
        t.control.passphrase = Some(v.to_owned());
        Ok(())
    }),
    bare('4', "IPv4", |t, _| {
        t.family = Some(Family::Ipv4);
        Ok(())
    }),
    bare('6', "IPv6", |t, _| {
        t.family = Some(Family::Ipv6);
        Ok(())
    }),
    ours(
        "busy-poll",
        "Never sleep in TCP_RR and UDP_RR; takes a processor (ours alone)",
        |t, _| {
            t.busy_poll = true;
            Ok(())
        },
    ),
    ours(
        "fine-latency",
        "Nanoseconds in MIN_, MAX_, P50_, P90_, P99_LATENCY (ours alone)",
        |t, _| {
            t.shown.fine_latency = true;
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
