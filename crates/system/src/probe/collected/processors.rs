//! Processors: their time, soft interrupts, and packets taken from queues.

use std::collections::{BTreeMap, HashMap};

use linerate_measure::collected::{Column, Rule, Value};

use super::columns::{Metric, names, place_of};
use super::text::{Format, Key, Table, count, hexadecimal, lines, numbered, words};

/// /proc/stat (proc_stat(5)).
#[derive(Default)]
pub(super) struct Stat {
    places: Places,
}

/// What a processor's time is divided into, in the order of mpstat.
const TIMES: [&str; 10] =
    ["usr", "nice", "sys", "iowait", "irq", "soft", "steal", "guest", "gnice", "idle"];
/// Of those, what is no work. The hypervisor's share is mpstat's, and so is the rest.
const NOT_BUSY: [&str; 3] = ["idle", "iowait", "steal"];

const OTHERS: [(&[u8], Metric); 3] = [
    (b"ctxt", Metric::rate("sar-tasks", "Context-switches-sec", "1/s")),
    (b"processes", Metric::rate("sar-tasks", "Processes-created-sec", "1/s")),
    (b"procs_blocked", Metric::level("sar-scheduler", "IO-Blocked-Tasks", "tasks")),
];

impl Format for Stat {
    fn parse(&mut self, texts: &[&[u8]], table: &mut Table) {
        for line in texts.iter().flat_map(|text| lines(text)) {
            let mut words = words(line);
            let Some(name) = words.next() else { continue };
            if let Some(cpu) = numbered(name, b"cpu") {
                add_times(cpu, words, table);
            } else if let Some(at) = OTHERS.iter().position(|(word, _)| *word == name) {
                let key = Key { a: name, m: at as u32, ..Key::default() };
                table.add_count(key, words.next().and_then(count));
            }
        }
    }

    fn column(&mut self, key: Key<'_>, position: u32) -> Column {
        if let Some((_, metric)) = OTHERS.get(key.m as usize).filter(|_| !key.a.is_empty()) {
            return metric.column(names([]));
        }
        // Key `m`: 0 is all of a processor's time, and stands before its parts.
        let mut names = self.places.of(key.n);
        names.insert("num".to_owned(), key.n.to_string());
        let Some(part) = (key.m as usize).checked_sub(1).and_then(|at| TIMES.get(at)) else {
            return Metric::rate("mpstat", "CPU", "CPUs").by(Rule::Whole).column(names);
        };
        names.insert("type".to_owned(), (*part).to_owned());
        let metric = if NOT_BUSY.contains(part) { "NonBusy-CPU" } else { "Busy-CPU" };
        let whole = position.saturating_sub(key.m);
        Metric::rate("mpstat", metric, "CPUs").by(Rule::Share(whole)).column(names)
    }
}

/// Words: user nice system idle iowait irq softirq steal guest guest_nice. Old kernels have fewer.
fn add_times<'a>(cpu: u32, words: impl Iterator<Item = &'a [u8]>, table: &mut Table) {
    let mut ticks = [0_u64; 10];
    for (tick, word) in ticks.iter_mut().zip(words) {
        let Some(number) = count(word) else { return };
        *tick = number;
    }
    let [user, nice, system, idle, wait, irq, soft, steal, guest, guest_nice] = ticks;
    // The kernel counts a guest's time in the user's, too.
    let user = user.saturating_sub(guest);
    let nice = nice.saturating_sub(guest_nice);
    let parts = [user, nice, system, wait, irq, soft, steal, guest, guest_nice, idle];
    let whole = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part));
    for (m, value) in (0..).zip([whole].into_iter().chain(parts.map(Some))) {
        table.add_count(Key { n: cpu, m, ..Key::default() }, value);
    }
}

/// /proc/softirqs (proc(5)). Only what has happened has a column: the file has a column for each processor that the
/// machine could ever have.
#[derive(Default)]
pub(super) struct Softirqs {
    cpus: Vec<u32>,
}

impl Format for Softirqs {
    fn parse(&mut self, texts: &[&[u8]], table: &mut Table) {
        let mut lines = texts.iter().flat_map(|text| lines(text));
        self.cpus.clear();
        self.cpus.extend(header(lines.next().unwrap_or_default()));
        for line in lines {
            let mut words = words(line);
            let Some(kind) = words.next().and_then(|word| word.strip_suffix(b":")) else {
                continue;
            };
            for (cpu, word) in self.cpus.iter().zip(words) {
                if let Some(count) = count(word).filter(|count| *count > 0) {
                    let key = Key { a: kind, n: *cpu, ..Key::default() };
                    table.add(key, Value::Count(count));
                }
            }
        }
    }

    fn column(&mut self, key: Key<'_>, _: u32) -> Column {
        let names = names([("cpu", key.n.to_string()), ("type", key.a_text())]);
        Metric::rate("procstat", "softirqs-sec", "1/s").column(names)
    }
}

/// The processors of a heading: `CPU0 CPU2`.
pub(super) fn header(line: &[u8]) -> impl Iterator<Item = u32> {
    words(line).filter_map(|word| numbered(word, b"CPU"))
}

/// /proc/net/softnet_stat: hexadecimal numbers, a line for each processor that is online.
#[derive(Default)]
pub(super) struct Softnet;

const SOFTNET: [Metric; 3] = [
    Metric::rate("procstat", "processed-sec", "packets/s"),
    Metric::rate("procstat", "dropped-sec", "packets/s"),
    Metric::rate("procstat", "time-squeeze-sec", "1/s"),
];

/// The word with the processor's number (Linux 5.10 and later).
const SOFTNET_CPU: usize = 12;

impl Format for Softnet {
    fn parse(&mut self, texts: &[&[u8]], table: &mut Table) {
        let lines = texts.iter().flat_map(|text| lines(text)).filter(|line| !line.is_empty());
        for (number, line) in (0..).zip(lines) {
            let cpu = words(line).nth(SOFTNET_CPU).and_then(hexadecimal);
            // Before, lines stand in the order of the processors that are online.
            let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(number);
            for (m, word) in (0..).zip(words(line).take(SOFTNET.len())) {
                table.add_count(Key { n: cpu, m, ..Key::default() }, hexadecimal(word));
            }
        }
    }

    fn column(&mut self, key: Key<'_>, _: u32) -> Column {
        let metric = SOFTNET.get(key.m as usize).unwrap_or(&SOFTNET[0]);
        metric.column(names([("cpu", key.n.to_string())]))
    }
}

/// Where processors are, asked once each.
#[derive(Default)]
pub(super) struct Places(HashMap<u32, BTreeMap<String, String>>);

impl Places {
    pub(super) fn of(&mut self, cpu: u32) -> BTreeMap<String, String> {
        self.0.entry(cpu).or_insert_with(|| place_of(cpu)).clone()
    }
}
