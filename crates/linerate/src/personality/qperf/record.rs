//! The run documents of both ends: the nearest native plan, and what came out.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_engine::event::{Cancel, Observe, TestEnding, TestObserver};
use linerate_engine::qperf::{Counts, Interval, Report, ServerEvent};
use linerate_measure::run::{Draft, exit};
use linerate_measure::sample::Traffic;
use linerate_measure::{
    Dialect, Direction, End, EndReport, FlowReport, Outcome, Plan, Role, Sample, Transport,
    Workload,
};
use linerate_personality::qperf::flags::TABLE;
use linerate_personality::qperf::options::Options;
use linerate_personality::qperf::output;
use linerate_wire::qperf::Close;

use super::{FAILED, Failure, NAME, plan};
use crate::personality::recorder::{Recorder, ServedDialect, ServerRecorder};
use crate::personality::run_document::{RunRecord, options_of};
use crate::personality::stdout;
use crate::start_time::utc_now_ns;

/// An interval, as the lines have it.
pub(super) fn interval(over: &Interval) -> output::Interval {
    let measured_ns = over.to_ns.saturating_sub(over.from_ns);
    output::Interval { index: over.index, measured_ns, counts: over.counts }
}

/// The nearest native load: one stream of a connection down.
fn workload(options: &Options) -> Workload {
    let mut workload = Workload::stream(Direction::Down, Transport::Quic);
    workload.interval_ns = plan::interval_ns(options);
    workload.end = End::Time { duration_ns: u64::from(options.runtime_s) * 1_000_000_000 };
    workload.socket.congestion = Some(options.congestion.name().to_owned());
    workload
}

/// The record of a client that begins.
///
/// # Errors
/// What the environment asks for can't be written.
pub(super) fn begin_client(
    options: &Options,
    host: &str,
    words: &[String],
    cancel: &Cancel,
) -> Result<RunRecord, String> {
    let typed = options_of(NAME, words, TABLE);
    let recorder = Recorder::of_environment(Dialect::Qperf, Role::Client, typed, cancel)?;
    Ok(recorder.begin(Plan::new(host.to_owned(), options.port, workload(options))))
}

/// The first byte has come.
pub(super) fn start(record: &mut RunRecord) {
    record.start(utc_now_ns());
}

fn sample(role: Role, over: &Interval) -> Sample {
    let traffic = Some(Traffic { bytes: over.counts.bytes, calls: None });
    let (sent, received) = match role {
        Role::Client => (None, traffic),
        Role::Server => (traffic, None),
    };
    let Interval { index, from_ns, to_ns, utc_ns, .. } = *over;
    Sample { index, from_ns, to_ns, utc_ns, sent, received, ..Sample::nothing(role) }
}

/// An interval of a client is over.
pub(super) fn record_received(record: &mut RunRecord, over: &Interval) {
    record.record_sample(&sample(Role::Client, over));
}

/// The test is over.
pub(super) fn finish_client(
    mut record: RunRecord,
    report: Report,
    failure: Option<&Failure>,
    cancel: &Cancel,
) {
    let has_data = report.first_byte_ns.is_some();
    if let Some(draft) = record.draft() {
        draft.record_report(report.own);
    }
    let (outcome, exit_code) = match failure {
        _ if cancel.requested() => (Outcome::Interrupted, exit::INTERRUPTED),
        // A file or a line that can't be written shows in the exit code, too.
        None => (Outcome::Complete, stdout::exit_code(0, FAILED)),
        Some(failure) if has_data => (Outcome::Untrustworthy, failure.exit_code),
        Some(failure) => (Outcome::Failed, failure.exit_code),
    };
    record.finish(outcome, exit_code, failure.map(|failure| failure.why.clone()));
}

/// The test could not begin.
pub(super) fn fail_client(record: RunRecord, failure: &Failure) {
    record.finish(Outcome::Failed, failure.exit_code, Some(failure.why.clone()));
}

