//! Comma-separated values (RFC 4180, with line feeds): a row for each sample of each end, then a
//! summary row for the run, and after several runs of one plan rows of what they come to. Columns of what was not
//! measured are empty.

use std::collections::BTreeMap;

use linerate_engine::event::Event;
use linerate_measure::media::FrameCounts;
use linerate_measure::metric::{self, Metric};
use linerate_measure::paths::{PathFigures, SendingPaths};
use linerate_measure::repeats::{FigureSpread, Repeats};
use linerate_measure::sample::{CpuSeconds, DatagramCounts, Role};
use linerate_measure::summary::Latency;
use linerate_measure::{Kind, Run, Sample, Transport};

use super::Printer;
use super::text::{name_of, render_transport};
use crate::host::render_host_port;

/// Prints rows; the heading stands above the first.
#[derive(Default)]
pub struct CsvPrinter {
    headed: bool,
}

/// What a column is called.
enum Head {
    /// What tells rows apart, or a run from others.
    Fact(&'static str),
    /// A metric.
    Whole(&'static Metric),
    /// A part of one.
    Part(&'static Metric, &'static str),
}

impl Head {
    fn name(&self) -> String {
        match self {
            Self::Fact(name) => (*name).to_owned(),
            Self::Whole(metric) => metric.name.to_owned(),
            Self::Part(metric, part) => metric.part(part),
        }
    }
}

/// What stands in a column. But for the facts of a run none can hold a comma or a quotation mark: they are numbers and
/// words of this program.
type Cell = fn(&Row<'_>, &Facts) -> String;

/// The columns. New ones are added at the end, so that a script may count.
const COLUMNS: [(Head, Cell); 55] = [
    (Head::Fact("run_id"), |row, _| row.run_id.to_owned()),
    (Head::Fact("row"), |row, _| row.row.to_owned()),
    (Head::Fact("role"), |row, _| row.role.to_owned()),
    (Head::Fact("index"), |row, _| cell(row.index)),
    (Head::Fact("from_s"), |row, _| cell(row.from_s)),
    (Head::Fact("to_s"), |row, _| cell(row.to_s)),
    (Head::Fact("warm_up"), |row, _| cell(row.warm_up)),
    (Head::Fact("size_bytes"), |row, _| row.size_bytes.to_string()),
    (Head::Whole(&metric::SENT_BYTES), |row, _| cell(row.sent_bytes)),
    (Head::Whole(&metric::RECEIVED_BYTES), |row, _| cell(row.received_bytes)),
    (Head::Whole(&metric::GOODPUT), |row, _| cell(row.goodput_bps)),
    (Head::Whole(&metric::TRANSACTIONS), |row, _| cell(row.transactions)),
    (Head::Whole(&metric::TRANSACTIONS_PER_S), |row, _| cell(row.transactions_per_s)),
    (Head::Part(&metric::LATENCY, "mean"), |row, _| cell(row.latency_mean_ns)),
    (Head::Part(&metric::LATENCY, "p50"), |row, _| {
        cell(row.latency.and_then(|latency| latency.p50))
    }),
    (Head::Part(&metric::LATENCY, "p99"), |row, _| {
        cell(row.latency.and_then(|latency| latency.p99))
    }),
    (Head::Part(&metric::LATENCY, "max"), |row, _| cell(row.latency.map(|latency| latency.max))),
    (Head::Part(&metric::DATAGRAMS, "sent"), |row, _| cell(row.datagrams.sent)),
    (Head::Part(&metric::DATAGRAMS, "refused"), |row, _| cell(row.datagrams.refused)),
    (Head::Part(&metric::DATAGRAMS, "received"), |row, _| cell(row.datagrams.received)),
    (Head::Part(&metric::DATAGRAMS, "lost"), |row, _| cell(row.datagrams.lost)),
    (Head::Part(&metric::DATAGRAMS, "duplicated"), |row, _| cell(row.datagrams.duplicated)),
    (Head::Part(&metric::DATAGRAMS, "reordered"), |row, _| cell(row.datagrams.reordered)),
    (Head::Part(&metric::DATAGRAMS, "dropped_by_socket"), |row, _| {
        cell(row.datagrams.dropped_by_socket)
    }),
    (Head::Part(&metric::CPU, "user"), |row, _| cell(row.cpu.map(|cpu| cpu.user_s))),
    (Head::Part(&metric::CPU, "system"), |row, _| cell(row.cpu.map(|cpu| cpu.system_s))),
    (Head::Whole(&metric::RETRANSMITS), |row, _| cell(row.retransmitted_segments)),
    (Head::Fact("outcome"), |row, _| row.outcome.clone()),
    (Head::Whole(&metric::TRANSACTIONS_LOST), |row, _| cell(row.transactions_lost)),
    (Head::Whole(&metric::TRANSACTIONS_UNSENT), |row, _| cell(row.transactions_unsent)),
    (Head::Whole(&metric::ERRORS), |row, _| cell(row.errors)),
    (Head::Part(&metric::ESTABLISHMENT, "p50"), |row, _| {
        cell(row.parts.establishment.and_then(|latency| latency.p50))
    }),
    (Head::Part(&metric::ESTABLISHMENT, "p99"), |row, _| {
        cell(row.parts.establishment.and_then(|latency| latency.p99))
    }),
    (Head::Part(&metric::FIRST_BYTE, "p50"), |row, _| {
        cell(row.parts.first_byte.and_then(|latency| latency.p50))
    }),
    (Head::Part(&metric::FIRST_BYTE, "p99"), |row, _| {
        cell(row.parts.first_byte.and_then(|latency| latency.p99))
    }),
    (Head::Fact("utc_ns"), |row, _| cell(row.utc_ns)),
    (Head::Fact("host"), |_, facts| facts.host.clone()),
    (Head::Fact("workload"), |_, facts| facts.workload.clone()),
    (Head::Fact("transport"), |_, facts| facts.transport.clone()),
    (Head::Whole(&metric::LOSS_RATIO), |row, _| cell(row.loss_ratio)),
    (Head::Whole(&metric::LOST_PACKETS), |row, _| cell(row.lost_packets)),
    (Head::Whole(&metric::RTT), |row, _| cell(row.rtt_us)),
    (Head::Whole(&metric::CWND), |row, _| cell(row.cwnd_bytes)),
    (Head::Fact("title"), |_, facts| facts.title.clone()),
    (Head::Fact("tags"), |_, facts| facts.tags.clone()),
    (Head::Part(&metric::FRAMES, "sent"), |row, _| cell(row.frames().sent)),
    (Head::Part(&metric::FRAMES, "completed"), |row, _| cell(row.frames().completed)),
    (Head::Part(&metric::FRAMES, "late"), |row, _| cell(row.frames().late)),
    (Head::Part(&metric::FRAMES, "dropped"), |row, _| cell(row.frames().dropped)),
    (Head::Whole(&metric::LOSS_BURSTS), |row, _| cell(row.datagrams.loss_bursts)),
    (Head::Whole(&metric::LONGEST_LOSS_BURST), |row, _| cell(row.datagrams.longest_loss_burst)),
    (Head::Part(&metric::DELAY_VARIATION, "p50"), |row, _| {
        cell(row.parts.delay_variation.and_then(|latency| latency.p50))
    }),
    (Head::Part(&metric::DELAY_VARIATION, "p99"), |row, _| {
        cell(row.parts.delay_variation.and_then(|latency| latency.p99))
    }),
    (Head::Part(&metric::SEND_DELAY, "p50"), |row, _| {
        cell(row.parts.send_delay.and_then(|latency| latency.p50))
    }),
    (Head::Part(&metric::SEND_DELAY, "p99"), |row, _| {
        cell(row.parts.send_delay.and_then(|latency| latency.p99))
    }),
];

impl Printer for CsvPrinter {
    fn render_event(&mut self, _event: &Event) -> String {
        String::new()
    }

    fn render_run(&mut self, run: &Run, _dropped_events: u64) -> String {
        let mut text = String::new();
        if !self.headed {
            let names: Vec<String> = COLUMNS.iter().map(|(head, _)| head.name()).collect();
            text.push_str(&names.join(","));
            text.push('\n');
            self.headed = true;
        }
        let plan = Facts::of(run);
        let mut paths: BTreeMap<Role, SendingPaths> = BTreeMap::new();
        for sample in &run.samples {
            let figures =
                paths.entry(sample.role).or_default().record_sample(sample, &run.plan.workload);
            text.push_str(&Row::of_sample(run, sample, figures).render(&plan));
        }
        text.push_str(&Row::of_summary(run).render(&plan));
        text
    }

    fn render_repeats(&mut self, repeats: &Repeats) -> String {
        type Figure = fn(&FigureSpread) -> Option<f64>;
        let rows: [(&str, Figure); 4] = [
            ("median", |spread| Some(spread.median)),
            ("mean", |spread| Some(spread.mean)),
            ("low", |spread| spread.low),
            ("high", |spread| spread.high),
        ];
        let row = |(name, of): (&str, Figure)| {
            let cells = COLUMNS.iter().map(|(head, _)| match head {
                Head::Fact("row") => name.to_owned(),
                head => cell(spread_of(repeats, &head.name()).and_then(of)),
            });
            cells.collect::<Vec<_>>().join(",") + "\n"
        };
        rows.map(row).concat()
    }

    fn render_end(&mut self) -> String {
        String::new()
    }
}

/// The figure of a column over several runs. Connections stand in the column of transactions.
fn spread_of<'a>(repeats: &'a Repeats, column: &str) -> Option<&'a FigureSpread> {
    let is_in = |name: &str| {
        name == column
            || name == metric::CONNECTIONS_PER_S.name && column == metric::TRANSACTIONS_PER_S.name
    };
    repeats.metrics.iter().find(|one| is_in(&one.name))
}

/// What a sample and a summary have in common.
#[derive(Default)]
struct Row<'a> {
    run_id: &'a str,
    row: &'static str,
    role: &'static str,
    index: Option<u32>,
    from_s: Option<f64>,
    to_s: Option<f64>,
    warm_up: Option<bool>,
    size_bytes: u64,
    sent_bytes: Option<u64>,
    received_bytes: Option<u64>,
    goodput_bps: Option<f64>,
    transactions: Option<u64>,
    transactions_per_s: Option<f64>,
    latency_mean_ns: Option<f64>,
    latency: Option<Latency>,
    datagrams: DatagramCounts,
    cpu: Option<CpuSeconds>,
    retransmitted_segments: Option<u64>,
    outcome: String,
    transactions_lost: Option<u64>,
    transactions_unsent: Option<u64>,
    errors: Option<u64>,
    parts: Distributions,
    utc_ns: Option<i64>,
    loss_ratio: Option<f64>,
    lost_packets: Option<u64>,
    rtt_us: Option<f64>,
    cwnd_bytes: Option<u64>,
}

