//! The samples of a run as lines over time.

use std::collections::BTreeMap;

use linerate_measure::paths::SendingPaths;
use linerate_measure::sample::MachineCpu;
use linerate_measure::{Direction, Kind, Role, Run, Sample, Workload, metric};

use crate::chart::{Line, Look, Panel, Point, TimeAxis};
use crate::quantity::Quantity;

use super::held::held_panel;

/// The most flows that a page has one by one.
const MOST_FLOWS: usize = Sample::MAX_FLOWS;

/// The most moments that are marked.
const MOST_MARKS: usize = 50;

/// The flows of a run one by one.
pub(super) struct FlowSeries {
    /// Numbers of flows, and their goodput in each interval of the receiver, in bits per second.
    pub(super) flows: Vec<(u32, Vec<Option<f64>>)>,
    /// The greatest value.
    pub(super) high_bps: f64,
    /// What is not shown, in words, or empty.
    pub(super) left_out: String,
}

fn seconds_of(sample: &Sample) -> f64 {
    sample.to_ns.saturating_sub(sample.from_ns).max(1) as f64 / 1e9
}

fn point(sample: &Sample, value: f64) -> Point {
    Point { from_ns: sample.from_ns, to_ns: sample.to_ns, value: value.max(0.0) }
}

/// A line of what one end's samples have.
fn line(
    run: &Run,
    role: Role,
    (name, colour, look): (&'static str, usize, Look),
    mut value: impl FnMut(&Sample) -> Option<f64>,
) -> Line {
    let samples = run.samples.iter().filter(|sample| sample.role == role);
    let points = samples.filter_map(|sample| Some(point(sample, value(sample)?)));
    Line { name, colour, look, points: points.collect() }
}

/// The axis and the panels of a run.
pub(super) fn panels_of(run: &Run) -> (TimeAxis, Vec<Panel>) {
    let workload = &run.plan.workload;
    let end_ns = run.samples.iter().map(|sample| sample.to_ns).max().unwrap_or(0);
    let warm = run.samples.iter().filter(|sample| sample.warm_up);
    let warm_up_ns = warm.map(|sample| sample.to_ns).max().unwrap_or(0);
    let mut panels = match workload.kind {
        Kind::Stream { .. } => stream_panels(run, workload),
        Kind::Rr { .. } | Kind::Connect { .. } => transaction_panels(run, workload),
    };
    panels.extend([cpu_panel(run), wait_panel(run)]);
    let mut marks_ns: Vec<u64> = run.status.reasons.iter().filter_map(|one| one.at_ns).collect();
    marks_ns.truncate(MOST_MARKS);
    (TimeAxis { end_ns, warm_up_ns, marks_ns }, panels)
}

/// What a line is called where there is one direction, and where there are two, up and down.
fn named(direction: Direction, is_both: bool, words: [&'static str; 3]) -> &'static str {
    let [alone, up, down] = words;
    match (is_both, direction) {
        (false, _) => alone,
        (true, Direction::Down) => down,
        (true, _) => up,
    }
}

fn stream_panels(run: &Run, workload: &Workload) -> Vec<Panel> {
    let directions = workload.directions();
    let is_both = directions.len() > 1;
    let mut rate = Panel::new("Rate", Quantity::Rate);
    let mut rtt = Panel::new("Round trip", Quantity::Duration);
    let mut window = Panel::new("Window", Quantity::Bytes);
    let mut lost = Panel::new("Lost", Quantity::Count);
    let mut held = Vec::new();
    for (place, direction) in directions.into_iter().enumerate() {
        let (sender, receiver) = (direction.sender(), direction.receiver());
        let bits = |bytes: u64, sample: &Sample| bytes as f64 * 8.0 / seconds_of(sample);
        let received =
            named(direction, is_both, [metric::GOODPUT.label, "goodput up", "goodput down"]);
        let sent = named(direction, is_both, [metric::SENT_RATE.label, "sent up", "sent down"]);
        rate.lines.push(line(run, receiver, (received, 2 * place, Look::Solid), |sample| {
            Some(bits(sample.received?.bytes, sample))
        }));
        rate.lines.push(line(run, sender, (sent, 2 * place + 1, Look::Dashed), |sample| {
            Some(bits(sample.sent?.bytes, sample))
        }));
        if workload.has_datagrams() {
            lost.lines.extend(datagram_lines(run, receiver, (place, direction, is_both)));
        } else {
            lost.title = "Sent again";
            let again = named(direction, is_both, ["segments or packets", "up", "down"]);
            let mut paths = SendingPaths::default();
            lost.lines.push(line(run, sender, (again, 2 * place + 1, Look::Bars), |sample| {
                Some(paths.record_sample(sample, workload).lost? as f64)
            }));
        }
        let smoothed = named(direction, is_both, ["smoothed", "smoothed up", "smoothed down"]);
        let mut paths = SendingPaths::default();
        rtt.lines.push(line(run, sender, (smoothed, 2 * place, Look::Solid), |sample| {
            Some(paths.record_sample(sample, workload).mean_rtt_ns? as f64)
        }));
        let least = named(direction, is_both, ["least", "least up", "least down"]);
        rtt.lines.push(line(run, sender, (least, 2 * place + 1, Look::Dashed), least_rtt_ns));
        let congestion =
            named(direction, is_both, ["congestion", "congestion up", "congestion down"]);
        let mut paths = SendingPaths::default();
        window.lines.push(line(run, sender, (congestion, 2 * place, Look::Solid), |sample| {
            Some(paths.record_sample(sample, workload).cwnd_bytes? as f64)
        }));
        let in_flight = named(direction, is_both, ["in flight", "in flight up", "in flight down"]);
        let mut paths = SendingPaths::default();
        let flight = line(run, sender, (in_flight, 2 * place + 1, Look::Dashed), |sample| {
            Some(paths.record_sample(sample, workload).in_flight_bytes? as f64)
        });
        window.lines.extend(Some(flight).filter(|line| !line.points.is_empty()));
        let title = named(
            direction,
            is_both,
            ["What held the sender up", "What held the client up", "What held the server up"],
        );
        held.push(held_panel(run, direction, title));
    }
    [rate, rtt, window, lost].into_iter().chain(held).collect()
}

/// What became of datagrams, interval by interval.
fn datagram_lines(
    run: &Run,
    receiver: Role,
    (place, direction, is_both): (usize, Direction, bool),
) -> Vec<Line> {
    let lost = named(direction, is_both, ["datagrams", "datagrams up", "datagrams down"]);
    let frames = named(direction, is_both, ["frames late or dropped", "frames up", "frames down"]);
    let counts = |sample: &Sample| sample.datagrams;
    vec![
        line(run, receiver, (lost, 2 * place + 1, Look::Bars), |sample| {
            Some(counts(sample)?.lost? as f64)
        }),
        line(run, receiver, (frames, 2 * place, Look::Solid), |sample| {
            let frames = counts(sample)?.frames?;
            Some(frames.late?.saturating_add(frames.dropped.unwrap_or(0)) as f64)
        }),
    ]
    .into_iter()
    .filter(|line| !line.points.is_empty())
    .collect()
}

/// The least round trip of the connections that an end sends on, so far.
fn least_rtt_ns(sample: &Sample) -> Option<f64> {
    let sending = sample.flows.iter().filter(|flow| flow.sent_bytes.is_some());
    let least = sending.filter_map(|flow| match (flow.tcp, &flow.quic) {
        (Some(tcp), _) => tcp.min_rtt_us,
        (None, Some(quic)) => Some(quic.min_rtt_us),
        (None, None) => None,
    });
    least.min().map(|us| f64::from(us) * 1e3)
}

fn transaction_panels(run: &Run, workload: &Workload) -> Vec<Panel> {
    let is_connect = matches!(workload.kind, Kind::Connect { .. });
    let name = if is_connect { metric::CONNECTIONS_PER_S } else { metric::TRANSACTIONS_PER_S };
    let rate = line(run, Role::Client, (name.label, 0, Look::Solid), |sample| {
        Some(sample.transactions? as f64 / seconds_of(sample))
    });
    let mean = line(run, Role::Client, ("mean", 0, Look::Solid), |sample| sample.latency_mean_ns);
    let lost = line(run, Role::Client, ("datagrams", 1, Look::Bars), |sample| {
        Some(sample.datagrams?.lost? as f64)
    });
    vec![
        Panel { lines: vec![rate], ..Panel::new("Rate", Quantity::PerSecond) },
        Panel { lines: vec![mean], ..Panel::new("Latency", Quantity::Duration) },
        Panel { lines: vec![lost], ..Panel::new("Lost", Quantity::Count) },
    ]
}

/// Processor time in hundredths of one processor: the load's threads, and all that ran on the machines.
fn cpu_panel(run: &Run) -> Panel {
    let load = |sample: &Sample| {
        let load = sample.cpu.as_ref()?.load;
        Some((load.user_s + load.system_s) / seconds_of(sample) * 100.0)
    };
    let machine = |sample: &Sample| {
        let machine = &sample.cpu.as_ref()?.machine;
        (!machine.is_empty())
            .then(|| machine.iter().map(busy_s).sum::<f64>() / seconds_of(sample) * 100.0)
    };
    let lines = vec![
        line(run, Role::Client, ("client's threads", 0, Look::Solid), load),
        line(run, Role::Client, ("client's machine", 0, Look::Dashed), machine),
        line(run, Role::Server, ("server's threads", 1, Look::Solid), load),
        line(run, Role::Server, ("server's machine", 1, Look::Dashed), machine),
    ];
    let lines = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
    Panel { lines, ..Panel::new("CPU, percent of one processor", Quantity::Percent) }
}

/// How long the load's threads were ready to run and had no processor, likewise.
fn wait_panel(run: &Run) -> Panel {
    let wait = |sample: &Sample| Some(sample.cpu.as_ref()?.wait_s? / seconds_of(sample) * 100.0);
    let lines = vec![
        line(run, Role::Client, ("client's threads", 0, Look::Solid), wait),
        line(run, Role::Server, ("server's threads", 1, Look::Solid), wait),
    ];
    let lines = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
    Panel { lines, ..Panel::new("Waiting for a processor, likewise", Quantity::Percent) }
}

fn busy_s(cpu: &MachineCpu) -> f64 {
    cpu.user_s + cpu.system_s + cpu.irq_s + cpu.softirq_s + cpu.steal_s
}

/// The flows of a run with several: what each received, interval by interval.
pub(super) fn flows_of(run: &Run) -> Option<FlowSeries> {
    let workload = &run.plan.workload;
    let total = workload.total_flows();
    if total < 2 || !matches!(workload.kind, Kind::Stream { .. }) {
        return None;
    }
    let mut flows: BTreeMap<u32, Vec<Option<f64>>> = BTreeMap::new();
    for direction in workload.directions() {
        let of_end = run.samples.iter().filter(|sample| sample.role == direction.receiver());
        for (place, sample) in of_end.enumerate() {
            let listed = sample.flows.iter().filter(|flow| {
                workload.flow_direction(flow.flow) == direction && flow.received_bytes.is_some()
            });
            for flow in listed {
                if flows.len() >= MOST_FLOWS && !flows.contains_key(&flow.flow) {
                    continue;
                }
                let values = flows.entry(flow.flow).or_default();
                values.resize(place, None);
                let bytes = flow.received_bytes.unwrap_or(0);
                values.push(Some(bytes as f64 * 8.0 / seconds_of(sample)));
            }
        }
    }
    let high_bps = flows.values().flatten().flatten().copied().fold(0.0, f64::max);
    let shown = flows.len();
    let left_out = match total as usize {
        total if total > shown => format!(" {shown} of {total} flows have samples of their own."),
        _ => String::new(),
    };
    (shown > 0).then(|| FlowSeries { flows: flows.into_iter().collect(), high_bps, left_out })
}
