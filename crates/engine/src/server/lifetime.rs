//! How long the server serves, and what it gives back when tests are over.

use linerate_measure::Workload;
use linerate_measure::units::render_duration_ns;

use super::ServeOptions;
use super::acceptor::Acceptor;
use crate::acceptor::IdleTimeout;
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::event::{Cancel, Event};
use crate::socket::give_back_freed_memory;

/// A test of so many flows leaves memory that is worth giving back.
const MANY_FLOWS: u32 = 1_000;
/// The threads of a test that has ended have let go of what they had after this time.
const LETTING_GO_NS: u64 = 2 * SECOND_NS;

/// How long a server serves.
pub(super) struct Lifetime {
    one_off: bool,
    idle_timeout: IdleTimeout,
    /// The client whose test was the only one, once that is over.
    served: Option<usize>,
    /// When freed memory is given back to the system.
    gives_back_at_ns: Option<u64>,
}

impl Lifetime {
    pub(super) fn new(options: &ServeOptions) -> Self {
        Self {
            one_off: options.one_off,
            idle_timeout: IdleTimeout::new(options.idle_timeout_ns),
            served: None,
            gives_back_at_ns: None,
        }
    }
}

impl Acceptor {
    /// Whether the server goes on.
    pub(super) fn goes_on(&mut self, cancel: &Cancel) -> bool {
        let now_ns = monotonic_ns();
        if !self.tests.is_empty() {
            self.lifetime.idle_timeout.note_busy();
        }
        // It blocks other allocations meanwhile, so it doesn't run during a test.
        let is_due = self.lifetime.gives_back_at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        if is_due && self.tests.is_empty() {
            self.lifetime.gives_back_at_ns = None;
            give_back_freed_memory();
        }
        let has_served =
            self.lifetime.served.is_some_and(|number| self.clients.kept(number).is_none());
        !cancel.requested() && !has_served && !self.has_been_idle_for_long()
    }

    fn has_been_idle_for_long(&self) -> bool {
        let limit_ns = self.lifetime.idle_timeout.overdue_ns();
        let Some(most_ns) = limit_ns else { return false };
        self.sink.offer(Event::Note(format!(
            "no test for {}: the server ends (--idle-timeout)",
            render_duration_ns(most_ns)
        )));
        true
    }

    /// Why no further test begins, where the server has had the only one that it takes.
    pub(super) fn takes_no_more(&self) -> Option<&'static str> {
        let has_one = !self.tests.is_empty() || self.lifetime.served.is_some();
        (self.lifetime.one_off && has_one)
            .then_some("this server takes one test and ends then (serve --one-off)")
    }

    /// A client's test is over.
    pub(super) fn note_end(&mut self, number: usize, workload: &Workload) {
        self.lifetime.idle_timeout.note_busy();
        if self.lifetime.one_off {
            self.lifetime.served = Some(number);
        }
        if workload.total_flows() >= MANY_FLOWS {
            self.lifetime.gives_back_at_ns = Some(monotonic_ns() + LETTING_GO_NS);
        }
    }

    /// The server ends, and with it every test that runs.
    pub(super) fn end_all_tests(&mut self) {
        let running: Vec<usize> = self.tests.values().copied().collect();
        for number in running {
            self.end_test(number, "the server was stopped");
        }
    }
}
