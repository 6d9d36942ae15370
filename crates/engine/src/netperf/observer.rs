//! The observer of a server's test, from its request to its end.

use std::net::SocketAddr;

use linerate_measure::{EndReport, Sample};
use linerate_wire::netperf::fault::Fault;
use linerate_wire::netperf::test::Request;

use super::server_test::ServerTest;
use crate::clock::utc_of;
use crate::event::{OBSERVED_INTERVAL_NS, Observe, TestEnding, TestObserver};

/// What a client has asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The server's end of the control connection.
    pub local: SocketAddr,
    /// The test.
    pub request: Request,
}

/// A test's observer, as long as the test is under way.
pub(super) struct Observation {
    observer: Box<dyn TestObserver<EndReport>>,
    has_started: bool,
}

impl Observation {
    /// Begins, where tests are observed.
    pub(super) fn begin(
        observe: Option<&dyn Observe<Asked, EndReport>>,
        local: SocketAddr,
        request: &Request,
    ) -> Option<Self> {
        let observer = observe?.begin(&Asked { local, request: request.clone() });
        Some(Self { observer, has_started: false })
    }

    /// Length of a sample of the test.
    pub(super) fn interval_ns(observed: Option<&Self>) -> u64 {
        observed.map_or(u64::MAX, |_| OBSERVED_INTERVAL_NS)
    }

    /// Tells what has come since the last time.
    pub(super) fn look(&mut self, test: &ServerTest, sample: Option<&Sample>) {
        if let Some(began_ns) = test.data_began_ns().filter(|_| !self.has_started) {
            self.has_started = true;
            self.observer.started(utc_of(began_ns));
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
