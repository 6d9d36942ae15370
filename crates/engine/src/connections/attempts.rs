//! The connections of a client's shard: each sits in a slot from its beginning to its end.

use std::io;
use std::time::Duration;

use super::LONGEST_WAIT_NS;
use super::attempt::{Attempt, Carrier, Part};
use super::finished::Call;
use super::slots::{Due, Slots};
use super::timers::Timers;
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::{CALLS_PER_TURN, GivenUp, Local, error_kind};
use crate::phase::{Phase, Reached};

/// The longest that connections of a load that is ended are read, so that they close in order.
const PARTING_NS: u64 = 500 * MILLISECOND_NS;
/// What is read of one at once.
const DISCARDED_AT_ONCE_BYTES: usize = 64 << 10;

/// Connections under way, and the slots that they sit in.
pub(crate) struct Attempts<C: Carrier> {
    pub(crate) part: Part,
    pub(crate) slots: Slots,
    /// By their slots.
    pub(super) under_way: Vec<Option<Attempt<C>>>,
    /// The number of the next connection, and how much greater the next of this shard is.
    numbers: (u32, u32),
    /// Of those that go on by themselves.
    timers: Timers<usize>,
    /// How many of them have nothing come over yet.
    pub(super) pending: usize,
}

/// Whether the peer has finished, or has reset the connection. Reads a part of what has come.
fn has_finished(carrier: &mut impl Carrier, into: &mut [u8]) -> bool {
    for _ in 0..CALLS_PER_TURN {
        match carrier.discard(into) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => {
                return !matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                );
            }
        }
    }
    false
}

/// What became of a connection that had its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advanced {
    /// It waits.
    Waits,
    /// Everything is done but its close.
    Complete,
    /// There is none in this slot, or it failed.
    Gone,
}

impl<C: Carrier> Attempts<C> {
    /// Those of one of so many shards.
    pub(crate) fn new(part: Part, slots: Slots, (shard, shards): (usize, usize)) -> Self {
        let under_way = (0..slots.len()).map(|_| None).collect();
        let numbers = (shard as u32, (shards as u32).max(1));
        Self { part, slots, under_way, numbers, pending: 0, timers: Timers::default() }
    }

    /// The connection in a slot.
    pub(crate) fn get(&self, index: usize) -> Option<&Attempt<C>> {
        self.under_way.get(index)?.as_ref()
    }

    /// Whether there is any.
    pub(super) fn are_any(&self) -> bool {
        self.under_way.iter().any(Option::is_some)
    }

    /// A connection that was due has begun.
    pub(crate) fn begin(&mut self, due: &Due, began_ns: u64, carrier: C, opening: C::Opening) {
        self.slots.note_first(due.index, began_ns);
        let due_ns = due.scheduled_ns.unwrap_or(began_ns);
        if let Some(place) = self.under_way.get_mut(due.index) {
            let (number, further) = self.numbers;
            self.numbers.0 = number.wrapping_add(further);
            let over = (carrier, opening);
            self.pending += 1;
            *place = Some(Attempt::new(over, number, due_ns, began_ns, due.warm_up));
        }
    }

    /// Goes on with the connection in a slot. Where it `returns`, it comes back before it waits for the server.
    pub(crate) fn advance(
        &mut self,
        index: usize,
        returns: bool,
        local: &mut Local,
        wait: &mut C::Wait,
    ) -> Advanced {
        let Some(Some(attempt)) = self.under_way.get_mut(index) else { return Advanced::Gone };
        let (part, tally) = (&mut self.part, self.slots.tally(index));
        match attempt.advance(returns, part, tally, local, wait) {
            Ok(false) => {
                if let Some(resumes_ns) = attempt.take_resumption() {
                    self.timers.add(resumes_ns, index);
                }
                if attempt.is_pending && attempt.is_accepted() {
                    attempt.is_pending = false;
                    self.pending -= 1;
                }
                Advanced::Waits
            }
            Ok(true) => Advanced::Complete,
            Err(error) => {
                self.give_up(index, &error, monotonic_ns());
                Advanced::Gone
            }
        }
    }

    /// Takes the slots of connections that go on by themselves now.
    pub(crate) fn take_resumed(&mut self, into: &mut Vec<usize>) {
        if !self.timers.is_empty() {
            self.timers.take_due(monotonic_ns(), into);
        }
    }

    /// How long a loop may sleep while nothing comes.
    pub(crate) fn wait_at_most_ns(&self, phase: Phase, now_ns: u64) -> u64 {
        self.timers.wait_at_most_ns(now_ns, self.slots.wait_at_most_ns(phase))
    }

