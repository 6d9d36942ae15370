//! A line for each interval while a load runs.

use std::collections::BTreeMap;

use linerate_engine::event::Event;
use linerate_measure::units::{render_count, render_duration_ns, render_rate};
use linerate_measure::{Direction, Kind, Plan, Role, Sample, Transport, Workload};

use super::Style;
use super::pairing::{Interval, Pairing, directions_of, receiver_of, sender_of};
use super::table::render_row;
use super::text::render_title;

/// Renders the lines. Each stands alone: nothing on the screen is moved or overwritten.
pub(crate) struct LiveLines {
    style: Style,
    workload: Option<Workload>,
    pairing: Pairing,
    /// Retransmitted segments up to the interval before: counters run from a connection's start.
    lost_before: BTreeMap<Role, u64>,
}

/// Widths of the columns: time, direction, figure, and two or three more.
const WIDTHS: [usize; 6] = [14, 4, 13, 13, 13, 10];

impl LiveLines {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, workload: None, pairing: Pairing::default(), lost_before: BTreeMap::new() }
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
        self.lost_before.clear();
        let mut head = vec!["time".to_owned(), String::new()];
        let names: &[&str] = match (&plan.workload.kind, plan.workload.transport) {
            (Kind::Rr { .. }, _) if plan.workload.has_datagrams() => {
                &["transactions", "mean latency", "lost"]
            }
            (Kind::Rr { .. }, _) => &["transactions", "mean latency"],
            (Kind::Connect { .. }, _) => &["connections", "mean time"],
            _ if plan.workload.has_datagrams() => &["goodput", "datagrams", "lost"],
            (_, Transport::Quic) => &["goodput", "lost packets", "RTT"],
            _ => &["goodput", "retransmits", "RTT"],
        };
        head.extend(names.iter().map(|name| (*name).to_owned()));
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
                    for direction in directions_of(&workload) {
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
        let Some(sample) = interval.of(receiver_of(direction)) else {
            return String::new();
        };
        let bytes = sample.received.map_or(0, |received| received.bytes);
        let seconds = seconds_of(sample);
        let mut row = vec![render_time(sample), String::new()];
        if workload.direction() == Some(Direction::Both) {
            row[1] = if direction == Direction::Up { "up" } else { "down" }.to_owned();
        }
        row.push(render_rate(bytes as f64 * 8.0 / seconds));
        if workload.has_datagrams() {
            let counts = sample.datagrams.unwrap_or_default();
            row.push(
                counts
                    .received
                    .map_or_else(dash, |n| format!("{}/s", render_count(n as f64 / seconds))),
            );
            row.push(counts.lost.map_or_else(dash, |lost| lost.to_string()));
        } else {
            let sender = interval.of(sender_of(direction));
            let paths = sender.map_or_else(Vec::new, |sample| sending_paths(sample, workload));
            let lost = sender.and_then(|sample| self.lost(sample.role, &paths));
            row.push(lost.map_or_else(dash, |n| n.to_string()));
            row.push(mean_rtt_ns(&paths).map_or_else(dash, render_duration_ns));
        }
        render_row(&row, &WIDTHS) + "\n"
    }

    /// Segments sent again, or packets lost, in this interval, on all paths of the sending end
    /// together.
    fn lost(&mut self, sender: Role, paths: &[Path]) -> Option<u64> {
        let total = paths.iter().map(|path| path.lost).reduce(|sum, lost| sum + lost)?;
        let before = self.lost_before.insert(sender, total).unwrap_or(0);
        Some(total.saturating_sub(before))
    }
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

fn render_time(sample: &Sample) -> String {
    let second = |ns: u64| ns as f64 / 1e9;
    let warm_up = if sample.warm_up { " *" } else { "" };
    format!("{:.1}-{:.1} s{warm_up}", second(sample.from_ns), second(sample.to_ns))
}

fn seconds_of(sample: &Sample) -> f64 {
    (sample.to_ns.saturating_sub(sample.from_ns).max(1)) as f64 / 1e9
}

/// What is known of a connection that this end sends on.
struct Path {
    /// Segments sent again, or packets lost, since its start.
    lost: u64,
    rtt_us: u64,
}

fn mean_rtt_ns(paths: &[Path]) -> Option<u64> {
    let sum: u64 = paths.iter().map(|path| path.rtt_us).sum();
    (sum * 1000).checked_div(paths.len() as u64)
}

/// The connections that this end sends on, each once, however many flows share it.
fn sending_paths(sample: &Sample, workload: &Workload) -> Vec<Path> {
    let mut paths = Vec::new();
    let mut last = None;
    for flow in sample.flows.iter().filter(|flow| flow.sent_bytes.is_some()) {
        if let Some(tcp) = flow.tcp {
            paths.push(Path { lost: tcp.retransmitted_segments.into(), rtt_us: tcp.rtt_us.into() });
        }
        let connection = workload.connection_of(flow.flow);
        if let Some(quic) = flow.quic.filter(|_| last != Some(connection)) {
            last = Some(connection);
            paths.push(Path { lost: quic.lost_packets, rtt_us: quic.rtt_us.into() });
        }
    }
    paths
}

fn dash() -> String {
    "-".to_owned()
}
