//! What happens in a server's tests, for the keeper of their results.

use std::fmt::Debug;
use std::net::SocketAddr;

use linerate_measure::{EndReport, Sample};
use linerate_wire::netperf::fault::Fault;
use linerate_wire::netperf::test::Request;

use super::server_test::ServerTest;
use crate::clock::{SECOND_NS, monotonic_ns, utc_ns};

/// Samples of an observed test are so long.
const INTERVAL_NS: u64 = SECOND_NS;

/// Makes an observer for each test of a server.
pub trait Observe: Debug + Send + Sync {
    /// A client has asked for a test; it isn't known whether the server can make it.
    fn begin(&self, asked: &Asked<'_>) -> Box<dyn Observer>;
}

/// What a client has asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The server's end of the control connection.
    pub local: SocketAddr,
    /// The client's.
    pub client: SocketAddr,
    /// The test.
    pub request: &'a Request,
    /// Length of its samples.
    pub interval_ns: u64,
}

/// Takes what happens in one test. The thread that serves the client calls it: a slow observer delays the
/// conversation, never the load.
pub trait Observer: Send {
    /// Data has begun, at this time (UTC, nanoseconds since 1970).
    fn started(&mut self, utc_ns: i64);
    /// An interval is over.
    fn sampled(&mut self, sample: &Sample);
    /// The test is over. A test without data has no report.
    fn ended(self: Box<Self>, report: Option<EndReport>, how: &TestEnding);
}

/// How a test of a server has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestEnding {
    /// The client has its results.
    Complete,
    /// The server has refused it, for this reason.
    Refused(String),
    /// The client has left, or the server was stopped.
    Interrupted(String),
    /// Otherwise, for this reason.
    Failed(String),
}

/// A test's observer, as long as the test is under way.
pub(super) struct Observation {
    observer: Box<dyn Observer>,
    has_started: bool,
}

impl Observation {
    /// Begins, where tests are observed.
    pub(super) fn begin(
        observe: Option<&dyn Observe>,
        (local, client): (SocketAddr, SocketAddr),
        request: &Request,
    ) -> Option<Self> {
        let asked = Asked { local, client, request, interval_ns: INTERVAL_NS };
        let observer = observe?.begin(&asked);
        Some(Self { observer, has_started: false })
    }

    /// Length of a sample of the test.
    pub(super) fn interval_ns(observed: Option<&Self>) -> u64 {
        observed.map_or(u64::MAX, |_| INTERVAL_NS)
    }

    /// Tells what has come since the last time.
    pub(super) fn look(&mut self, test: &ServerTest, sample: Option<&Sample>) {
        if let Some(began_ns) = test.data_began_ns().filter(|_| !self.has_started) {
            self.has_started = true;
            let ago_ns = monotonic_ns().saturating_sub(began_ns);
            self.observer.started(utc_ns().saturating_sub_unsigned(ago_ns));
        }
        if let Some(sample) = sample {
            self.observer.sampled(sample);
        }
    }

    /// The test is over.
    pub(super) fn end(
        mut self,
        sample: Option<&Sample>,
        report: Option<EndReport>,
        how: &TestEnding,
    ) {
        if let Some(sample) = sample {
            self.observer.sampled(sample);
        }
        self.observer.ended(report, how);
    }

    /// The server has refused it with an error of errno(3).
    pub(super) fn refuse(self, errno: i32) {
        let why = Fault::Remote { number: errno }.to_string();
        self.end(None, None, &TestEnding::Refused(format!("refused with {why}")));
    }
}
