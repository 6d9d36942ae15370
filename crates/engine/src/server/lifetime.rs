//! How long the server serves, what it has served, and what it gives back when tests are over.

use linerate_measure::Workload;
use linerate_measure::record::TestFigures;
use linerate_measure::units::render_duration_ns;

use super::ServeOptions;
use super::status::Teller;
use crate::acceptor::IdleTimeout;
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::event::{Event, Sink};
use crate::socket::give_back_freed_memory;

/// A test of so many flows leaves memory that is worth giving back.
const MANY_FLOWS: u32 = 1_000;
/// The threads of a test that has ended have let go of what they had after this time.
const LETTING_GO_NS: u64 = 2 * SECOND_NS;

/// How long a server serves, and what it has served.
pub(super) struct Lifetime {
    one_off: bool,
    idle_timeout: IdleTimeout,
    /// The client whose test was the only one, once that is over: of a test within a lease the lease's holder.
    served: Option<usize>,
    /// When freed memory is given back to the system.
    gives_back_at_ns: Option<u64>,
    /// Counts tests that are over.
    pub(super) teller: Teller,
}

impl Lifetime {
    pub(super) fn new(options: &ServeOptions) -> Self {
        Self {
            one_off: options.one_off,
            idle_timeout: IdleTimeout::new(options.idle_timeout_ns),
            served: None,
            gives_back_at_ns: None,
            teller: Teller::new(None),
        }
    }

    /// Whether the server goes on, where tests run or not and these clients are there.
    pub(super) fn goes_on(
        &mut self,
        tests_run: bool,
        is_there: impl Fn(usize) -> bool,
        sink: &Sink,
    ) -> bool {
        if tests_run {
            self.idle_timeout.note_busy();
        }
        // It blocks other allocations meanwhile, so it doesn't run during a test.
        let is_due = self.gives_back_at_ns.is_some_and(|at_ns| at_ns <= monotonic_ns());
        if is_due && !tests_run {
            self.gives_back_at_ns = None;
            give_back_freed_memory();
        }
        // Tests within a lease may outlive its holder.
        let has_served = !tests_run && self.served.is_some_and(|number| !is_there(number));
        !has_served && !self.has_been_idle_for_long(sink)
    }

    fn has_been_idle_for_long(&self, sink: &Sink) -> bool {
        let limit_ns = self.idle_timeout.overdue_ns();
        let Some(most_ns) = limit_ns else { return false };
        sink.offer(Event::Note(format!(
            "no test for {}: the server ends (--idle-timeout)",
            render_duration_ns(most_ns)
        )));
        true
    }

    /// Why no further test begins, where the server has had the only one that it takes.
    pub(super) fn takes_no_more(&self, tests_run: bool, number: usize) -> Option<&'static str> {
        // A client that stays may have several, one after the other.
        let is_other = self.served.is_some_and(|served| served != number);
        (self.one_off && (tests_run || is_other))
            .then_some("this server takes one test and ends then (serve --one-off)")
    }

    /// A test is over that took this client's place, and has carried this.
    pub(super) fn note_end(
        &mut self,
        number: usize,
        workload: &Workload,
        figures: Option<TestFigures>,
    ) {
        self.teller.handle_end(figures);
        self.idle_timeout.note_busy();
        if self.one_off {
            self.served = Some(number);
        }
        if workload.total_flows() >= MANY_FLOWS {
            self.gives_back_at_ns = Some(monotonic_ns() + LETTING_GO_NS);
        }
    }
}
