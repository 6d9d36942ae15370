//! Memory, paging, load averages and pressure, with the names of sar.

use linerate_measure::collected::{Column, Rule, Value};

use super::columns::{Metric, names};
use super::text::{Format, Key, Table, count, decimal, lines, words};

const fn kilobytes(name: &'static str) -> Metric {
    Metric::level("sar-mem", name, "kB")
}

const fn paging(name: &'static str, unit: &'static str) -> Metric {
    Metric::rate("sar-mem", name, unit)
}

/// Of /proc/meminfo, in the order of sar -r.
const LEVELS: [Metric; 11] = [
    kilobytes("Memory-Free-KB"),
    kilobytes("Memory-Available-KB"),
    kilobytes("Memory-Used-KB"),
    Metric::level("sar-mem", "Memory-Used-Percent", "%"),
    kilobytes("Memory-Buffers-KB"),
    kilobytes("Memory-Cached-KB"),
    kilobytes("Memory-Commit-KB"),
    Metric::level("sar-mem", "Memory-Commit-Percent", "%"),
    kilobytes("Memory-Active-KB"),
    kilobytes("Memory-Inactive-KB"),
    kilobytes("Memory-Dirty-KB"),
];

/// The lines of /proc/meminfo that those need.
const MEMINFO: [&[u8]; 12] = [
    b"MemTotal:",
    b"MemFree:",
    b"MemAvailable:",
    b"Buffers:",
    b"Cached:",
    b"Slab:",
    b"SwapTotal:",
    b"Committed_AS:",
    b"Active:",
    b"Inactive:",
    b"Dirty:",
    // Nothing after this line is needed.
    b"VmallocTotal:",
];

/// Of /proc/vmstat, in the order of sar -B and -W.
const PAGING: [Metric; 11] = [
    paging("KB-Paged-in-sec", "kB/s"),
    paging("KB-Paged-out-sec", "kB/s"),
    paging("Page-faults-sec", "1/s"),
    paging("Page-faults-sec", "1/s"),
    paging("Pages-freed-sec", "pages/s"),
    paging("kswapd-scanned-pages-sec", "pages/s"),
    paging("scanned-pages-sec", "pages/s"),
    paging("scanned", "pages/s").by(Rule::Whole),
    paging("reclaimed-pages-sec", "pages/s"),
    paging("Pages-swapped-in-sec", "pages/s"),
    paging("Pages-swapped-out-sec", "pages/s"),
];
const MINOR: usize = 2;
const MAJOR: usize = 3;
const SCANNED: usize = 7;

/// Reclaimed pages in each hundred that were scanned.
const EFFICIENCY: Metric = Metric::level("sar-mem", "VM-Efficiency", "%").times(100.0);

/// /proc/meminfo, vmstat and pressure/memory (proc(5)), in this order.
#[derive(Default)]
pub(super) struct Memory;

/// Key `n`: which of the tables, with `m` the place there.
const OF_LEVELS: u32 = 0;
const OF_PAGING: u32 = 1;
const OF_EFFICIENCY: u32 = 2;
const OF_PRESSURE: u32 = 3;

impl Format for Memory {
    fn parse(&mut self, texts: &[&[u8]], table: &mut Table) {
        let [meminfo, vmstat, pressure] =
            [0, 1, 2].map(|at| texts.get(at).copied().unwrap_or_default());
        for (m, value) in (0..).zip(levels(meminfo)) {
            table.add(Key { n: OF_LEVELS, m, ..Key::default() }, value);
        }
        let counts = paging_counts(vmstat);
        for (m, value) in (0..).zip(counts) {
            table.add_count(Key { n: OF_PAGING, m, ..Key::default() }, value);
        }
        table.add_count(Key { n: OF_EFFICIENCY, ..Key::default() }, counts[SCANNED + 1]);
        add_pressure(pressure, b"memory", table);
    }

