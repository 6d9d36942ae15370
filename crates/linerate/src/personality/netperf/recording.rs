//! The run documents of a netserver's tests.

use linerate_engine::netperf::Asked;
use linerate_measure::dialect::netperf::End as EndFigures;
use linerate_measure::run::Draft;
use linerate_measure::{Direction, End, EndReport, Kind, Plan, Rate, Transport, Workload};
use linerate_wire::netperf::test::{Length, Part, Request, Transport as TestTransport};
use linerate_wire::visible::visible;

use crate::personality::recorder::ServedDialect;

/// What a netserver's tests are as runs.
#[derive(Debug)]
pub(super) struct Netserver;

impl ServedDialect for Netserver {
    type Asked = Asked;
    type Report = EndReport;

    fn plan(&self, asked: &Asked) -> Plan {
        let host = asked.local.ip().to_canonical().to_string();
        Plan::new(host, asked.local.port(), workload(&asked.request))
    }

    fn conclude(draft: &mut Draft, report: EndReport) {
        if let Kind::Stream { direction: Direction::Down, send_bytes, .. } =
            &mut draft.plan.workload.kind
        {
            *send_bytes = EndFigures::of(&report).settings().send_bytes.unwrap_or(*send_bytes);
        }
        draft.record_report(report);
    }
}

fn is_bulk(part: Part) -> bool {
    matches!(part, Part::Send | Part::Receive)
}

/// The nearest load of ours. A size that the server chooses is 0.
fn workload(request: &Request) -> Workload {
    let Request { part, transport, length, .. } = *request;
    let transport = match transport {
        TestTransport::Tcp => Transport::Tcp,
        TestTransport::Udp => Transport::Udp,
    };
    let mut workload = match part {
        Part::Receive => Workload::stream(Direction::Up, transport),
        Part::Send => Workload::stream(Direction::Down, transport),
        Part::Answer => Workload::rr(transport),
        Part::AnswerOnce | Part::Accept => Workload::connect(transport),
    };
    set_kind(&mut workload, request);
    workload.end = match length {
        Length::Seconds(seconds) => End::Time { duration_ns: u64::from(seconds) * 1_000_000_000 },
        Length::Units(units) if is_bulk(part) => End::Bytes { bytes: units.into() },
        Length::Units(units) => End::Count { count: units.into() },
        Length::Open => End::Time { duration_ns: 0 },
    };
    workload.threading.threads = Some(1);
    workload.socket.no_delay = request.no_delay;
    workload.socket.congestion = request.congestion.as_deref().map(visible);
    workload.socket.dscp = request.service.map(|service| service >> 2);
    workload
}

/// Sizes and paces. A client doesn't tell the size of its sends in bulk.
fn set_kind(workload: &mut Workload, request: &Request) {
    let (request_size, response_size) = match request.part {
        Part::Accept => (0, 0),
        _ => (request.request_bytes, request.response_bytes),
    };
    match &mut workload.kind {
        Kind::Stream { send_bytes, .. } => {
            let told = request.send_bytes.filter(|_| request.part == Part::Send);
            *send_bytes = told.unwrap_or(0);
            let pace = request.pacing.filter(|(burst, interval_us)| *burst > 0 && *interval_us > 0);
            let rate = told.zip(pace).map(|(bytes, (burst, interval_us))| {
                let per_s = f64::from(burst) * 1e6 / f64::from(interval_us);
                Rate::AllFlows { bps: (per_s * f64::from(bytes) * 8.0) as u64 }
            });
            workload.rate = rate;
        }
        Kind::Rr { request_bytes, response_bytes, .. }
        | Kind::Connect { request_bytes, response_bytes, .. } => {
            (*request_bytes, *response_bytes) = (request_size, response_size);
        }
    }
}
