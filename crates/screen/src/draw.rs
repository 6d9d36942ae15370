//! A screen as cells.

use std::collections::BTreeMap;

use linerate_measure::units::{render_count, render_duration_ns, render_rate};
use linerate_measure::{Direction, Kind};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use crate::bars::{draw_bars, row_of};
use crate::history::Point;
use crate::screen::{Load, Page, Screen};
use crate::words::{describe, render_so_far};

/// Rows above a page: the title, the figures, an empty one.
const HEAD_ROWS: u16 = 3;
/// The row of the keys.
const FOOT_ROWS: u16 = 1;
/// So many notes are shown.
const NOTES_SHOWN: usize = 3;
/// A histogram tells a time from those that differ by more than such a part of it.
const NEIGHBOURS: u64 = 100;
/// Limits of buckets up to the longest time that is counted: an hour.
const STEPS: u32 = 39;
/// The columns beside a bar of the distribution.
const BESIDE_BAR: usize = 20;

/// One series of bars: its name, its values, and how one is written.
struct Series {
    name: &'static str,
    of: fn(&Point) -> Option<f64>,
    write: fn(f64) -> String,
    colour: Color,
}

fn per_s(value: f64) -> String {
    format!("{}/s", render_count(value))
}

fn time(value: f64) -> String {
    render_duration_ns(value.max(0.0) as u64)
}

const UP: Series =
    Series { name: "up", of: |point| point.up_bps, write: render_rate, colour: Color::Green };
const DOWN: Series =
    Series { name: "down", of: |point| point.down_bps, write: render_rate, colour: Color::Green };
const RTT: Series =
    Series { name: "RTT", of: |point| point.rtt_ns, write: time, colour: Color::Cyan };
const TRANSACTIONS: Series =
    Series { name: "transactions", of: |point| point.per_s, write: per_s, colour: Color::Green };
const CONNECTIONS: Series = Series { name: "connections", ..TRANSACTIONS };
const LATENCY: Series =
    Series { name: "mean latency", of: |point| point.latency_ns, write: time, colour: Color::Cyan };
const P99: Series = Series { name: "p99", of: |point| point.p99_ns, ..LATENCY };

impl Screen {
    /// Draws it into all of a buffer.
    pub(crate) fn draw(&self, buffer: &mut Buffer, now_ns: u64) {
        let area = buffer.area;
        put(buffer, 0, &self.title, self.bold());
        put(buffer, 1, &self.render_time(now_ns), Style::new());
        let height = area.height.saturating_sub(HEAD_ROWS + FOOT_ROWS);
        let page = Rect { y: HEAD_ROWS.min(area.height), height, ..area };
        if let Some(load) = &self.load {
            match self.page {
                Page::Rates => self.draw_rates(buffer, page, load),
                Page::Flows => self.draw_flows(buffer, page, load),
                Page::Times => self.draw_times(buffer, page, load),
            }
        }
        let foot = area.height.saturating_sub(FOOT_ROWS);
        put(buffer, foot, self.render_keys(), self.bold());
    }