    fn column(&mut self, key: Key<'_>, position: u32) -> Column {
        let at = key.m as usize;
        match key.n {
            OF_LEVELS => LEVELS.get(at).unwrap_or(&LEVELS[0]).column(names([])),
            OF_PAGING => {
                let kind = match at {
                    MINOR => Some("minor"),
                    MAJOR => Some("major"),
                    _ => None,
                };
                let kind = kind.map(|kind| ("type".to_owned(), kind.to_owned()));
                PAGING.get(at).unwrap_or(&PAGING[0]).column(kind.into_iter().collect())
            }
            OF_EFFICIENCY => {
                let whole = position.saturating_sub((PAGING.len() - SCANNED) as u32);
                EFFICIENCY.by(Rule::Share(whole)).column(names([]))
            }
            _ => pressure_column(key),
        }
    }
}

fn levels(meminfo: &[u8]) -> [Value; LEVELS.len()] {
    let mut found = [None; MEMINFO.len()];
    for line in lines(meminfo) {
        let mut words = words(line);
        let Some(name) = words.next() else { continue };
        if let Some(at) = MEMINFO.iter().position(|wanted| *wanted == name) {
            found[at] = words.next().and_then(count);
            if at == MEMINFO.len() - 1 {
                break;
            }
        }
    }
    let [total, free, available, buffers, cached, slab, swap, commit, active, inactive, dirty, _] =
        found;
    let used = || {
        let rest =
            [free?, buffers?, cached?, slab?].into_iter().try_fold(0_u64, u64::checked_add)?;
        total?.checked_sub(rest)
    };
    let percent = |part: Option<u64>, whole: Option<u64>| match (part, whole) {
        (Some(part), Some(whole)) if whole > 0 => Value::level(part as f64 / whole as f64 * 100.0),
        _ => Value::Absent,
    };
    let level =
        |number: Option<u64>| number.map_or(Value::Absent, |number| Value::level(number as f64));
    let promised = || total?.checked_add(swap?);
    [
        level(free),
        level(available),
        level(used()),
        percent(used(), total),
        level(buffers),
        level(cached),
        level(commit),
        percent(commit, promised()),
        level(active),
        level(inactive),
        level(dirty),
    ]
}

/// The counters of paging, in the order of the metrics. Scanned and reclaimed pages are counted by who scans; kernels
/// before 4.8 also count each zone. Later ones count them once more by kind (`pgscan_anon`).
fn paging_counts(vmstat: &[u8]) -> [Option<u64>; PAGING.len()] {
    let mut counts = [None; PAGING.len()];
    for line in lines(vmstat) {
        let mut words = words(line);
        let (Some(name), Some(number)) = (words.next(), words.next().and_then(count)) else {
            continue;
        };
        let mut add = |at: usize| {
            counts[at] = Some(counts[at].unwrap_or(0_u64).saturating_add(number));
        };
        match name {
            b"pgpgin" => add(0),
            b"pgpgout" => add(1),
            b"pgfault" => add(MINOR),
            b"pgmajfault" => add(MAJOR),
            b"pgfree" => add(4),
            b"pswpin" => add(9),
            b"pswpout" => add(10),
            b"pgscan_direct_throttle" => {}
            _ => {
                let is_of = |kinds: &[&[u8]]| kinds.iter().any(|kind| name.starts_with(kind));
                if is_of(&[b"pgscan_kswapd"]) {
                    add(5);
                    add(SCANNED);
                } else if is_of(&[b"pgscan_direct"]) {
                    add(6);
                    add(SCANNED);
                } else if is_of(&[b"pgscan_khugepaged", b"pgscan_proactive"]) {
                    add(SCANNED);
                } else if is_of(&[
                    b"pgsteal_kswapd",
                    b"pgsteal_direct",
                    b"pgsteal_khugepaged",
                    b"pgsteal_proactive",
                ]) {
                    add(SCANNED + 1);
                }
            }
        }
    }
    let major = counts[MAJOR].unwrap_or(0);
    counts[MINOR] = counts[MINOR].map(|all| all.saturating_sub(major));
    counts
}

/// /proc/loadavg, pressure/cpu and pressure/io (proc(5)), in this order.
#[derive(Default)]
pub(super) struct Scheduler;

const fn scheduler(name: &'static str, unit: &'static str) -> Metric {
    Metric::level("sar-scheduler", name, unit)
}

const LOADS: [Metric; 5] = [
    scheduler("Load-Average-01m", "tasks"),
    scheduler("Load-Average-05m", "tasks"),
    scheduler("Load-Average-15m", "tasks"),
    scheduler("Run-Queue-Length", "tasks"),
    scheduler("Process-List-Size", "tasks"),
];

