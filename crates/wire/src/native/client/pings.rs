//! Which pings are on their way, and when the next one is due.

use std::collections::VecDeque;

/// Time between two pings that only say that the client is still there.
pub(super) const PING_NS: u64 = 1_000_000_000;

/// Time between two pings while the load runs, so that the clocks are compared all the time.
pub(super) const LOAD_PING_NS: u64 = 100_000_000;

/// Pings sent one after the other, each when the last was answered, to compare the clocks before
/// the load disturbs them.
pub(super) const BURST_PINGS: u32 = 8;

/// The most pings that are remembered: with one a second, more than the silence that ends the
/// conversation leaves room for.
const MAX_UNANSWERED: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Pings {
    /// When the next ping is due (monotonic).
    pub(super) due_ns: Option<u64>,
    /// When the last one went out.
    last_ns: u64,
    /// Pings left of the burst.
    pub(super) burst: u32,
    unanswered: VecDeque<u64>,
}

impl Pings {
    /// A ping goes out.
    pub(super) fn record_sent(&mut self, sent_ns: u64) {
        if self.unanswered.len() >= MAX_UNANSWERED {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back(sent_ns);
        self.burst = self.burst.saturating_sub(1);
        self.last_ns = sent_ns;
        self.due_ns = Some(sent_ns.saturating_add(PING_NS));
    }

    /// The load runs: the next ping is due sooner, unless one is unanswered. So a slow path carries few of them.
    pub(super) fn hasten(&mut self) {
        if self.unanswered.is_empty() {
            self.due_ns = Some(self.last_ns.saturating_add(LOAD_PING_NS));
        }
    }

    /// A pong came in; whether it answers a ping. Pings sent before that one are forgotten: the
    /// server answers in order, or drops an answer.
    pub(super) fn settle(&mut self, sent_ns: u64) -> bool {
        let Some(place) = self.unanswered.iter().position(|ping| *ping == sent_ns) else {
            return false;
        };
        self.unanswered.drain(..=place);
        true
    }
}
