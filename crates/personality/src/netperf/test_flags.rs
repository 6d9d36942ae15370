//! The options after `--`: one table for the tests that share the omni code, which are all.

use linerate_measure::plan::Family;

use super::flags::{Take, bare, parse_family, set, set_or_default, set_port, takes, takes_if};
use super::number::{
    pair, pair_of_first, parse_fraction, parse_number, parse_port, parse_size, unless_default,
};
use super::options::{DataHost, Direction, Layout, Options, Selected, Stop};
use crate::getopt::Flag;

/// Whether the next word is a selection rather than an option.
fn is_selection(word: &str) -> bool {
    !word.starts_with('-')
}

/// The options after `--`, in the order of the alphabet.
pub const TEST: &[Flag<Take>] = &[
    bare('a', "TCP_DEFER_ACCEPT at the server", |o, _| {
        o.socket.defer_accept = true;
        Ok(())
    }),
    takes('b', "requests", "Further requests on their way at once (RR)", |o, v| {
        o.requests.burst = unless_default(v, parse_size)?.unwrap_or(0);
        Ok(())
    }),
    bare('B', "Answer from the address that was asked (IP_PKTINFO)", |o, _| {
        o.socket.packet_info = true;
        Ok(())
    }),
    bare('c', "A connection for each transaction (OMNI)", |o, _| {
        o.omni.connects = true;
        Ok(())
    }),
    bare('C', "TCP_CORK at this end", |o, _| {
        o.socket.cork = true;
        Ok(())
    }),
    takes('d', "direction", "send, recv, rr, or 2, 4, 6 (OMNI)", |o, v| {
        let direction = parse_direction(v)?;
        o.omni.aimless = Some(v.to_owned()).filter(|_| direction == Direction::default());
        o.omni.told = Some(direction);
        Ok(())
    }),
    bare('D', "TCP_NODELAY at both ends", |o, _| {
        o.socket.no_delay = true;
        Ok(())
    }),
    takes('e', "seconds", "How long a response is awaited over UDP", |o, v| {
        set_or_default(&mut o.requests.timeout_ns, Some(v), parse_timeout_ns)
    }),
    bare('f', "Never fragment (IP_PMTUDISC_DO)", |o, _| {
        o.socket.dont_fragment = true;
        Ok(())
    }),
    bare('F', "TCP Fast Open", |o, _| {
        o.socket.fast_open = true;
        Ok(())
    }),
    bare('g', "SO_DEBUG at this end", |o, _| {
        o.socket.debug = true;
        Ok(())
    }),
    takes('G', "bytes", "TCP_MAXSEG", |o, v| {
        set_or_default(&mut o.socket.mss_bytes, Some(v), parse_size)
    }),
    bare('h', "Show these options alone", |o, _| {
        o.stop = o.stop.take().or(Some(Stop::TestHelp));
        Ok(())
    }),
    takes('H', "host/mask,family", "Remote address of the data connection", |o, v| {
        let (host, family) = pair_of_first(v);
        set(&mut o.data.host, host, parse_place)?;
        set_data_family(o, family)
    }),
    takes('i', "n", "Of no effect", |_, v| parse_number(v).map(|_| ())),
    bare('I', "Of no effect: write() and send() are one here", |_, _| Ok(())),
    takes('j', "n", "Of no effect", |_, v| parse_number(v).map(|_| ())),
    takes_if('k', is_selection, "selection", "Selected figures as NAME=value", |o, v| {
        select(o, Layout::KeyValue, v)
    }),
    takes('K', "local,remote", "TCP congestion control", |o, v| {
        let (local, remote) = pair(v);
        set(&mut o.local.congestion, local, |name| Ok(name.to_owned()))?;
        set(&mut o.remote.congestion, remote, at_most_15_bytes)
    }),
    takes('l', "hops", "Multicast TTL", |o, v| {
        set_or_default(&mut o.socket.multicast_ttl, Some(v), parse_size)
    }),
    takes('L', "host/mask,family", "Local address of the data connection", |o, v| {
        let (host, family) = pair_of_first(v);
        set(&mut o.data.local, host, parse_place)?;
        set_data_family(o, family)
    }),
    takes('m', "local,remote", "Bytes of a send", |o, v| {
        let (local, remote) = pair_of_first(v);
        o.omni.implied.add(local.is_some(), remote.is_some());
        set_or_reset(&mut o.local.message_bytes.send, local)?;
        set_or_default(&mut o.remote.message_bytes.send, remote, some_bytes)
    }),
    takes('M', "remote,local", "Bytes of a receive; the remote end's first", |o, v| {
        let (remote, local) = pair_of_first(v);
        o.omni.implied.add(remote.is_some(), local.is_some());
        set_or_default(&mut o.remote.message_bytes.receive, remote, some_bytes)?;
        set_or_reset(&mut o.local.message_bytes.receive, local)
    }),
    bare('n', "Connect the local UDP socket", |o, _| {
        o.local.connected = true;
        Ok(())
    }),
    bare('N', "Connect the remote UDP socket", |o, _| {
        o.remote.connected = true;
        Ok(())
    }),
    takes_if('o', is_selection, "selection", "Selected figures as CSV", |o, v| {
        select(o, Layout::Csv, v)
    }),
    takes_if('O', is_selection, "selection", "Selected figures in columns", |o, v| {
        select(o, Layout::Columns, v)
    }),
    takes('p', "min,max", "Local ports of a connection test", |o, v| {
        o.requests.source_ports = parse_ports(v)?;
        Ok(())
    }),
    takes('P', "local,remote", "Ports of the data connection", |o, v| {
        let (local, remote) = pair(v);
        set_port(&mut o.local.port, local)?;
        set_port(&mut o.remote.port, remote)
    }),
    takes('q', "bytes/s", "SO_MAX_PACING_RATE", |o, v| {
        set_or_default(&mut o.socket.most_bytes_per_s, Some(v), |text| {
            u64::try_from(parse_number(text)?).map_err(|_| format!("'{text}' is negative"))
        })
    }),
    takes('r', "request,response", "Bytes of a request and of a response (1,1)", |o, v| {
        let (request, response) = pair(v);
        o.omni.implied.add(true, true);
        set_or_default(&mut o.requests.request_bytes, request, some_bytes)?;
        set_or_default(&mut o.requests.response_bytes, response, some_bytes)
    }),
    takes('R', "0|1", "Forbid or allow routing (1)", |o, v| {
        o.socket.routed = Some(parse_number(v)? != 0);
        Ok(())
    }),
    takes('s', "send,recv", "Local socket buffers", |o, v| {
        let (send, receive) = pair(v);
        set_or_default(&mut o.local.buffer_bytes.send, send, parse_size)?;
        set_or_default(&mut o.local.buffer_bytes.receive, receive, parse_size)
    }),
    takes('S', "send,recv", "Remote socket buffers", |o, v| {
        let (send, receive) = pair(v);
        set_or_default(&mut o.remote.buffer_bytes.send, send, parse_size)?;
        set_or_default(&mut o.remote.buffer_bytes.receive, receive, parse_size)
    }),
    takes('t', "type", "stream or dgram (OMNI)", |o, v| {
        o.omni.udp = Some(match v.to_ascii_lowercase().as_str() {
            "stream" => false,
            "dgram" => true,
            _ => return Err(format!("'{v}' is no type of socket that we have: stream, dgram")),
        });
        Ok(())
    }),
    takes('T', "protocol", "tcp or udp (OMNI)", |o, v| {
        match v.to_ascii_lowercase().as_str() {
            "tcp" => o.omni.udp = Some(false),
            "udp" => o.omni.udp = Some(true),
            // Of the original no number says what kind of socket there is.
            "6" | "17" => o.omni.numbered = Some(v.to_owned()),
            _ => return Err(format!("'{v}' is no protocol that we have: tcp, udp")),
        }
        Ok(())
    }),
    takes('u', "text", "The test's UUID, as reported", |o, v| {
        o.shown.uuid = Some(v.to_owned());
        Ok(())
    }),
    bare('U', "Of no effect: failed connections are counted, the test goes on", |_, _| Ok(())),
    bare('V', "Receive without copying", |o, _| {
        o.socket.no_copy = true;
        Ok(())
    }),
    takes('w', "n", "Of no effect", |_, _| Ok(())),
    takes('W', "n", "Buffers in the send ring", |o, v| {
        set(&mut o.local.width.send, Some(v), parse_size)
    }),
    bare('4', "IPv4 for the data connection", |o, _| {
        o.data.family = Some(Family::Ipv4);
        Ok(())
    }),
    bare('6', "IPv6 for the data connection", |o, _| {
        o.data.family = Some(Family::Ipv6);
        Ok(())
    }),
];