impl Format for Scheduler {
    fn parse(&mut self, texts: &[&[u8]], table: &mut Table) {
        let [loads, cpu, io] = [0, 1, 2].map(|at| texts.get(at).copied().unwrap_or_default());
        let mut words = words(loads.trim_ascii());
        for m in 0..3 {
            let load = words.next().map_or(Value::Absent, decimal);
            table.add(Key { n: OF_LEVELS, m, ..Key::default() }, load);
        }
        // Tasks that run or could, and all tasks: `7/116`. The task that reads is not counted, as sar does.
        let tasks = words.next().unwrap_or_default();
        let mut tasks = tasks.split(|byte| *byte == b'/').map(count);
        let level = |number: Option<u64>| {
            number.map_or(Value::Absent, |number| Value::level(number as f64))
        };
        let running = tasks.next().flatten().map(|running| running.saturating_sub(1));
        table.add(Key { n: OF_LEVELS, m: 3, ..Key::default() }, level(running));
        table.add(Key { n: OF_LEVELS, m: 4, ..Key::default() }, level(tasks.next().flatten()));
        add_pressure(cpu, b"cpu", table);
        add_pressure(io, b"io", table);
    }

    fn column(&mut self, key: Key<'_>, _: u32) -> Column {
        match key.n {
            OF_LEVELS => LOADS.get(key.m as usize).unwrap_or(&LOADS[0]).column(names([])),
            _ => pressure_column(key),
        }
    }
}

/// What pressure is on, whether some or all tasks wait, the metric's source, and how its name begins.
const PRESSURES: [(&str, &str, &str, &str); 5] = [
    ("cpu", "some", "sar-scheduler", "%-Time-Tasks-CPU-Starved"),
    ("memory", "some", "sar-mem", "%-Time-Tasks-Waiting-on-Memory"),
    ("memory", "full", "sar-mem", "%-Time-Non-Idle-Tasks-Stalled-on-Memory"),
    ("io", "some", "sar-io", "%-Time-Tasks-Lost-Waiting-on-IO"),
    ("io", "full", "sar-io", "%-Time-Tasks-Stalled-Waiting-on-IO"),
];
/// The fields of a line of pressure, and how names of metrics end.
const WINDOWS: [(&[u8], &str); 4] =
    [(b"avg10=", "010s"), (b"avg60=", "060s"), (b"avg300=", "300s"), (b"total=", "last_interval")];

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0` (Linux, Documentation/accounting/psi.rst).
fn add_pressure(text: &[u8], on: &[u8], table: &mut Table) {
    for line in lines(text) {
        let mut words = words(line);
        let Some(who) = words.next() else { continue };
        let known = |(of, kind, ..): &(&str, &str, &str, &str)| {
            of.as_bytes() == on && kind.as_bytes() == who
        };
        if !PRESSURES.iter().any(known) {
            continue;
        }
        for (m, ((field, _), word)) in (0..).zip(WINDOWS.iter().zip(words)) {
            let number = word.strip_prefix(*field).unwrap_or_default();
            let key = Key { a: on, b: who, n: OF_PRESSURE, m };
            let is_total = m as usize == WINDOWS.len() - 1;
            if is_total {
                table.add_count(key, count(number))
            } else {
                table.add(key, decimal(number))
            }
        }
    }
}

fn pressure_column(key: Key<'_>) -> Column {
    let (on, who) = (key.a_text(), key.b_text());
    let found = PRESSURES.iter().find(|(of, kind, ..)| *of == on && *kind == who);
    let (.., source, begin) = found.unwrap_or(&PRESSURES[0]);
    let (_, end) = WINDOWS.get(key.m as usize).unwrap_or(&WINDOWS[0]);
    let is_total = key.m as usize == WINDOWS.len() - 1;
    Column {
        source: (*source).to_owned(),
        metric: format!("{begin}-{end}"),
        names: names([]),
        unit: "%".to_owned(),
        // The total is in microseconds.
        rule: if is_total { Rule::Rate } else { Rule::Level },
        scale: if is_total { 1e-4 } else { 1.0 },
    }
}
