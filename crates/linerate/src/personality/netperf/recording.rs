//! The run documents of a netserver's tests.

use std::sync::Arc;

use linerate_engine::netperf::{Asked, Observe, Observer, TestEnding};
use linerate_measure::dialect::netperf::End as EndFigures;
use linerate_measure::{
    Dialect, DialectOptions, Direction, End, EndReport, Kind, Outcome, Plan, Rate, Role, Sample,
    Transport, Workload,
};
use linerate_personality::netperf::server_flags::FLAGS;
use linerate_wire::netperf::test::{Carrier, Length, Part, Request};
use linerate_wire::visible::visible;

use super::document::without_passphrase;
use crate::personality::run_document::{RunOutput, RunRecord};

/// What a server's tests are recorded with.
#[derive(Debug)]
pub(super) struct Recording {
    output: Arc<RunOutput>,
    /// The server's own command line.
    command_line: Vec<String>,
}

impl Recording {
    /// Of a server with this command line; `None` where no documents are asked for.
    pub(super) fn observer(output: Arc<RunOutput>, words: &[String]) -> Option<Arc<dyn Observe>> {
        let program = std::iter::once("netserver".to_owned());
        let command_line = program.chain(without_passphrase(FLAGS, words)).collect();
        output.is_wanted().then(|| Arc::new(Self { output, command_line }) as Arc<dyn Observe>)
    }
}

impl Observe for Recording {
    fn begin(&self, asked: &Asked<'_>) -> Box<dyn Observer> {
        let host = asked.local.ip().to_canonical().to_string();
        let plan = Plan::new(host, asked.local.port(), workload(asked));
        let mut record = self.output.begin(Dialect::Netperf, Role::Server, plan);
        if let Some(draft) = record.draft() {
            let command_line = self.command_line.clone();
            draft.options = Some(DialectOptions { command_line, ..DialectOptions::default() });
        }
        Box::new(TestRecord(record))
    }
}

/// The record of one test.
struct TestRecord(RunRecord);

impl Observer for TestRecord {
    fn started(&mut self, utc_ns: i64) {
        self.0.start(utc_ns);
    }

    fn sampled(&mut self, sample: &Sample) {
        self.0.record_sample(sample);
    }

    fn ended(mut self: Box<Self>, report: Option<EndReport>, how: &TestEnding) {
        if let Some((draft, report)) = self.0.draft().zip(report) {
            if let Kind::Stream { direction: Direction::Down, send_bytes, .. } =
                &mut draft.plan.workload.kind
            {
                *send_bytes = EndFigures::of(&report).settings().send_bytes.unwrap_or(*send_bytes);
            }
            draft.record_report(report);
        }
        let (outcome, why) = match how {
            TestEnding::Complete => (Outcome::Complete, None),
            TestEnding::Interrupted(why) => (Outcome::Interrupted, Some(visible(why))),
            TestEnding::Refused(why) | TestEnding::Failed(why) => {
                (Outcome::Failed, Some(visible(why)))
            }
        };
        self.0.finish(outcome, u8::from(why.is_some()), why);
    }
}

fn is_bulk(part: Part) -> bool {
    matches!(part, Part::Send | Part::Receive)
}

/// The nearest load of ours. A size that the server chooses is 0.
fn workload(asked: &Asked<'_>) -> Workload {
    let Request { part, carrier, length, .. } = *asked.request;
    let transport = match carrier {
        Carrier::Tcp => Transport::Tcp,
        Carrier::Udp => Transport::Udp,
    };
    let mut workload = match part {
        Part::Receive => Workload::stream(Direction::Up, transport),
        Part::Send => Workload::stream(Direction::Down, transport),
        Part::Answer => Workload::rr(transport),
        Part::AnswerOnce | Part::Accept => Workload::connect(transport),
    };
    set_kind(&mut workload, asked.request);
    workload.end = match length {
        Length::Seconds(seconds) => End::Time { duration_ns: u64::from(seconds) * 1_000_000_000 },
        Length::Units(units) if is_bulk(part) => End::Bytes { bytes: units.into() },
        Length::Units(units) => End::Count { count: units.into() },
        Length::Open => End::Time { duration_ns: 0 },
    };
    workload.threads = Some(1);
    workload.interval_ns = asked.interval_ns;
    workload.socket.no_delay = asked.request.no_delay;
    workload.socket.congestion = asked.request.congestion.as_deref().map(visible);
    workload.socket.dscp = asked.request.service.map(|service| service >> 2);
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