fn select(o: &mut Options, layout: Layout, list: &str) -> Result<(), String> {
    o.shown.selected = Some(Selected { layout, list: list.to_owned() });
    Ok(())
}

fn parse_direction(text: &str) -> Result<Direction, String> {
    let mut found = Direction::default();
    for word in text.split('|') {
        match word.to_ascii_lowercase().as_str() {
            "send" | "xmit" | "stream" | "transmit" => found.add(true, false),
            "recv" | "receive" | "maerts" => found.add(false, true),
            "rr" => found.add(true, true),
            // The original has no such directions, but takes them.
            "crr" | "cc" => {}
            number => {
                let bits = parse_bits(number).ok_or_else(|| {
                    format!("'{word}' is no direction: send, recv, rr, or 2, 4, 6")
                })?;
                found.add(bits & SENDS != 0, bits & RECEIVES != 0);
            }
        }
    }
    Ok(found)
}

/// The bits of a direction that is a number.
const SENDS: u32 = 2;
const RECEIVES: u32 = 4;

/// A number as strtol(3) reads it: decimal, `0x` or octal.
fn parse_bits(text: &str) -> Option<u32> {
    let parsed = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(hexadecimal), _) => u32::from_str_radix(hexadecimal, 16),
        (None, Some(octal)) if !octal.is_empty() => u32::from_str_radix(octal, 8),
        _ => text.parse(),
    };
    parsed.ok()
}