    fn bold(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn colour(&self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn render_keys(&self) -> &'static str {
        match (self.is_ending, self.is_paused) {
            (true, _) => "ending: waiting for the results",
            (false, true) => "paused: p goes on  q end",
            (false, false) => "1 rates  2 flows  3 times  p pause  q end",
        }
    }

    fn render_time(&self, now_ns: u64) -> String {
        let Some(load) = &self.load else { return format!("{}connecting", self.turn) };
        let passed_ns = now_ns.saturating_sub(load.since_ns);
        let time = match load.length_ns {
            Some(length_ns) => {
                let passed_s = passed_ns.min(length_ns) / 1_000_000_000;
                format!("{passed_s} of {} s", length_ns as f64 / 1e9)
            }
            None => format!("{} s", passed_ns / 1_000_000_000),
        };
        format!("{}{time}{}", self.turn, render_so_far(&load.so_far))
    }

    fn draw_rates(&self, buffer: &mut Buffer, page: Rect, load: &Load) {
        let mut words: Vec<String> = Vec::new();
        for way in load.so_far.workload().directions() {
            let Some(limit) = load.so_far.limit(way) else { continue };
            let way = if way == Direction::Down { "down" } else { "up" };
            words.push(format!("{way} limited by {}", describe(limit)));
            words.extend(limit.advice.as_ref().map(|advice| format!("  way out: {advice}")));
        }
        words.extend(self.notes.iter().rev().take(NOTES_SHOWN).map(|note| format!("note: {note}")));
        let most = usize::from(page.height / 3);
        words.truncate(most);
        let first = page.bottom().saturating_sub(words.len() as u16);
        for (row, text) in words.iter().enumerate() {
            put(buffer, first + row as u16, text, self.colour(Color::Yellow));
        }
        let known: Vec<(Series, Vec<Option<f64>>)> = series_of(load)
            .into_iter()
            .map(|series| {
                let values = load.history.series(series.of);
                (series, values)
            })
            .filter(|(_, values)| values.iter().any(Option::is_some))
            .collect();
        let rows = first.saturating_sub(page.y);
        let each = rows.checked_div(known.len() as u16).unwrap_or(0);
        for (place, (series, values)) in known.iter().enumerate() {
            let y = page.y + place as u16 * each;
            self.draw_series(buffer, Rect { y, height: each, ..page }, series, values);
        }
    }

    fn draw_series(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        series: &Series,
        values: &[Option<f64>],
    ) {
        let greatest = values.iter().flatten().copied().fold(0.0, f64::max);
        if area.height == 0 {
            return;
        }
        let now = values.iter().rev().flatten().next().copied().unwrap_or(0.0);
        let write = series.write;
        let head = format!("{} {}, greatest {}", series.name, write(now), write(greatest));
        put(buffer, area.y, &head, self.bold());
        let bars = Rect { y: area.y + 1, height: area.height - 1, ..area };
        if bars.height > 0 {
            draw_bars(buffer, bars, values, greatest, self.colour(series.colour));
        }
    }

    fn draw_flows(&self, buffer: &mut Buffer, page: Rect, load: &Load) {
        let mut flows: Vec<_> = load.history.flows.iter().collect();
        flows.sort_by(|(_, a), (_, b)| b.bps.total_cmp(&a.bps));
        put(buffer, page.y, "flow  way          rate         RTT  limited by", self.bold());
        let room = usize::from(page.height.saturating_sub(2));
        for (row, (number, flow)) in flows.iter().take(room).enumerate() {
            let way = load.so_far.workload().flow_direction(**number);
            let way = if way == Direction::Down { "down" } else { "up" };
            let rtt = flow.rtt_ns.map_or("-".to_owned(), render_duration_ns);
            let limit = load.so_far.flow_limit(**number).map_or("-".to_owned(), describe);
            let rate = render_rate(flow.bps);
            let text = format!("{number:>4}  {way:<4}  {rate:>11}  {rtt:>10}  {limit}");
            put(buffer, page.y + 1 + row as u16, &text, Style::new());
        }
        let all = load.so_far.workload().total_flows() as usize;
        let more = all.saturating_sub(flows.len().min(room));
        if more > 0 && page.height > 1 {
            let text = format!("{more} more flows");
            put(buffer, page.bottom() - 1, &text, Style::new());
        }
    }

    fn draw_times(&self, buffer: &mut Buffer, page: Rect, load: &Load) {
        let all = load.so_far.latencies();
        let head = match load.so_far.workload().kind {
            Kind::Stream { .. } => "round-trip times at the ends of intervals",
            Kind::Rr { .. } if !all.is_empty() => "latencies",
            Kind::Rr { .. } => "mean latencies of the intervals",
            Kind::Connect { .. } if !all.is_empty() => "times of connections",
            Kind::Connect { .. } => "mean times of connections in the intervals",
        };
        put(buffer, page.y, head, self.bold());
        let times = if all.is_empty() { &load.history.times } else { all };
        let ends = (times.recorded().next(), times.recorded().next_back());
        let (Some((least, _)), Some((greatest, _))) = ends else { return };
        let quantiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)]
            .map(|(name, q)| (name, times.quantile_ns(q)));
        let known: Vec<String> = [("min", Some(least))]
            .into_iter()
            .chain(quantiles)
            .chain([("max", Some(greatest))])
            .filter_map(|(name, ns)| Some(format!("{name} {}", render_duration_ns(ns?))))
            .collect();
        if page.height > 1 {
            put(buffer, page.y + 1, &known.join("  "), Style::new());
        }
        let room = usize::from(page.height.saturating_sub(2));
        let buckets = buckets_of(times.recorded(), room);
        let greatest = buckets.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let columns = usize::from(page.width).saturating_sub(BESIDE_BAR);
        for (row, (upper_ns, count)) in buckets.iter().enumerate() {
            let bar = row_of(*count as f64 / greatest as f64, columns);
            let text = format!("{:>9}  {count:>6}  {bar}", render_duration_ns(*upper_ns));
            put(buffer, page.y + 2 + row as u16, &text, self.colour(Color::Cyan));
        }
    }
}

/// What is drawn of a load.
fn series_of(load: &Load) -> Vec<Series> {
    match load.so_far.workload().kind {
        Kind::Stream { .. } => vec![UP, DOWN, RTT],
        Kind::Rr { .. } => vec![TRANSACTIONS, LATENCY, P99],
        Kind::Connect { .. } => vec![CONNECTIONS, LATENCY, P99],
    }
}

/// Counts of values up to 1, 2, 5, 10, ... from the first to the last that has any, so many at most: the greatest values
/// share the last one.
fn buckets_of(counts: impl Iterator<Item = (u64, u64)>, most: usize) -> Vec<(u64, u64)> {
    let upper = |step: u32| [1_u64, 2, 5][step as usize % 3] * 10_u64.pow(step.min(STEPS) / 3);
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for (ns, count) in counts {
        let step = (0..STEPS).find(|step| upper(*step) >= ns - ns / NEIGHBOURS).unwrap_or(STEPS);
        let sum = sums.entry(step).or_default();
        *sum = sum.saturating_add(count);
    }
    let (Some(first), Some(last)) = (sums.keys().next(), sums.keys().next_back()) else {
        return Vec::new();
    };
    let shown = *first..=*last;
    let last_shown = first.saturating_add(most.max(1) as u32 - 1);
    let mut buckets: Vec<(u64, u64)> = Vec::new();
    for step in shown {
        let count = sums.get(&step).copied().unwrap_or(0);
        match buckets.last_mut().filter(|_| step > last_shown) {
            Some((last, sum)) => (*last, *sum) = (upper(step), sum.saturating_add(count)),
            None => buckets.push((upper(step), count)),
        }
    }
    buckets
}

fn put(buffer: &mut Buffer, y: u16, text: &str, style: Style) {
    let area = buffer.area;
    if y < area.bottom() {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        buffer.set_stringn(0, y, text, usize::from(area.width), style);
    }
}
