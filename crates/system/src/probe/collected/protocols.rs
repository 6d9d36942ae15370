//! Counters of protocols.

use linerate_measure::collected::{Column, Rule, Value};

use super::columns::names;
use super::text::{Format, Key, Table, count, lines, words};

/// /proc/net/snmp, netstat, snmp6 and sockstat (proc_pid_net(5)), in this order.
#[derive(Default)]
pub(super) struct Protocols;

/// What counts nothing: settings.
const SETTINGS: [&[u8]; 6] =
    [b"Forwarding", b"DefaultTTL", b"RtoAlgorithm", b"RtoMin", b"RtoMax", b"MaxConn"];

/// What begins the names of /proc/net/snmp6; no other one begins a longer one.
const IPV6: [&[u8]; 4] = [b"Ip6", b"Icmp6", b"UdpLite6", b"Udp6"];

/// Key `m`: a counter, or a level.
const COUNTER: u32 = 0;
const LEVEL: u32 = 1;

impl Format for Protocols {
    fn parse(&mut self, texts: &[&[u8]], table: &mut Table) {
        for (number, text) in texts.iter().enumerate() {
            match number {
                0 | 1 => add_pairs_of_lines(text, table),
                2 => add_ipv6(text, table),
                _ => add_sockets(text, table),
            }
        }
    }

    fn column(&mut self, key: Key<'_>, _: u32) -> Column {
        let counter = key.b_text();
        let is_level = key.m == LEVEL;
        Column {
            source: "protocols".to_owned(),
            metric: if is_level { counter.clone() } else { format!("{counter}-sec") },
            names: names([("protocol", key.a_text()), ("counter", counter)]),
            unit: if is_level { "count" } else { "1/s" }.to_owned(),
            rule: if is_level { Rule::Level } else { Rule::Rate },
            scale: 1.0,
        }
    }
}

/// `Tcp: NAME NAME` and in the next line `Tcp: NUMBER NUMBER`.
fn add_pairs_of_lines(text: &[u8], table: &mut Table) {
    let mut lines = lines(text);
    while let (Some(heading), Some(line)) = (lines.next(), lines.next()) {
        let (mut counters, mut numbers) = (words(heading), words(line));
        let (protocol, same) = (counters.next(), numbers.next());
        let Some(protocol) = protocol.filter(|_| protocol == same) else { continue };
        let Some(protocol) = protocol.strip_suffix(b":") else { continue };
        for (counter, number) in counters.zip(numbers) {
            if !SETTINGS.contains(&counter) {
                let m = if counter == b"CurrEstab" { LEVEL } else { COUNTER };
                table.add_count(Key { a: protocol, b: counter, n: 0, m }, count(number));
            }
        }
    }
}

/// `Ip6InReceives NUMBER` in each line.
fn add_ipv6(text: &[u8], table: &mut Table) {
    for line in lines(text) {
        let mut words = words(line);
        let (Some(name), Some(number)) = (words.next(), words.next()) else { continue };
        let known = IPV6.iter().find(|protocol| name.starts_with(protocol));
        let Some(protocol) = known.filter(|protocol| name.len() > protocol.len()) else { continue };
        let counter = &name[protocol.len()..];
        table.add_count(Key { a: protocol, b: counter, n: 0, m: COUNTER }, count(number));
    }
}

/// `TCP: inuse NUMBER orphan NUMBER` in each line.
fn add_sockets(text: &[u8], table: &mut Table) {
    for line in lines(text) {
        let mut words = words(line);
        let Some(protocol) = words.next().and_then(|word| word.strip_suffix(b":")) else {
            continue;
        };
        while let (Some(counter), Some(number)) = (words.next(), words.next()) {
            let level = count(number).map_or(Value::Absent, |count| Value::level(count as f64));
            table.add(Key { a: protocol, b: counter, n: 0, m: LEVEL }, level);
        }
    }
}