/// A range of ports, first and last; -1 on both sides is the kernel's choice.
fn parse_ports(text: &str) -> Result<Option<(u16, u16)>, String> {
    let (first, last) = pair(text);
    if (first, last) == (Some("-1"), Some("-1")) {
        return Ok(None);
    }
    let port = |half: Option<&str>, usual: u16| {
        let told = half.map(|half| unless_default(half, parse_port)).transpose()?.flatten();
        Ok::<u16, String>(told.unwrap_or(usual))
    };
    let (first, last) = (port(first, 5000)?, port(last, u16::MAX)?);
    if first > last || first == 0 {
        return Err(format!(
            "'{text}' is no range of ports: the first is 1 or more, the last not less"
        ));
    }
    Ok(Some((first, last)))
}

fn parse_timeout_ns(text: &str) -> Result<u64, String> {
    let seconds = parse_fraction(text)?;
    if seconds <= 0.0 || seconds > 3600.0 {
        return Err(format!("'{text}' is no time-out: more than 0, at most 3600 seconds"));
    }
    Ok((seconds * 1e9) as u64)
}

fn set_data_family(o: &mut Options, told: Option<&str>) -> Result<(), String> {
    if let Some(text) = told {
        o.data.family = parse_family(text)?;
    }
    Ok(())
}

/// A host, and the bits of its address that stay where the others are random.
fn parse_place(text: &str) -> Result<DataHost, String> {
    let (name, mask) = match text.split_once('/') {
        None => (text, None),
        Some((name, mask)) => (name, Some(mask)),
    };
    let fixed_bits = mask.map(|mask| mask.parse().ok().filter(|bits| *bits <= 128_u32));
    if fixed_bits == Some(None) || name.is_empty() {
        return Err(format!("'{text}' is no host and mask: as 10.0.0.0/8, with up to 128 bits"));
    }
    Ok(DataHost { name: name.to_owned(), fixed_bits: fixed_bits.flatten() })
}

/// Sets a size of this end's; 0 and -1 are its own choice.
fn set_or_reset(place: &mut Option<u32>, told: Option<&str>) -> Result<(), String> {
    if let Some(text) = told {
        *place = unless_default(text, parse_size)?.filter(|bytes| *bytes > 0);
    }
    Ok(())
}

fn some_bytes(text: &str) -> Result<u32, String> {
    match parse_size(text)? {
        0 => Err("0 bytes are no message: 1 or more".to_owned()),
        bytes => Ok(bytes),
    }
}

fn at_most_15_bytes(name: &str) -> Result<String, String> {
    if name.len() > 15 {
        return Err(format!("'{name}' is no congestion control: at most 15 letters"));
    }
    Ok(name.to_owned())
}