/// The distributions of times beside the latency.
#[derive(Default)]
struct Distributions {
    establishment: Option<Latency>,
    first_byte: Option<Latency>,
    delay_variation: Option<Latency>,
    send_delay: Option<Latency>,
}

/// What the rows of a run share: which host, what, and how it was named.
struct Facts {
    host: String,
    workload: String,
    transport: String,
    title: String,
    tags: String,
}

impl Facts {
    fn of(run: &Run) -> Self {
        let plan = &run.plan;
        let kind = match plan.workload.kind {
            Kind::Stream { media: Some(_), .. } => "media",
            Kind::Stream { .. } => "stream",
            Kind::Rr { .. } => "rr",
            Kind::Connect { .. } => "connect",
        };
        let tags: Vec<String> =
            plan.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self {
            host: quoted(&render_host_port(&plan.host, plan.port)),
            workload: kind.to_owned(),
            transport: render_transport(&plan.workload).to_owned(),
            title: quoted(plan.title.as_deref().unwrap_or_default()),
            tags: quoted(&tags.join(" ")),
        }
    }
}

/// A text in quotation marks where it needs them (RFC 4180, section 2).
pub(super) fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

impl<'a> Row<'a> {
    fn of_sample(run: &'a Run, sample: &Sample, paths: PathFigures) -> Self {
        let is_quic = run.plan.workload.transport == Transport::Quic;
        let seconds = sample.to_ns.saturating_sub(sample.from_ns).max(1) as f64 / 1e9;
        let received_bytes = sample.received.map(|received| received.bytes);
        Self {
            run_id: &run.run_id,
            row: "sample",
            role: name_of(sample.role),
            index: Some(sample.index),
            from_s: Some(sample.from_ns as f64 / 1e9),
            to_s: Some(sample.to_ns as f64 / 1e9),
            warm_up: Some(sample.warm_up),
            size_bytes: size_of(run),
            sent_bytes: sample.sent.map(|sent| sent.bytes),
            received_bytes,
            goodput_bps: received_bytes.map(|bytes| bytes as f64 * 8.0 / seconds),
            transactions: sample.transactions,
            transactions_per_s: sample.transactions.map(|done| done as f64 / seconds),
            latency_mean_ns: sample.latency_mean_ns,
            datagrams: sample.datagrams.unwrap_or_default(),
            cpu: sample.cpu.as_ref().map(|cpu| cpu.load),
            retransmitted_segments: paths.lost.filter(|_| !is_quic),
            lost_packets: paths.lost.filter(|_| is_quic),
            rtt_us: paths.mean_rtt_ns.map(|rtt_ns| rtt_ns as f64 / 1e3),
            cwnd_bytes: paths.cwnd_bytes,
            utc_ns: Some(sample.utc_ns),
            ..Self::default()
        }
    }

