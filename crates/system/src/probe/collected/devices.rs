//! Network devices.

use std::collections::HashMap;
use std::fs;

use linerate_measure::collected::Column;

use super::columns::{Metric, names};
use super::text::{Format, Key, Table, count, lines, words};

/// /proc/net/dev (proc_pid_net(5)).
#[derive(Default)]
pub(super) struct Devices {
    kinds: HashMap<String, &'static str>,
}

const GIGABITS: Metric = Metric::rate("sar-net", "L2-Gbps", "Gbit/s").times(8e-9);
const PACKETS: Metric = Metric::rate("sar-net", "packets-sec", "packets/s");
const ERRORS: Metric = Metric::rate("sar-net", "errors-sec", "1/s");

/// A metric with its direction, the kind of an error, and the place of its counter in a line.
type Field = (Metric, &'static str, Option<&'static str>, usize);

/// Words of a line: bytes packets errs drop fifo frame compressed multicast, received; bytes packets errs drop fifo
/// colls carrier compressed, sent.
const FIELDS: [Field; 11] = [
    (GIGABITS, "rx", None, 0),
    (GIGABITS, "tx", None, 8),
    (PACKETS, "rx", None, 1),
    (PACKETS, "tx", None, 9),
    (ERRORS, "rx", Some("drop"), 3),
    (ERRORS, "rx", Some("fifo-overrun"), 4),
    (ERRORS, "rx", Some("frame-alignment"), 5),
    (ERRORS, "tx", Some("drop"), 11),
    (ERRORS, "tx", Some("fifo-overrun"), 12),
    (ERRORS, "tx", Some("collision"), 13),
    (ERRORS, "tx", Some("carrier"), 14),
];

impl Format for Devices {
    fn parse(&mut self, texts: &[&[u8]], table: &mut Table) {
        for line in texts.iter().flat_map(|text| lines(text)) {
            // The first number may follow the colon at once.
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let device = line[..colon].trim_ascii();
            let mut counts = [None; 16];
            for (count_of, word) in counts.iter_mut().zip(words(&line[colon + 1..])) {
                *count_of = count(word);
            }
            for (m, (.., at)) in (0..).zip(FIELDS) {
                table.add_count(Key { a: device, m, ..Key::default() }, counts[at]);
            }
        }
    }

    fn column(&mut self, key: Key<'_>, _: u32) -> Column {
        let device = key.a_text();
        let kind = *self.kinds.entry(device.clone()).or_insert_with(|| kind_of(&device));
        let (metric, direction, error, _) = FIELDS.get(key.m as usize).unwrap_or(&FIELDS[0]);
        let mut names = names([
            ("dev", device),
            ("direction", (*direction).to_owned()),
            ("type", kind.to_owned()),
        ]);
        names.extend(error.map(|error| ("error".to_owned(), error.to_owned())));
        metric.column(names)
    }
}

/// Whether hardware stands behind a device. /sys may show another network namespace's devices, which then says nothing.
fn kind_of(device: &str) -> &'static str {
    if device == "lo" {
        return "virtual";
    }
    let target = fs::read_link(format!("/sys/class/net/{device}"));
    let target = target.unwrap_or_default();
    let target = target.to_string_lossy();
    if target.contains("/devices/virtual/") {
        "virtual"
    } else if target.contains("/devices/") {
        "physical"
    } else {
        "unknown"
    }
}

/// The network interfaces with hardware behind them.
pub(super) fn physical_interfaces() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut physical: Vec<_> = names.filter(|name| kind_of(name) == "physical").collect();
    physical.sort_unstable();
    physical
}
