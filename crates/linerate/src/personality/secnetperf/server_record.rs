//! The run documents of a server. It sees connections alone: what counts as a test is the engine's to say, and what was
//! asked for is told by what the requests were.

use linerate_engine::perf::{Asked, TestReport};
use linerate_measure::dialect::EndExtension;
use linerate_measure::report::FlowReport;
use linerate_measure::run::Draft;
use linerate_measure::{Direction, End, EndReport, Kind, Plan, Workload};
use linerate_personality::secnetperf::status;

use super::record::{goes, set_transactions};
use crate::personality::recorder::ServedDialect;

/// Of a timed exchange, bytes one way that are less than this share of those the other way: a client that only sends asks
/// for an answer that it stops at once, and one that only receives sends a block.
const ASIDE_SHARE: u64 = 20;

/// What the tests of a server are as runs.
#[derive(Debug)]
pub(super) struct PerfServer;

impl ServedDialect for PerfServer {
    type Asked = Asked;
    type Report = TestReport;

    const INCOMPLETE: u8 = status::OK;

    fn plan(&self, asked: &Asked) -> Plan {
        // What is asked for shows when the test is over.
        let mut workload = Workload::connect(asked.transport);
        workload.end = End::Time { duration_ns: 0 };
        let host = asked.local.ip().to_canonical().to_string();
        Plan::new(host, asked.local.port(), workload)
    }

    fn describe(&self, asked: &Asked, draft: &mut Draft) {
        draft.notes.push(format!("the connections came from {}", asked.client));
    }

    fn conclude(draft: &mut Draft, report: TestReport) {
        let workload = workload(&draft.plan.workload, &report);
        for sample in &mut draft.samples {
            sample.sent = sample.sent.filter(|_| goes(&workload, Direction::Down));
            sample.received = sample.received.filter(|_| goes(&workload, Direction::Up));
            set_transactions(&workload, sample);
        }
        draft.record_report(arrange(&workload, &report));
        draft.plan.workload = workload;
    }
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
    use linerate_measure::{Role, Transport};

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
        TestReport { own, uploads, downloads, endless, most_open: 2 }
    }

    #[test]
    fn workload_follows_from_requests() {
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
