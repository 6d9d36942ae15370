//! Connections that go on by themselves at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// By their indexes, the earliest first.
#[derive(Default)]
pub(super) struct Timers {
    queue: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Timers {
    /// The connection at this index goes on at this time. One that has gone on before, or has gone, gets a turn more.
    pub(super) fn add(&mut self, at_ns: u64, index: usize) {
        self.queue.push(Reverse((at_ns, index)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes those whose time has come.
    pub(super) fn take_due(&mut self, now_ns: u64, into: &mut Vec<usize>) {
        while let Some(Reverse((at_ns, index))) = self.queue.peek().copied()
            && at_ns <= now_ns
        {
            self.queue.pop();
            into.push(index);
        }
    }

    /// How long it is until the next is due, at most so long.
    pub(super) fn wait_at_most_ns(&self, now_ns: u64, at_most_ns: u64) -> u64 {
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
