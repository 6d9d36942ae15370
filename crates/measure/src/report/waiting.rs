//! How the threads of an end waited.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the threads that carried the flows did while their sockets had nothing for them, all threads
/// together, from the end of the warm-up to the end of the load.
///
/// A thread that polls its socket instead of sleeping is faster and takes more CPU. linerate polls where
/// the peer runs on another processor and the CPU is there, so a reader of two results must know whether it
/// did so in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Times that a thread slept until the kernel woke it: its voluntary context switches
    /// (`ru_nvcsw`, getrusage(2)).
    pub sleeps: u64,
    /// Times that a thread polled its socket for a moment instead, in vain or not.
    pub looks: u64,
    /// How long these polls took in all, in nanoseconds.
    pub looked_ns: u64,
    /// Times that a receiver of small pieces paused before it read again.
    pub rests: u64,
    /// How long these pauses took in all, in nanoseconds.
    pub rested_ns: u64,
    /// Times that a thread yielded its processor to others (sched_yield(2)).
    pub yields: u64,
    /// Whether the threads never slept, as `--busy-poll` asks for.
    pub spins: bool,
}

impl Waiting {
    /// What came after an earlier count of the same thread.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            sleeps: self.sleeps.saturating_sub(before.sleeps),
            looks: self.looks.saturating_sub(before.looks),
            looked_ns: self.looked_ns.saturating_sub(before.looked_ns),
            rests: self.rests.saturating_sub(before.rests),
            rested_ns: self.rested_ns.saturating_sub(before.rested_ns),
            yields: self.yields.saturating_sub(before.yields),
            spins: self.spins,
        }
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Self) {
        self.sleeps = self.sleeps.saturating_add(other.sleeps);
        self.looks = self.looks.saturating_add(other.looks);
        self.looked_ns = self.looked_ns.saturating_add(other.looked_ns);
        self.rests = self.rests.saturating_add(other.rests);
        self.rested_ns = self.rested_ns.saturating_add(other.rested_ns);
        self.yields = self.yields.saturating_add(other.yields);
        self.spins |= other.spins;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_and_an_earlier_count_is_taken_off() {
        let before = Waiting { sleeps: 2, looks: 1, looked_ns: 7, ..Waiting::default() };
        let now = Waiting { sleeps: 5, looks: 1, looked_ns: 7, yields: 3, ..Waiting::default() };
        let since = now.since(&before);
        assert_eq!(since, Waiting { sleeps: 3, yields: 3, ..Waiting::default() });
        let mut sum = Waiting { rests: 1, rested_ns: 100, ..Waiting::default() };
        sum.add(&since);
        sum.add(&Waiting { spins: true, ..Waiting::default() });
        let expected = Waiting {
            sleeps: 3,
            rests: 1,
            rested_ns: 100,
            yields: 3,
            spins: true,
            ..Waiting::default()
        };
        assert_eq!(sum, expected);
    }
}