/// What a server's connections are as runs.
#[derive(Debug)]
struct QperfServer {
    options: Options,
    /// Where the server listens.
    address: SocketAddr,
}

/// What a connection came to.
struct Sent {
    total: Counts,
    elapsed_ns: u64,
}

impl ServedDialect for QperfServer {
    /// The client's address.
    type Asked = SocketAddr;
    type Report = Sent;

    const INCOMPLETE: u8 = 0;

    fn plan(&self, _asked: &SocketAddr) -> Plan {
        // How long a client receives is its own to know.
        let mut workload = workload(&self.options);
        workload.end = End::Time { duration_ns: 0 };
        Plan::new(self.address.ip().to_canonical().to_string(), self.address.port(), workload)
    }

    fn describe(&self, asked: &SocketAddr, draft: &mut Draft) {
        draft.notes.push(format!("the connection came from {asked}"));
    }

    fn conclude(draft: &mut Draft, Sent { total, elapsed_ns }: Sent) {
        let flow = FlowReport {
            sent: Some(Traffic { bytes: total.bytes, calls: None }),
            from_ns: Some(0),
            to_ns: Some(elapsed_ns),
            ..FlowReport::default()
        };
        draft.record_report(EndReport {
            flows: vec![flow],
            elapsed_ns,
            ..EndReport::nothing(Role::Server)
        });
    }
}

/// What the tests of a server are recorded with.
///
/// # Errors
/// What the environment asks for can't be written.
pub(super) fn server_recorder(words: &[String], cancel: &Cancel) -> Result<Recorder, String> {
    let typed = options_of(NAME, words, TABLE);
    Recorder::of_environment(Dialect::Qperf, Role::Server, typed, cancel)
}

/// A connection's client, and its observer once it has asked for something.
type Test = (SocketAddr, Option<Box<dyn TestObserver<Sent>>>);

/// The tests of a server by the numbers of their connections: one begins with the connection's first request.
pub(super) struct ServerRecords {
    observer: Option<Arc<dyn Observe<SocketAddr, Sent>>>,
    tests: HashMap<u64, Test>,
}

impl ServerRecords {
    /// The server listens here.
    pub(super) fn new(recorder: Recorder, options: &Options, address: SocketAddr) -> Self {
        let dialect = QperfServer { options: options.clone(), address };
        let observer = ServerRecorder::new(recorder, dialect).observer();
        Self { observer, tests: HashMap::new() }
    }

    /// Takes what happened to a connection.
    pub(super) fn record(&mut self, event: &ServerEvent) {
        let Some(observer) = &self.observer else { return };
        match event {
            ServerEvent::Accepted { number, remote } => {
                self.tests.insert(*number, (*remote, None));
            }
            ServerEvent::Requested { number } => {
                if let Some((client, test @ None)) = self.tests.get_mut(number) {
                    let mut begun = observer.begin(client);
                    begun.started(utc_now_ns());
                    *test = Some(begun);
                }
            }
            ServerEvent::Interval { number, interval, .. } => {
                if let Some((_, Some(test))) = self.tests.get_mut(number) {
                    test.sampled(&sample(Role::Server, interval));
                }
            }
            ServerEvent::Closed { number, close, total, elapsed_ns } => {
                if let Some((_, Some(test))) = self.tests.remove(number) {
                    let (total, elapsed_ns) = (*total, *elapsed_ns);
                    test.ended(Some(Sent { total, elapsed_ns }), &ending(close));
                }
            }
            _ => {}
        }
    }
}

/// How a test has ended.
fn ending(close: &Close) -> TestEnding {
    match close {
        Close::Transport { code: 0, .. } | Close::Application { code: 0, .. } => {
            TestEnding::Complete
        }
        Close::Stopped => TestEnding::Interrupted("the server was stopped".to_owned()),
        Close::Other(why) => TestEnding::Interrupted(why.clone()),
        _ => TestEnding::Interrupted("the client didn't close its connection".to_owned()),
    }
}
