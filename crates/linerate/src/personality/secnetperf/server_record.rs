//! The run documents of a server. It sees connections alone: what counts as a test is the engine's to say, and what was
//! asked for is told by what the requests were.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use linerate_engine::perf::{ServerEvent, TestReport};
use linerate_measure::dialect::{EndExtension, SampleExtension};
use linerate_measure::report::FlowReport;
use linerate_measure::{
    Dialect, DialectOptions, Direction, End, EndReport, Kind, Outcome, Plan, Role, Sample,
    Transport, Workload,
};
use linerate_personality::secnetperf::status;

use crate::personality::run_document::{RunOutput, RunRecord};

/// Of a timed exchange, bytes one way that are less than this share of those the other way: a client that only sends asks
/// for an answer that it stops at once, and one that only receives sends a block.
const ASIDE_SHARE: u64 = 20;

/// The records of the tests that run, by their numbers.
pub(super) struct ServerRecords {
    output: Arc<RunOutput>,
    words: Vec<String>,
    address: Option<SocketAddr>,
    tests: HashMap<u64, RunRecord>,
}

impl ServerRecords {
    pub(super) fn new(output: Arc<RunOutput>, words: &[String]) -> Self {
        Self { output, words: words.to_vec(), address: None, tests: HashMap::new() }
    }

    /// The length of a sample; absent: no samples are wanted.
    pub(super) fn interval_ns(&self) -> Option<u64> {
        let interval_ns = Workload::connect(Transport::Quic).interval_ns;
        self.output.is_wanted().then_some(interval_ns)
    }

    /// The server listens here.
    pub(super) fn listen(&mut self, address: SocketAddr) {
        self.address = Some(address);
    }

    /// Takes what happened to a test.
    pub(super) fn record_event(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::TestStarted { number, client, transport, utc_ns } => {
                let record = self.begin(client, transport, utc_ns);
                self.tests.insert(number, record);
            }
            ServerEvent::TestSample { number, sample } => {
                if let Some(record) = self.tests.get_mut(&number) {
                    record.record_sample(&sample);
                }
            }
            ServerEvent::TestEnded { number, report } => {
                if let Some(record) = self.tests.remove(&number) {
                    finish(record, *report);
                }
            }
            _ => {}
        }
    }

    fn begin(&self, client: IpAddr, transport: Transport, utc_ns: i64) -> RunRecord {
        let host = self.address.map(|address| address.ip().to_canonical().to_string());
        let port = self.address.map_or(0, |address| address.port());
        // What is asked for shows when the test is over.
        let mut workload = Workload::connect(transport);
        workload.end = End::Time { duration_ns: 0 };
        let plan = Plan::new(host.unwrap_or_default(), port, workload);
        let mut record = self.output.begin(Dialect::Perf, Role::Server, plan);
        if let Some(draft) = record.draft() {
            let program = std::iter::once("secnetperf".to_owned());
            let command_line = program.chain(self.words.iter().cloned()).collect();
            draft.options = Some(DialectOptions { command_line, ..DialectOptions::default() });
            draft.notes.push(format!("the connections came from {client}"));
        }
        record.start(utc_ns);
        record
    }
}

/// The test is over.
fn finish(mut record: RunRecord, report: TestReport) {
    if let Some(draft) = record.draft() {
        let workload = workload(&draft.plan.workload, &report);
        draft.samples.iter_mut().for_each(|sample| arrange_sample(&workload, sample));
        draft.plan.workload = workload;
        let end = arrange(&draft.plan.workload, &report);
        draft.record_report(end);
    }
    let (outcome, message) = match report.is_cut_off {
        true => (Outcome::Interrupted, Some("the server was stopped".to_owned())),
        false => (Outcome::Complete, None),
    };
    record.finish(outcome, status::OK, message);
}

fn figures(report: &TestReport) -> (u64, u64) {
    match report.own.extension {
        Some(EndExtension::Perf(own)) => (own.connections.unwrap_or(0), own.streams.unwrap_or(0)),
        _ => (0, 0),
    }
}

