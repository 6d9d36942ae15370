//! Connections that wait in a load's slots and haven't said whose they are. They make room for those that have.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::incoming::{Incoming, Stage};

/// Those of one of the load's loops.
pub(super) struct Pending {
    /// Those of all loops.
    count: Arc<AtomicUsize>,
    /// The slot and the number of each, oldest first. Some have been identified since, or have gone.
    queue: VecDeque<(usize, u64)>,
    next_number: u64,
}

impl Pending {
    pub(super) fn new(count: &Arc<AtomicUsize>) -> Self {
        Self { count: Arc::clone(count), queue: VecDeque::new(), next_number: 0 }
    }

    /// Notes how far the connection in this slot has come, now that it waits or goes on.
    #[inline]
    pub(super) fn note(&mut self, slot: usize, one: &mut Incoming) {
        let is_opening = matches!(one.stage, Stage::Opening);
        if is_opening && one.pending.is_none() {
            one.pending = Some(self.next_number);
            self.queue.push_back((slot, self.next_number));
            self.next_number += 1;
            self.count.fetch_add(1, Ordering::Relaxed);
        } else if !is_opening {
            self.leave(one);
        }
    }

    /// It goes, or is none of them any more.
    #[inline]
    pub(super) fn leave(&self, one: &mut Incoming) {
        if one.pending.take().is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes the slot of the one that has waited longest.
    pub(super) fn take_oldest(&mut self, all: &[Option<Incoming>]) -> Option<usize> {
        std::iter::from_fn(|| self.queue.pop_front())
            .find(|entry| is_here(entry, all))
            .map(|(slot, _)| slot)
    }

    /// Forgets those that have said whose they are, or gone.
    pub(super) fn forget_others(&mut self, all: &[Option<Incoming>]) {
        self.queue.retain(|entry| is_here(entry, all));
    }
}

fn is_here(&(slot, number): &(usize, u64), all: &[Option<Incoming>]) -> bool {
    let one = all.get(slot).and_then(Option::as_ref);
    one.is_some_and(|one| one.pending == Some(number))
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};

    use super::*;

    fn incoming() -> Incoming {
        Incoming::new(Socket::new(Domain::IPV4, Type::STREAM, None).unwrap(), Stage::Opening)
    }

    #[test]
    fn oldest_unclaimed_connection_is_dropped_first() {
        let count = Arc::default();
        let mut pending = Pending::new(&count);
        let mut all: Vec<Option<Incoming>> = (0..4).map(|_| Some(incoming())).collect();
        for _ in 0..2 {
            for (slot, one) in all.iter_mut().enumerate() {
                pending.note(slot, one.as_mut().unwrap());
            }
        }
        assert_eq!(count.load(Ordering::Relaxed), 4);
        // One says whose it is; one goes, and another takes its slot.
        let spoken = all[1].as_mut().unwrap();
        spoken.stage = Stage::Closing;
        pending.note(1, spoken);
        pending.leave(&mut all[0].take().unwrap());
        pending.note(0, all[0].insert(incoming()));
        assert_eq!(count.load(Ordering::Relaxed), 3);
        pending.forget_others(&all);
        let order: Vec<usize> = std::iter::from_fn(|| pending.take_oldest(&all)).collect();
        assert_eq!(order, [2, 3, 0]);
    }
}
