//! Comma-separated values (RFC 4180, with line feeds): a row for each sample of each end, then a
//! summary row for the run. Columns of what was not measured are empty.

use linerate_engine::event::Event;
use linerate_measure::sample::{CpuSeconds, DatagramCounts};
use linerate_measure::summary::Latency;
use linerate_measure::{Kind, Run, Sample};

use super::Printer;
use super::text::name_of;

/// Prints rows; the heading stands above the first.
#[derive(Default)]
pub struct CsvPrinter {
    headed: bool,
}

/// The columns. New ones are added at the end, so that a script may count.
const COLUMNS: [&str; 35] = [
    "run_id",
    "row",
    "role",
    "index",
    "from_s",
    "to_s",
    "warm_up",
    "size_bytes",
    "sent_bytes",
    "received_bytes",
    "goodput_bps",
    "transactions",
    "transactions_per_s",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_max_ns",
    "datagrams_sent",
    "datagrams_refused",
    "datagrams_received",
    "datagrams_lost",
    "datagrams_duplicated",
    "datagrams_reordered",
    "datagrams_dropped_by_socket",
    "cpu_user_s",
    "cpu_system_s",
    "retransmitted_segments",
    "outcome",
    "transactions_lost",
    "transactions_unsent",
    "errors",
    "establishment_p50_ns",
    "establishment_p99_ns",
    "first_byte_p50_ns",
    "first_byte_p99_ns",
];

impl Printer for CsvPrinter {
    fn render_event(&mut self, _event: &Event) -> String {
        String::new()
    }

    fn render_run(&mut self, run: &Run, _dropped_events: u64) -> String {
        let mut text = String::new();
        if !self.headed {
            text.push_str(&COLUMNS.join(","));
            text.push('\n');
            self.headed = true;
        }
        for sample in &run.samples {
            text.push_str(&Row::of_sample(run, sample).render());
        }
        text.push_str(&Row::of_summary(run).render());
        text
    }

    fn render_end(&mut self) -> String {
        String::new()
    }
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
    size_bytes: u32,
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
    establishment: Option<Latency>,
    first_byte: Option<Latency>,
}

impl<'a> Row<'a> {
    fn of_sample(run: &'a Run, sample: &Sample) -> Self {
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
            establishment: summary.establishment_ns,
            first_byte: summary.first_byte_ns,
            ..Self::default()
        }
    }

    /// The values in the order of [`COLUMNS`]. None of them can hold a comma or a quotation mark:
    /// they are numbers and words of this program.
    fn render(&self) -> String {
        let datagrams = &self.datagrams;
        let values: [String; COLUMNS.len()] = [
            self.run_id.to_owned(),
            self.row.to_owned(),
            self.role.to_owned(),
            cell(self.index),
            cell(self.from_s),
            cell(self.to_s),
            cell(self.warm_up),
            self.size_bytes.to_string(),
            cell(self.sent_bytes),
            cell(self.received_bytes),
            cell(self.goodput_bps),
            cell(self.transactions),
            cell(self.transactions_per_s),
            cell(self.latency_mean_ns),
            cell(self.latency.and_then(|latency| latency.p50)),
            cell(self.latency.and_then(|latency| latency.p99)),
            cell(self.latency.map(|latency| latency.max)),
            cell(datagrams.sent),
            cell(datagrams.refused),
            cell(datagrams.received),
            cell(datagrams.lost),
            cell(datagrams.duplicated),
            cell(datagrams.reordered),
            cell(datagrams.dropped_by_socket),
            cell(self.cpu.map(|cpu| cpu.user_s)),
            cell(self.cpu.map(|cpu| cpu.system_s)),
            cell(self.retransmitted_segments),
            self.outcome.clone(),
            cell(self.transactions_lost),
            cell(self.transactions_unsent),
            cell(self.errors),
            cell(self.establishment.and_then(|latency| latency.p50)),
            cell(self.establishment.and_then(|latency| latency.p99)),
            cell(self.first_byte.and_then(|latency| latency.p50)),
            cell(self.first_byte.and_then(|latency| latency.p99)),
        ];
        values.join(",") + "\n"
    }
}

fn size_of(run: &Run) -> u32 {
    match run.plan.workload.kind {
        Kind::Stream { send_bytes, .. } => send_bytes,
        Kind::Rr { request_bytes, .. } | Kind::Connect { request_bytes, .. } => request_bytes,
    }
}

fn cell(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
