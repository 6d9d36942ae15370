//! The run document of a client: the nearest native plan, and what came out.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use linerate_engine::event::Cancel;
use linerate_engine::perf::{ClientPlan, Totals};
use linerate_measure::dialect::perf::{EndTotals, Interval};
use linerate_measure::dialect::{EndExtension, SampleExtension};
use linerate_measure::histogram::Histogram;
use linerate_measure::report::FlowReport;
use linerate_measure::run::exit;
use linerate_measure::sample::Traffic;
use linerate_measure::{
    Dialect, DialectOptions, Direction, End, EndReport, Kind, Outcome, Plan, Role, Sample,
    Transport, Workload,
};
use linerate_personality::secnetperf::options::{ClientOptions, Refusal};
use linerate_personality::secnetperf::status;

use crate::personality::run_document::{RunOutput, RunRecord};
use crate::personality::stdout;

/// The record of a test that begins.
pub(super) fn begin(
    output: &Arc<RunOutput>,
    options: &ClientOptions,
    words: &[String],
) -> RunRecord {
    let plan = Plan::new(options.target.clone(), options.port, workload(options));
    let mut record = output.begin(Dialect::Perf, Role::Client, plan);
    if let Some(draft) = record.draft() {
        let program = std::iter::once("secnetperf".to_owned());
        let command_line = program.chain(words.iter().cloned()).collect();
        draft.options = Some(DialectOptions { command_line, ..DialectOptions::default() });
    }
    record
}

fn workload(options: &ClientOptions) -> Workload {
    let transport = if options.tcp { Transport::Tls } else { Transport::Quic };
    let shape = options.shape;
    let (sends, receives) = (shape.upload > 0, shape.download > 0);
    let mut workload = match (options.streams, sends, receives) {
        (0, ..) => Workload::connect(transport),
        (_, true, false) => Workload::stream(Direction::Up, transport),
        (_, false, true) => Workload::stream(Direction::Down, transport),
        (_, true, true) if shape.timed => Workload::stream(Direction::Both, transport),
        _ => Workload::rr(transport),
    };
    let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    match &mut workload.kind {
        Kind::Stream { send_bytes, .. } => *send_bytes = shape.block_bytes,
        Kind::Rr { request_bytes, response_bytes, .. } => {
            (*request_bytes, *response_bytes) = (bytes(shape.upload), bytes(shape.download));
        }
        Kind::Connect { request_bytes, response_bytes, .. } => {
            (*request_bytes, *response_bytes) = (0, 0);
        }
    }
    let streams = u64::from(options.connections) * u64::from(options.streams.max(1));
    let most_us = shape.upload.max(shape.download);
    workload.end = match options.runtime_us {
        0 if shape.timed => End::Time { duration_ns: most_us.saturating_mul(1000) },
        0 if workload.has_transactions() => End::Count { count: streams },
        0 => End::Bytes { bytes: most_us.saturating_mul(streams) },
        runtime_us => End::Time { duration_ns: runtime_us.saturating_mul(1000) },
    };
    workload.flows = u32::try_from(streams).unwrap_or(u32::MAX);
    workload.quic.streams = options.streams.max(1);
    workload
}

/// The load begins.
pub(super) fn start(record: &mut RunRecord, plan: &ClientPlan) {
    if let Some(draft) = record.draft() {
        draft.plan.workload.threads = Some(plan.threads);
    }
    record.start(utc_ns());
}

fn utc_ns() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)
}

/// The load has come to an end.
pub(super) fn record_totals(record: &mut RunRecord, totals: &Totals) {
    let Some(draft) = record.draft() else { return };
    let workload = draft.plan.workload.clone();
    let (client, server) = reports(&workload, totals);
    let flow = |traffic: fn(&FlowReport) -> Option<Traffic>| client.flows.iter().find_map(traffic);
    let sample = Sample {
        to_ns: totals.measured_ns,
        utc_ns: utc_ns(),
        sent: flow(|flow| flow.sent),
        received: flow(|flow| flow.received),
        transactions: client.flows.first().and_then(|flow| flow.transactions),
        extension: Some(SampleExtension::Perf(Interval { streams: Some(totals.streams) })),
        ..Sample::nothing(Role::Client)
    };
    draft.record_report(client);
    draft.server = server;
    record.record_sample(&sample);
}

