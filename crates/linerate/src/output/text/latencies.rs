//! The table of latencies: as many columns as the screen has room for, else a row for each figure.

use linerate_measure::Summary;
use linerate_measure::histogram::observations_for;
use linerate_measure::metric;
use linerate_measure::quantile::QuantileInterval;
use linerate_measure::summary::{Latency, LatencyFrom};
use linerate_measure::units::render_duration_ns;

use crate::output::{Style, Table};

/// The latency and the parts of it that were measured apart, in lines of at most so many columns where that can be;
/// then how many observations the missing percentiles take.
pub(crate) fn render_latencies(summary: &Summary, style: Style, columns: usize) -> String {
    let parts = parts_of(summary);
    if parts.is_empty() {
        return String::new();
    }
    let cells = cells_of(&parts, summary);
    let wide = table_of(&cells).render(style);
    let fits = wide.lines().all(|line| line.chars().count() <= columns);
    let table = if fits { wide } else { table_of(&transposed(&cells)).render(style) };
    table + &render_missing(&parts)
}

/// The table's rows, the head first; empty where no latency was measured.
pub(crate) fn latency_cells(summary: &Summary) -> Vec<Vec<String>> {
    let parts = parts_of(summary);
    if parts.is_empty() { Vec::new() } else { cells_of(&parts, summary) }
}

/// The latency and the parts of it that were measured apart, by name.
fn parts_of(summary: &Summary) -> Vec<(&'static str, Latency)> {
    let connects = summary.connections_per_s.is_some();
    let whole = match summary.latency_from {
        Some(LatencyFrom::OpenLoop) => "from when it was due",
        _ if connects => "closed",
        _ => "",
    };
    let parts = [
        (metric::ESTABLISHMENT.label, &summary.establishment_ns),
        (metric::FIRST_BYTE.label, &summary.first_byte_ns),
        (whole, &summary.latency_ns),
        (metric::SERVICE.label, &summary.service_ns),
    ];
    parts.iter().filter_map(|(name, part)| Some((*name, (**part)?))).collect()
}

/// A row for each part, its figures in columns; the first row names them.
fn cells_of(parts: &[(&str, Latency)], summary: &Summary) -> Vec<Vec<String>> {
    let title = match summary.latency_from {
        Some(LatencyFrom::ClosedLoop) => "latency (closed loop)",
        Some(LatencyFrom::OpenLoop) => "latency (open loop)",
        None => "latency",
    };
    let supported =
        |quantile: &&Quantile| parts.iter().any(|(_, part)| (quantile.of)(part).is_some());
    let quantiles: Vec<&Quantile> = QUANTILES.iter().filter(supported).collect();
    let mut head = vec![title.to_owned(), "min".to_owned(), "mean".to_owned()];
    head.extend(quantiles.iter().map(|quantile| quantile.name.to_owned()));
    head.push("max".to_owned());
    let mut cells = vec![head];
    for (name, part) in parts {
        let mean = render_duration_ns(part.mean.max(0.0) as u64);
        let mut row = vec![(*name).to_owned(), render_duration_ns(part.min), mean];
        let value =
            |quantile: &&Quantile| (quantile.of)(part).map_or("-".to_owned(), render_duration_ns);
        row.extend(quantiles.iter().map(value));
        row.push(render_duration_ns(part.max));
        cells.push(row);
        if Some(*part) == summary.latency_ns {
            cells.extend(interval_row(&quantiles, &summary.latency_intervals));
        }
    }
    cells
}

/// The interval of each quantile that has one; `None`: none has.
fn interval_row(quantiles: &[&Quantile], intervals: &[QuantileInterval]) -> Option<Vec<String>> {
    let confidence = intervals.first()?.confidence;
    let interval = |quantile: &&Quantile| {
        let of_it = intervals.iter().find(|interval| interval.name == quantile.name);
        of_it.map_or(String::new(), |one| render_interval(one.low_ns, one.high_ns))
    };
    let mut row = vec![format!("{:.0} % interval", confidence * 100.0)];
    row.extend([String::new(), String::new()]);
    row.extend(quantiles.iter().map(interval));
    row.push(String::new());
    Some(row)
}

/// `[1.10..1.40 ms]`, or with both units where they differ.
fn render_interval(low_ns: u64, high_ns: u64) -> String {
    let (low, high) = (render_duration_ns(low_ns), render_duration_ns(high_ns));
    let units = low.split_once(' ').zip(high.split_once(' '));
    match units {
        Some(((number, unit), (_, same))) if unit == same => format!("[{number}..{high}]"),
        _ => format!("[{low}..{high}]"),
    }
}

fn transposed(cells: &[Vec<String>]) -> Vec<Vec<String>> {
    let columns = cells.first().map_or(0, Vec::len);
    let cell = |row: &Vec<String>, column| row.get(column).cloned().unwrap_or_default();
    (0..columns).map(|column| cells.iter().map(|row| cell(row, column)).collect()).collect()
}

fn table_of(cells: &[Vec<String>]) -> Table {
    let (head, rows) = cells.split_first().map_or((Vec::new(), cells), |(head, rows)| {
        (head.iter().map(String::as_str).collect(), rows)
    });
    let mut table = Table::with_head(&head);
    rows.iter().for_each(|row| table.push(row.clone()));
    table
}

/// `2000 observations: p99.9 takes 3688, ...`; empty where every percentile is there.
fn render_missing(parts: &[(&str, Latency)]) -> String {
    let missing = |quantile: &&Quantile| {
        let needed = observations_for(quantile.quantile);
        parts.iter().any(|(_, part)| (quantile.of)(part).is_none() && part.count < needed)
    };
    let takes = |quantile: &Quantile| {
        format!("{} takes {}", quantile.name, observations_for(quantile.quantile))
    };
    let missing: Vec<String> = QUANTILES.iter().filter(missing).map(takes).collect();
    let most = parts.iter().map(|(_, part)| part.count).max().unwrap_or_default();
    if missing.is_empty() {
        return String::new();
    }
    format!("{most} observations: {}\n", missing.join(", "))
}

struct Quantile {
    name: &'static str,
    quantile: f64,
    of: fn(&Latency) -> Option<u64>,
}

const QUANTILES: [Quantile; 6] = [
    Quantile { name: "p50", quantile: 0.5, of: |latency| latency.p50 },
    Quantile { name: "p90", quantile: 0.9, of: |latency| latency.p90 },
    Quantile { name: "p99", quantile: 0.99, of: |latency| latency.p99 },
    Quantile { name: "p99.9", quantile: 0.999, of: |latency| latency.p99_9 },
    Quantile { name: "p99.99", quantile: 0.9999, of: |latency| latency.p99_99 },
    Quantile { name: "p99.999", quantile: 0.99999, of: |latency| latency.p99_999 },
];