    fn of_summary(run: &'a Run) -> Self {
        let summary = &run.summary;
        let outcome = serde_json::to_value(run.status.outcome).ok();
        Self {
            run_id: &run.run_id,
            row: "summary",
            to_s: summary.elapsed_s,
            size_bytes: size_of(run),
            sent_bytes: summary.sent_bytes,
            received_bytes: summary.received_bytes,
            goodput_bps: summary.goodput_bps,
            transactions: summary.transactions,
            transactions_per_s: summary.transactions_per_s.or(summary.connections_per_s),
            latency_mean_ns: summary.latency_ns.map(|latency| latency.mean),
            latency: summary.latency_ns,
            datagrams: summary.datagrams.unwrap_or_default(),
            cpu: summary.cpu_s.and_then(|ends| match (ends.client, ends.server) {
                (Some(client), Some(server)) => Some(CpuSeconds {
                    user_s: client.user_s + server.user_s,
                    system_s: client.system_s + server.system_s,
                }),
                _ => None,
            }),
            retransmitted_segments: summary.retransmitted_segments,
            outcome: outcome.as_ref().and_then(|name| name.as_str()).unwrap_or("").to_owned(),
            transactions_lost: summary.transactions_lost,
            transactions_unsent: summary.transactions_unsent,
            errors: (!run.reports.is_empty())
                .then(|| summary.errors.values().fold(0, |sum: u64, n| sum.saturating_add(*n))),
            parts: Distributions {
                establishment: summary.establishment_ns,
                first_byte: summary.first_byte_ns,
                delay_variation: summary.delay_variation_ns,
                send_delay: summary.send_delay_ns,
            },
            utc_ns: run.environment.started_utc_ns,
            loss_ratio: summary.loss_ratio,
            ..Self::default()
        }
    }

    fn frames(&self) -> FrameCounts {
        self.datagrams.frames.unwrap_or_default()
    }

    /// The values in the order of [`COLUMNS`].
    fn render(&self, facts: &Facts) -> String {
        let values: Vec<String> = COLUMNS.iter().map(|(_, cell)| cell(self, facts)).collect();
        values.join(",") + "\n"
    }
}

fn size_of(run: &Run) -> u64 {
    match run.plan.workload.kind {
        Kind::Stream { send_bytes, .. } => send_bytes.into(),
        Kind::Connect { transfer: Some(transfer), .. } => transfer.bytes.bounds().1,
        Kind::Rr { request_bytes, .. } | Kind::Connect { request_bytes, .. } => {
            request_bytes.into()
        }
    }
}

fn cell(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
