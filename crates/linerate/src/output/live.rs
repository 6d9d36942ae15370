//! A line for each interval while a load runs.

use std::collections::BTreeMap;

use linerate_engine::event::Event;
use linerate_measure::metric;
use linerate_measure::paths::{PathFigures, SendingPaths};
use linerate_measure::units::{render_count, render_duration_ns, render_rate};
use linerate_measure::{Direction, Kind, Plan, Role, Sample, Transport, Workload};

use super::Style;
use super::pairing::{Interval, Pairing};
use super::table::render_row;
use super::text::render_title;

/// Renders the lines. Each stands alone: nothing on the screen is moved or overwritten.
pub(crate) struct LiveLines {
    style: Style,
    workload: Option<Workload>,
    pairing: Pairing,
    /// Each end's.
    paths: BTreeMap<Role, SendingPaths>,
}

/// Widths of the columns: time, direction, figure, and two or three more.
const WIDTHS: [usize; 6] = [14, 4, 13, 13, 13, 10];

impl LiveLines {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, workload: None, pairing: Pairing::default(), paths: BTreeMap::new() }
    }

    /// The lines that an event completes.
    pub(crate) fn render_event(&mut self, event: &Event) -> String {
        match event {
            Event::Started { plan, .. } => self.render_start(plan),
            Event::Sample(sample) => {
                let ready = self.pairing.record_sample(sample);
                self.render_intervals(&ready)
            }
            _ => String::new(),
        }
    }

    /// The lines of intervals that were held back for their other half.
    pub(crate) fn render_rest(&mut self) -> String {
        let rest = self.pairing.drain();
        self.render_intervals(&rest)
    }

    fn render_start(&mut self, plan: &Plan) -> String {
        self.workload = Some(plan.workload.clone());
        self.paths.clear();
        let mut head = vec!["time".to_owned(), String::new()];
        head.extend(names_of(&plan.workload));
        let head = render_row(&head, &WIDTHS);
        format!("{}\n\n{}\n", render_title(plan), self.style.bold(&head))
    }

    fn render_intervals(&mut self, intervals: &[Interval]) -> String {
        let Some(workload) = self.workload.clone() else {
            return String::new();
        };
        let mut text = String::new();
        for interval in intervals {
            match workload.kind {
                Kind::Rr { .. } | Kind::Connect { .. } => {
                    text.push_str(&render_rr(interval, &workload))
                }
                Kind::Stream { .. } => {
                    for direction in workload.directions() {
                        text.push_str(&self.render_stream(interval, &workload, direction));
                    }
                }
            }
        }
        text
    }

    fn render_stream(
        &mut self,
        interval: &Interval,
        workload: &Workload,
        direction: Direction,
    ) -> String {
        let Some(sample) = interval.of(direction.receiver()) else {
            return String::new();
        };
        let bytes = sample.received.map_or(0, |received| received.bytes);
        let seconds = seconds_of(sample);
        let mut row = vec![render_time(sample), String::new()];
        if workload.direction() == Some(Direction::Both) {
            row[1] = if direction == Direction::Up { "up" } else { "down" }.to_owned();
        }
        row.push(render_rate(bytes as f64 * 8.0 / seconds));
        if workload.frames().is_some() {
            row.extend(render_frames(sample, seconds));
        } else if workload.has_datagrams() {
            let counts = sample.datagrams.unwrap_or_default();
            row.push(
                counts
                    .received
                    .map_or_else(dash, |n| format!("{}/s", render_count(n as f64 / seconds))),
            );
            row.push(counts.lost.map_or_else(dash, |lost| lost.to_string()));
        } else {
            let sender = interval.of(direction.sender());
            let figures = sender.map_or_else(PathFigures::default, |sample| {
                self.paths.entry(sample.role).or_default().record_sample(sample, workload)
            });
            row.push(figures.lost.map_or_else(dash, |n| n.to_string()));
            row.push(figures.mean_rtt_ns.map_or_else(dash, render_duration_ns));
        }
        render_row(&row, &WIDTHS) + "\n"
    }
}

/// What the columns of figures are called.
fn names_of(workload: &Workload) -> Vec<String> {
    let mean_latency = format!("mean {}", metric::LATENCY.label);
    let lost = workload.has_datagrams().then(|| "lost".to_owned());
    let name = |metric: metric::Metric| metric.label.to_owned();
    let mut names = match (&workload.kind, workload.transport) {
        (Kind::Rr { .. }, _) => vec![name(metric::TRANSACTIONS_PER_S), mean_latency],
        (Kind::Connect { .. }, _) => {
            vec![name(metric::CONNECTIONS_PER_S), "mean time".to_owned()]
        }
        (Kind::Stream { media: Some(_), .. }, _) => {
            let kinds = ["late", "dropped"].map(str::to_owned);
            return [name(metric::GOODPUT), name(metric::FRAMES)]
                .into_iter()
                .chain(kinds)
                .collect();
        }
        _ if workload.has_datagrams() => {
            vec![name(metric::GOODPUT), name(metric::DATAGRAMS_PER_S)]
        }
        (_, Transport::Quic) => {
            vec![name(metric::GOODPUT), name(metric::LOST_PACKETS), name(metric::RTT)]
        }
        _ => vec![name(metric::GOODPUT), name(metric::RETRANSMITS), name(metric::RTT)],
    };
    names.extend(lost);
    names
}

/// Frames completed per second, late and dropped.
fn render_frames(sample: &Sample, seconds: f64) -> [String; 3] {
    let frames = sample.datagrams.and_then(|counts| counts.frames).unwrap_or_default();
    let completed = frames.completed.map(|n| format!("{}/s", render_count(n as f64 / seconds)));
    let number = |frames: Option<u64>| frames.map_or_else(dash, |frames| frames.to_string());
    [completed.unwrap_or_else(dash), number(frames.late), number(frames.dropped)]
}

fn render_rr(interval: &Interval, workload: &Workload) -> String {
    let Some(sample) = interval.of(Role::Client) else {
        return String::new();
    };
    let rate = sample.transactions.map(|done| done as f64 / seconds_of(sample));
    let mut row = vec![
        render_time(sample),
        String::new(),
        rate.map_or_else(dash, |rate| format!("{}/s", render_count(rate))),
        sample.latency_mean_ns.map_or_else(dash, |mean| render_duration_ns(mean.max(0.0) as u64)),
    ];
    if workload.has_datagrams() {
        let lost = sample.datagrams.and_then(|counts| counts.lost);
        row.push(lost.map_or_else(dash, |lost| lost.to_string()));
    }
    render_row(&row, &WIDTHS) + "\n"
}

/// With as many decimals as it takes to tell one end from the other.
fn render_time(sample: &Sample) -> String {
    let warm_up = if sample.warm_up { " *" } else { "" };
    let length_ns = sample.to_ns.saturating_sub(sample.from_ns);
    let decimals = match length_ns {
        0..9_500_000 => 3,
        9_500_000..95_000_000 => 2,
        _ => 1,
    };
    let second = |ns: u64| format!("{:.decimals$}", ns as f64 / 1e9);
    format!("{}-{} s{warm_up}", second(sample.from_ns), second(sample.to_ns))
}

fn seconds_of(sample: &Sample) -> f64 {
    (sample.to_ns.saturating_sub(sample.from_ns).max(1)) as f64 / 1e9
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests;