/// What this end counted, and, of bytes that were sent in bulk, what the server has acknowledged.
fn reports(workload: &Workload, totals: &Totals) -> (EndReport, Option<EndReport>) {
    let traffic = |bytes| Some(Traffic { bytes, calls: None });
    let direction = workload.direction();
    let goes = |one| {
        direction.is_none_or(|direction| matches!(direction, Direction::Both) || direction == one)
    };
    let flow = |flow| FlowReport {
        flow,
        from_ns: Some(0),
        to_ns: Some(totals.measured_ns),
        ..FlowReport::default()
    };
    let mut first = flow(0);
    first.sent = traffic(totals.uploaded_bytes).filter(|_| goes(Direction::Up));
    first.transactions = match workload.kind {
        Kind::Stream { .. } => None,
        Kind::Rr { .. } => Some(totals.streams),
        Kind::Connect { .. } => Some(totals.connections),
    };
    let received = traffic(totals.downloaded_bytes).filter(|_| goes(Direction::Down));
    let flows = if direction == Some(Direction::Both) {
        vec![first, FlowReport { received, ..flow(workload.flows) }]
    } else {
        vec![FlowReport { received, ..first }]
    };
    let errors = totals.failures.iter().map(|(kind, count)| ((*kind).to_owned(), *count));
    let client = EndReport {
        flows,
        elapsed_ns: totals.measured_ns,
        latency_hdr: latency(&totals.latencies_us),
        errors: errors.collect(),
        extension: Some(EndExtension::Perf(EndTotals {
            connections: Some(totals.connections),
            streams: Some(totals.streams),
            broken_off: Some(totals.broken_off),
            upload_rates_kbps: Some(totals.upload_rates_kbps),
            download_rates_kbps: Some(totals.download_rates_kbps),
        })),
        ..EndReport::nothing(Role::Client)
    };
    let is_up = matches!(direction, Some(Direction::Up | Direction::Both));
    let server = is_up.then(|| EndReport {
        flows: vec![FlowReport { received: traffic(totals.uploaded_bytes), ..flow(0) }],
        elapsed_ns: totals.measured_ns,
        ..EndReport::nothing(Role::Server)
    });
    (client, server)
}

fn latency(latencies_us: &[u32]) -> Option<String> {
    let mut histogram = Histogram::new();
    latencies_us.iter().for_each(|us| histogram.record_ns(u64::from(*us) * 1000));
    (!histogram.is_empty()).then(|| histogram.to_base64())
}

/// The test is over, with the original's status or with a refusal.
pub(super) fn finish(mut record: RunRecord, ended: &Result<u8, Refusal>, cancel: &Cancel) {
    let has_report = record.draft().is_some_and(|draft| {
        let streams = |report: &EndReport| match report.extension {
            Some(EndExtension::Perf(totals)) => totals.connections.unwrap_or(0),
            _ => 0,
        };
        draft.client.as_ref().map_or(0, streams) > 0
    });
    let wrong = if has_report { Outcome::Untrustworthy } else { Outcome::Failed };
    let (outcome, exit_code, why) = match ended {
        _ if cancel.requested() => (Outcome::Interrupted, exit::INTERRUPTED, None),
        Ok(status::OK) => (Outcome::Complete, stdout::exit_code(status::OK, status::FAILED), None),
        Ok(code) if has_report => {
            let why = "the server, or the path to it, broke off connections before their requests were done";
            (wrong, *code, Some(why.to_owned()))
        }
        Ok(code) => (wrong, *code, Some("no connection came to stand".to_owned())),
        Err(refusal) => (wrong, refusal.status, Some(refusal.text.clone())),
    };
    record.finish(outcome, exit_code, why);
}