/// The nearest native load, by what the requests asked for.
fn workload(begun: &Workload, report: &TestReport) -> Workload {
    let flow = report.own.flows.first().cloned().unwrap_or_default();
    let sent_bytes = flow.sent.map_or(0, |sent| sent.bytes);
    let received_bytes = flow.received.map_or(0, |received| received.bytes);
    let is_timed = report.endless > 0;
    let counts = |bytes: u64, other: u64| bytes.saturating_mul(ASIDE_SHARE) >= other;
    let uploads = report.uploads > 0 && (!is_timed || counts(received_bytes, sent_bytes));
    let endless = is_timed && (!uploads || counts(sent_bytes, received_bytes));
    let asked = report.uploads + report.downloads + report.endless;
    let (_, streams) = figures(report);
    let transport = begun.transport;
    let mut workload = match (uploads, report.downloads > 0, endless) {
        _ if asked == 0 && streams == 0 && received_bytes == 0 => Workload::connect(transport),
        (true, _, true) => Workload::stream(Direction::Both, transport),
        (true, false, false) => Workload::stream(Direction::Up, transport),
        (false, true, _) | (false, _, true) => Workload::stream(Direction::Down, transport),
        // A request of which nobody knows how it would have gone on is one that is sent.
        (false, false, false) if asked == 0 => Workload::stream(Direction::Up, transport),
        _ => Workload::rr(transport),
    };
    let mean = |bytes: u64| u32::try_from(bytes / streams.max(1)).unwrap_or(u32::MAX);
    match &mut workload.kind {
        Kind::Rr { request_bytes, response_bytes, .. } => {
            (*request_bytes, *response_bytes) = (mean(received_bytes), mean(sent_bytes));
        }
        Kind::Connect { request_bytes, response_bytes, .. } => {
            (*request_bytes, *response_bytes) = (0, 0);
        }
        Kind::Stream { .. } => {}
    }
    workload.end = begun.end;
    workload.flows = u32::try_from(report.most_open).unwrap_or(u32::MAX).max(1);
    workload
}

/// Whether the load has bytes this way.
fn goes(workload: &Workload, way: Direction) -> bool {
    workload.direction().is_none_or(|direction| direction == Direction::Both || direction == way)
}

fn arrange_sample(workload: &Workload, sample: &mut Sample) {
    let Some(SampleExtension::Perf(own)) = sample.extension else { return };
    sample.sent = sample.sent.filter(|_| goes(workload, Direction::Down));
    sample.received = sample.received.filter(|_| goes(workload, Direction::Up));
    sample.transactions = match workload.kind {
        Kind::Stream { .. } => None,
        Kind::Rr { .. } => own.streams,
        Kind::Connect { .. } => own.connections,
    };
}

/// What this end counted: one flow a direction.
fn arrange(workload: &Workload, report: &TestReport) -> EndReport {
    let mut end = report.own.clone();
    let all = end.flows.pop().unwrap_or_default();
    let received = all.received.filter(|_| goes(workload, Direction::Up));
    let sent = all.sent.filter(|_| goes(workload, Direction::Down));
    let (from_ns, to_ns) = (all.from_ns, all.to_ns);
    let flow = |flow| FlowReport { flow, from_ns, to_ns, ..FlowReport::default() };
    end.flows = match workload.direction() {
        Some(Direction::Both) => {
            vec![FlowReport { received, ..flow(0) }, FlowReport { sent, ..flow(workload.flows) }]
        }
        _ => vec![FlowReport { received, sent, ..flow(0) }],
    };
    end
}

#[cfg(test)]
mod tests {
    use linerate_measure::dialect::perf::EndTotals;
    use linerate_measure::sample::Traffic;

    use super::*;

    fn report(asked: [u64; 3], received: u64, sent: u64, streams: u64) -> TestReport {
        let traffic = |bytes| Some(Traffic { bytes, calls: None });
        let flow = FlowReport {
            received: traffic(received),
            sent: traffic(sent),
            ..FlowReport::default()
        };
        let own = EndTotals { streams: Some(streams), ..EndTotals::default() };
        let own = EndReport {
            flows: vec![flow],
            extension: Some(EndExtension::Perf(own)),
            ..EndReport::nothing(Role::Server)
        };
        let [uploads, downloads, endless] = asked;
        TestReport { own, uploads, downloads, endless, most_open: 2, is_cut_off: false }
    }

    #[test]
    fn what_requests_ask_for_tells_the_load() {
        let begun = Workload::connect(Transport::Quic);
        let of = |report: &TestReport| workload(&begun, report);
        assert!(matches!(of(&report([0; 3], 0, 0, 0)).kind, Kind::Connect { .. }));
        for (asked, received, sent, expected) in [
            ([1, 0, 0], 1_000_000, 0, Direction::Up),
            ([0, 1, 0], 8, 1_000_000, Direction::Down),
            ([0, 0, 1], 8, 1_000_000, Direction::Down),
            ([1, 0, 1], 1_000_000, 1_000_000, Direction::Both),
            // Its client stopped the answer at the first byte.
            ([1, 0, 1], 10_000_000, 65_536, Direction::Up),
            // It sent a block.
            ([1, 0, 1], 65_536, 10_000_000, Direction::Down),
            // It was cut off before its request was complete.
            ([0, 0, 0], 1_000_000, 0, Direction::Up),
        ] {
            let load = of(&report(asked, received, sent, 1));
            assert_eq!(load.direction(), Some(expected), "{asked:?}");
            assert_eq!((load.flows, load.transport), (2, Transport::Quic));
        }
        let load = of(&report([10, 10, 0], 5_120, 40_000, 10));
        assert!(matches!(load.kind, Kind::Rr { request_bytes: 512, response_bytes: 4000, .. }));
    }
}
