//! What the shards tell of connections: a queue of limited length, and counts that are right in any case.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};

use super::MOST_WAITING;
use super::tcp_event::{TcpConnectionEnd, TcpEvent, TcpTotals};
use crate::clock::monotonic_ns;
use crate::connections::{TellConnections, Told};

/// Events that are told between two looks at the clock. The caller's output may take a millisecond for each.
const AT_ONCE: usize = 128;

/// The conductor's end of the queue.
pub(super) struct Notices {
    told: Receiver<Told>,
    untold: Arc<Untold>,
    began_ns: u64,
    /// Ends of connections. Its `open` is not kept.
    totals: TcpTotals,
    /// Connections whose life began, less those whose life ended. Below 0 while the beginning of one whose end was
    /// counted waits in the queue.
    open: i64,
    lost: u64,
}

/// What happened while the queue was full.
#[derive(Debug, Default)]
struct Untold {
    events: AtomicU64,
    established: AtomicU64,
    ended_lives: AtomicU64,
    completed: AtomicU64,
    network_errors: AtomicU64,
    data_errors: AtomicU64,
}

impl Untold {
    fn count(&self, happening: &Told, began_ns: u64) {
        let add = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
        add(&self.events);
        match happening {
            Told::Established { .. } => drop(add(&self.established)),
            Told::Finished(finished) => {
                let Some(end) = TcpConnectionEnd::new(finished, began_ns) else { return };
                if finished.has_lived {
                    add(&self.ended_lives);
                }
                let mut one = TcpTotals::default();
                one.count(end.fault.as_ref());
                for (count, one) in [
                    (&self.completed, one.completed),
                    (&self.network_errors, one.network_errors),
                    (&self.data_errors, one.data_errors),
                ] {
                    count.fetch_add(one, Ordering::Relaxed);
                }
            }
        }
    }
}

impl Notices {
    /// A queue for a run that began at this time, and the shards' end of it. A full queue delays no connection: what
    /// happens meanwhile is counted and not told.
    pub(super) fn new(began_ns: u64, asks_kernel: bool) -> (Self, TellConnections) {
        let (sender, told) = sync_channel(MOST_WAITING);
        let untold = Arc::new(Untold::default());
        let counting = Arc::clone(&untold);
        let tell = Arc::new(move |happening| {
            // The conductor reads to the end.
            if let Err(TrySendError::Full(happening)) = sender.try_send(happening) {
                counting.count(&happening, began_ns);
            }
        });
        let totals = TcpTotals::default();
        let notices = Self { told, untold, began_ns, totals, open: 0, lost: 0 };
        (notices, TellConnections { tell, asks_kernel })
    }

    /// Counts what has happened, and tells it: not all at once, as the senders may be faster than the caller's output.
    /// Says whether there may be more.
    pub(super) fn take(&mut self, tell: &mut dyn FnMut(TcpEvent)) -> bool {
        let taken = self.take_waiting(AT_ONCE, tell);
        self.take_untold();
        taken == AT_ONCE
    }

    /// Counts all that waits, and tells it until a time.
    pub(super) fn take_all(&mut self, until_ns: u64, tell: &mut dyn FnMut(TcpEvent)) {
        while monotonic_ns() < until_ns {
            if !self.take(tell) {
                return;
            }
        }
        let mut late = 0;
        self.take_waiting(MOST_WAITING, &mut |_| late += 1);
        self.lost += late;
        self.take_untold();
    }

    /// Counts and tells so many at most; how many there were.
    fn take_waiting(&mut self, most: usize, tell: &mut dyn FnMut(TcpEvent)) -> usize {
        let mut taken = 0;
        for happening in self.told.try_iter().take(most) {
            taken += 1;
            match happening {
                Told::Established { at_ns, addresses } => {
                    self.open += 1;
                    let at_ns = at_ns.saturating_sub(self.began_ns);
                    tell(TcpEvent::Established { at_ns, addresses });
                }
                Told::Finished(finished) => {
                    let Some(end) = TcpConnectionEnd::new(&finished, self.began_ns) else {
                        continue;
                    };
                    self.open -= i64::from(finished.has_lived);
                    self.totals.count(end.fault.as_ref());
                    tell(TcpEvent::Finished(Box::new(end)));
                }
            }
        }
        taken
    }

    fn take_untold(&mut self) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        self.lost += take(&self.untold.events);
        self.totals.completed += take(&self.untold.completed);
        self.totals.network_errors += take(&self.untold.network_errors);
        self.totals.data_errors += take(&self.untold.data_errors);
        let signed = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.open += signed(take(&self.untold.established));
        self.open -= signed(take(&self.untold.ended_lives));
    }

    /// What came of connections until the last call of [`Notices::take`].
    pub(super) fn totals(&self) -> TcpTotals {
        TcpTotals { open: u64::try_from(self.open).unwrap_or(0), ..self.totals }
    }

    /// Events that were counted and not told.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::{Call, Failure, Finished};

    fn finished(failure: Option<Failure>, has_lived: bool) -> Told {
        Told::Finished(Box::new(Finished {
            at_ns: 5,
            addresses: None,
            has_lived,
            id: [0; linerate_measure::step::ID_BYTES],
            sent_bytes: 0,
            received_bytes: 0,
            began_ns: 0,
            transferred_ns: 0,
            call: Call::Receive,
            failure,
            tcp: None,
        }))
    }

    #[test]
    fn a_full_queue_loses_lines_and_no_counts() {
        let (mut notices, teller) = Notices::new(0, false);
        let count = MOST_WAITING as u64;
        for _ in 0..count {
            (teller.tell)(Told::Established { at_ns: 1, addresses: None });
            (teller.tell)(finished(None, true));
        }
        (teller.tell)(Told::Established { at_ns: 1, addresses: None });
        (teller.tell)(finished(Some(Failure::System(libc::ECONNREFUSED)), false));
        (teller.tell)(finished(Some(Failure::EndedEarly), true));
        // The run itself ended it.
        (teller.tell)(finished(Some(Failure::GivenUp), true));
        let mut told = 0;
        while notices.take(&mut |_| told += 1) {}
        assert_eq!((told, notices.lost()), (count, count + 4));
        let expected = TcpTotals { open: 0, completed: count, network_errors: 1, data_errors: 1 };
        assert_eq!(notices.totals(), expected);
        // From then on there is room.
        (teller.tell)(Told::Established { at_ns: 2, addresses: None });
        notices.take(&mut |_| told += 1);
        assert_eq!((told, notices.totals().open, notices.lost()), (count + 1, 1, count + 4));
    }

    #[test]
    fn events_are_told_a_few_at_a_time_and_counted_when_time_is_up() {
        let (mut notices, teller) = Notices::new(0, false);
        for _ in 0..1000 {
            (teller.tell)(Told::Established { at_ns: 1, addresses: None });
        }
        let mut told = 0;
        assert!(notices.take(&mut |_| told += 1));
        assert_eq!((told, notices.totals().open), (AT_ONCE, AT_ONCE as u64));
        notices.take_all(0, &mut |_| told += 1);
        assert_eq!((told, notices.totals().open), (AT_ONCE, 1000));
        assert_eq!(notices.lost(), 1000 - AT_ONCE as u64);
        (teller.tell)(Told::Established { at_ns: 1, addresses: None });
        notices.take_all(u64::MAX, &mut |_| told += 1);
        assert_eq!((told, notices.totals().open), (AT_ONCE + 1, 1001));
    }
}
