//! What a server does at the moment, for who shows it.
//!
//! The acceptor's thread adds up counts that flows keep anyway, once a second, and only where somebody reads them.
//! Threads of loads have no part in it.

use std::sync::Arc;

use linerate_measure::record::TestFigures;

use crate::clock::SECOND_NS;
use crate::tally::Counter;

/// So often the counts are added up.
const TELL_EVERY_NS: u64 = SECOND_NS;

/// What a server does at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus {
    /// When that was, on the machine's monotonic clock; 0: never yet.
    pub at_ns: u64,
    /// Tests that run.
    pub tests: u64,
    /// Clients that wait to measure alone.
    pub waiting: u64,
    /// How long the longest load of the tests has gone on.
    pub oldest_age_ns: u64,
    /// Bytes of payload that have arrived in all tests since the server began.
    pub received_bytes: u64,
    /// Bytes of payload that have left in all of them.
    pub sent_bytes: u64,
}

impl ServerStatus {
    /// A test, and what it has carried; `None`: its load has not begun.
    pub(super) fn add_test(&mut self, figures: Option<TestFigures>) {
        self.tests += 1;
        let age_ns = figures.map_or(0, |figures| figures.elapsed_ns);
        self.oldest_age_ns = self.oldest_age_ns.max(age_ns);
        self.add_figures(figures);
    }

    fn add_figures(&mut self, figures: Option<TestFigures>) {
        let TestFigures { received_bytes, sent_bytes, .. } = figures.unwrap_or_default();
        self.received_bytes = self.received_bytes.saturating_add(received_bytes);
        self.sent_bytes = self.sent_bytes.saturating_add(sent_bytes);
    }
}

/// Where a server tells its status. It has one writer, the server's own thread. Its numbers are read one by one, and so
/// may be of two moments that follow each other.
#[derive(Debug, Default)]
pub struct ServerGauge {
    at_ns: Counter,
    tests: Counter,
    waiting: Counter,
    oldest_age_ns: Counter,
    received_bytes: Counter,
    sent_bytes: Counter,
}

impl ServerGauge {
    fn set(&self, status: &ServerStatus) {
        self.tests.set(status.tests);
        self.waiting.set(status.waiting);
        self.oldest_age_ns.set(status.oldest_age_ns);
        self.received_bytes.set(status.received_bytes);
        self.sent_bytes.set(status.sent_bytes);
        self.at_ns.set(status.at_ns);
    }

    /// What the server last told.
    pub fn status(&self) -> ServerStatus {
        ServerStatus {
            at_ns: self.at_ns.value(),
            tests: self.tests.value(),
            waiting: self.waiting.value(),
            oldest_age_ns: self.oldest_age_ns.value(),
            received_bytes: self.received_bytes.value(),
            sent_bytes: self.sent_bytes.value(),
        }
    }
}

/// Tells a server's status where somebody reads it.
pub(super) struct Teller {
    gauge: Option<Arc<ServerGauge>>,
    next_ns: u64,
    /// What the tests that are over have carried.
    ended: ServerStatus,
}

impl Teller {
    pub(super) fn new(gauge: Option<Arc<ServerGauge>>) -> Self {
        Self { gauge, next_ns: 0, ended: ServerStatus::default() }
    }

    /// A test is over that carried this.
    pub(super) fn handle_end(&mut self, figures: Option<TestFigures>) {
        self.ended.add_figures(figures);
    }

    /// A status to add the running tests to, where it is time to tell one.
    pub(super) fn begin(&mut self, now_ns: u64) -> Option<ServerStatus> {
        let is_due = self.gauge.is_some() && now_ns >= self.next_ns;
        is_due.then(|| {
            self.next_ns = now_ns.saturating_add(TELL_EVERY_NS);
            ServerStatus { at_ns: now_ns, ..self.ended }
        })
    }

    /// Tells it.
    pub(super) fn tell(&self, status: &ServerStatus) {
        if let Some(gauge) = &self.gauge {
            gauge.set(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(received_bytes: u64, sent_bytes: u64) -> Option<TestFigures> {
        let elapsed_ns = 3 * SECOND_NS;
        Some(TestFigures { elapsed_ns, received_bytes, sent_bytes, transactions: 0 })
    }

    #[test]
    fn a_status_counts_what_runs_and_what_has_ended() {
        let gauge = Arc::new(ServerGauge::default());
        let mut teller = Teller::new(Some(Arc::clone(&gauge)));
        assert_eq!(gauge.status(), ServerStatus::default());
        teller.handle_end(figures(100, 7));
        teller.handle_end(None);
        let mut status = teller.begin(5 * SECOND_NS).unwrap();
        status.waiting = 2;
        status.add_test(figures(1_000, 0));
        status.add_test(None);
        teller.tell(&status);
        let told = ServerStatus {
            at_ns: 5 * SECOND_NS,
            tests: 2,
            waiting: 2,
            oldest_age_ns: 3 * SECOND_NS,
            received_bytes: 1_100,
            sent_bytes: 7,
        };
        assert_eq!(gauge.status(), told);
    }

    #[test]
    fn a_status_is_told_once_a_second_and_to_nobody_where_nobody_reads() {
        let mut teller = Teller::new(Some(Arc::default()));
        assert!(teller.begin(SECOND_NS).is_some());
        assert!(teller.begin(2 * SECOND_NS - 1).is_none());
        assert!(teller.begin(2 * SECOND_NS).is_some());
        assert!(Teller::new(None).begin(SECOND_NS).is_none());
    }
}
