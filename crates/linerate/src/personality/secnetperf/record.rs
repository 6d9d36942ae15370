//! The run document of a client: the nearest native plan, and what came out.

use linerate_engine::event::Cancel;
use linerate_engine::perf::{ClientPlan, Report};
use linerate_measure::dialect::{EndExtension, SampleExtension};
use linerate_measure::report::FlowReport;
use linerate_measure::run::exit;
use linerate_measure::{
    Direction, End, EndReport, Kind, Outcome, Plan, Role, Sample, Transport, Workload,
};
use linerate_personality::secnetperf::options::{ClientOptions, Refusal};
use linerate_personality::secnetperf::status;

use crate::personality::run_document::RunRecord;
use crate::personality::stdout;
use crate::start_time::utc_now_ns;

/// The nearest native plan.
pub(super) fn plan(options: &ClientOptions) -> Plan {
    Plan::new(options.target.clone(), options.port, workload(options))
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

/// The load begins. Samples are as long as the nearest native load's, where anybody wants them.
pub(super) fn start(record: &mut RunRecord, plan: &mut ClientPlan) {
    if let Some(draft) = record.draft() {
        draft.plan.workload.threading.threads = Some(plan.threads);
        plan.tells.interval_ns = Some(draft.plan.workload.interval_ns);
    }
    record.start(utc_now_ns());
}

/// An interval is over.
pub(super) fn record_sample(record: &mut RunRecord, mut sample: Sample) {
    let Some(draft) = record.draft() else { return };
    let workload = &draft.plan.workload;
    sample.sent = sample.sent.filter(|_| goes(workload, Direction::Up));
    sample.received = sample.received.filter(|_| goes(workload, Direction::Down));
    set_transactions(workload, &mut sample);
    if !matches!(workload.kind, Kind::Rr { .. }) {
        sample.latency_mean_ns = None;
    }
    record.record_sample(&sample);
}

/// What the load counts as transactions.
pub(super) fn set_transactions(workload: &Workload, sample: &mut Sample) {
    let Some(SampleExtension::Perf(own)) = sample.extension else { return };
    sample.transactions = match workload.kind {
        Kind::Stream { .. } => None,
        Kind::Rr { .. } => own.streams,
        Kind::Connect { .. } => own.connections,
    };
}

/// Whether the load has bytes this way.
pub(super) fn goes(workload: &Workload, way: Direction) -> bool {
    workload.direction().is_none_or(|direction| direction == Direction::Both || direction == way)
}

/// The load has come to an end: what this end counted, and, of bytes that were sent in bulk, what the server has
/// acknowledged.
pub(super) fn record_report(record: &mut RunRecord, report: &Report) {
    let Some(draft) = record.draft() else { return };
    let workload = &draft.plan.workload;
    let mut client = report.own.clone();
    let all = client.flows.pop().unwrap_or_default();
    let totals = report.totals();
    let first = FlowReport {
        flow: 0,
        sent: all.sent.filter(|_| goes(workload, Direction::Up)),
        received: None,
        transactions: match workload.kind {
            Kind::Stream { .. } => None,
            Kind::Rr { .. } => totals.streams,
            Kind::Connect { .. } => totals.connections,
        },
        ..all
    };
    let received = all.received.filter(|_| goes(workload, Direction::Down));
    let direction = workload.direction();
    client.flows = if direction == Some(Direction::Both) {
        let (from_ns, to_ns) = (first.from_ns, first.to_ns);
        let back =
            FlowReport { flow: workload.flows, received, from_ns, to_ns, ..FlowReport::default() };
        vec![first, back]
    } else {
        vec![FlowReport { received, ..first }]
    };
    let is_up = matches!(direction, Some(Direction::Up | Direction::Both));
    draft.server = is_up.then(|| EndReport {
        flows: vec![FlowReport {
            received: all.sent,
            from_ns: all.from_ns,
            to_ns: all.to_ns,
            ..FlowReport::default()
        }],
        elapsed_ns: client.elapsed_ns,
        ..EndReport::nothing(Role::Server)
    });
    draft.record_report(client);
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
        Ok(code) => (wrong, *code, Some("no connection was established".to_owned())),
        Err(refusal) => (wrong, refusal.status, Some(refusal.text.clone())),
    };
    record.finish(outcome, exit_code, why);
}
