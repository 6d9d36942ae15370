//! Connections that go on by themselves at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// By what its loop knows each by, the earliest first.
pub(crate) struct Timers<K> {
    queue: BinaryHeap<Reverse<(u64, K)>>,
}

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Self { queue: BinaryHeap::new() }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// This connection goes on at this time. One that has gone on before, or has gone, gets a turn more.
    pub(crate) fn add(&mut self, at_ns: u64, connection: K) {
        self.queue.push(Reverse((at_ns, connection)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes those whose time has come.
    pub(crate) fn take_due(&mut self, now_ns: u64, into: &mut Vec<K>) {
        while let Some(Reverse((at_ns, connection))) = self.queue.peek().copied()
            && at_ns <= now_ns
        {
            self.queue.pop();
            into.push(connection);
        }
    }

    /// How long it is until the next is due, at most so long.
    pub(crate) fn wait_at_most_ns(&self, now_ns: u64, at_most_ns: u64) -> u64 {
        let next = self.queue.peek().map(|Reverse((at_ns, _))| at_ns.saturating_sub(now_ns));
        next.map_or(at_most_ns, |next_ns| next_ns.min(at_most_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_due_in_their_order() {
        let mut timers = Timers::default();
        assert_eq!(timers.wait_at_most_ns(0, 77), 77);
        for (at_ns, index) in [(30, 1), (10, 2), (20, 3)] {
            timers.add(at_ns, index);
        }
        assert_eq!((timers.wait_at_most_ns(4, 77), timers.wait_at_most_ns(40, 77)), (6, 0));
        let mut due = Vec::new();
        timers.take_due(20, &mut due);
        assert_eq!((due, timers.is_empty()), (vec![2, 3], false));
    }
}