    /// The same where no connection may be begun.
    pub(super) fn resumes_within_ns(&self, now_ns: u64) -> u64 {
        self.timers.wait_at_most_ns(now_ns, LONGEST_WAIT_NS)
    }

    /// Closes a connection that is complete.
    pub(crate) fn finish(&mut self, index: usize, local: &mut Local) {
        let Some(attempt) = self.under_way.get_mut(index).and_then(Option::take) else { return };
        self.pending -= usize::from(attempt.is_pending);
        let (script, living) = (&self.part.script, attempt.living());
        script.tell_finished(living, Some(&attempt.carrier), Call::Connect, None);
        let close = self.part.script.close_of(attempt.living());
        let times = attempt.close(close);
        self.slots.finish(index, &times, local);
    }

    /// A connection under way comes to nothing.
    pub(crate) fn give_up(&mut self, index: usize, error: &io::Error, now_ns: u64) {
        let Some(attempt) = self.under_way.get_mut(index).and_then(Option::take) else { return };
        let warm_up = attempt.times.warm_up;
        self.pending -= usize::from(attempt.is_pending);
        let (script, living) = (&self.part.script, attempt.living());
        script.tell_finished(living, Some(&attempt.carrier), Call::Connect, Some(error));
        match error.get_ref() {
            Some(cause) if cause.is::<GivenUp>() && self.slots.parts_in_order() => {
                attempt.carrier.close();
            }
            Some(cause) if cause.is::<GivenUp>() => attempt.carrier.reset(),
            _ => attempt.carrier.fail(),
        }
        self.slots.fail(index, error_kind(error), warm_up, now_ns);
    }

    /// Holds connections open no longer: the slots of those that were held.
    pub(crate) fn end_holds(&mut self, into: &mut Vec<usize>) {
        let Self { part, under_way, .. } = self;
        if !part.script.is_timed() {
            return;
        }
        let held = under_way.iter_mut().enumerate().filter_map(|(index, one)| {
            one.as_mut().is_some_and(|one| one.end_hold(part)).then_some(index)
        });
        into.extend(held);
    }

    /// The load's time is up, and what is under way isn't awaited: it counts neither way.
    fn leave_outstanding(&mut self) {
        for attempt in self.under_way.iter_mut().filter_map(Option::take) {
            self.pending -= usize::from(attempt.is_pending);
            attempt.carrier.close();
        }
    }

    /// Whether the load is over; one that is given up cuts off what is under way.
    pub(crate) fn are_over(&mut self, reached: Reached, now_ns: u64) -> bool {
        if reached.phase == Phase::Drained {
            self.leave_outstanding();
            return true;
        }
        if reached.phase == Phase::Abort {
            if self.slots.parts_in_order() {
                self.part_in_order();
            }
            for index in 0..self.under_way.len() {
                self.give_up(index, &GivenUp.into(), now_ns);
            }
            return true;
        }
        self.slots.are_done(reached, now_ns)
    }

    /// Says on each connection that nothing more is sent, and reads what still comes for a short time: the kernel resets
    /// a connection that is closed with bytes unread.
    fn part_in_order(&mut self) {
        let mut into = vec![0; DISCARDED_AT_ONCE_BYTES];
        let script = &self.part.script;
        let mut parting: Vec<&mut Attempt<C>> = Vec::new();
        for (index, attempt) in self.under_way.iter_mut().enumerate() {
            let Some(attempt) = attempt else { continue };
            let unacknowledged_bytes = attempt.carrier.unacknowledged_bytes();
            script.record_unacknowledged(self.slots.tally(index), unacknowledged_bytes);
            parting.push(attempt);
        }
        for attempt in &mut parting {
            // One that the peer has reset is over.
            let _reset = attempt.carrier.finish_sending();
        }
        let until_ns = monotonic_ns().saturating_add(PARTING_NS);
        while !parting.is_empty() && monotonic_ns() < until_ns {
            parting.retain_mut(|attempt| !has_finished(&mut attempt.carrier, &mut into));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends connections that take too long, and pauses that have been long enough.
    pub(crate) fn sweep(&mut self, now_ns: u64) {
        self.slots.end_pauses(now_ns);
        let Some(oldest_ns) = self.slots.oldest_begin(now_ns) else { return };
        let times_silence = self.slots.times_silence() || !self.part.script.is_plain();
        for index in 0..self.under_way.len() {
            let Some(Some(attempt)) = self.under_way.get_mut(index) else { continue };
            let since_ns = match times_silence {
                true => attempt.silent_since_ns(now_ns),
                false => attempt.times.began_ns,
            };
            if since_ns < oldest_ns {
                self.give_up(index, &io::ErrorKind::TimedOut.into(), now_ns);
            }
        }
    }
}
