//! The slots of a shard's connections that come and go: which are free, when the next connection is
//! due, and what came of each. When one is closed, the next takes its slot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use linerate_measure::Handshake;
use linerate_measure::report::{Handshakes, SocketFacts};
use linerate_measure::step::{Churn, StepEnd};
use socket2::Socket;

use super::LONGEST_WAIT_NS;
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::{Ending, FlowShared, Local};
use crate::phase::{Phase, Reached};
use crate::socket::segment_bytes;
use crate::tally::Tally;
use crate::timetable::Timetable;

/// The shortest time between two sweeps, and how much longer the time is for each slot: a sweep looks at all of them.
const SWEEP_NS: u64 = LONGEST_WAIT_NS;
const SWEEP_NS_PER_SLOT: u64 = 20_000;

/// After a connection that couldn't be made, this long none is begun in its slot.
const PAUSE_NS: u64 = MILLISECOND_NS;

/// The kind of error of a connection that agreed on its keys in another way than was asked for.
const NOT_RESUMED: &str = "not_resumed";

/// How a load's connections are to agree on their keys.
///
/// A connection that resumes takes a ticket and brings another, so a load has enough when as many
/// connections as it has slots were made in full, only to be resumed: the forerunners. All shards
/// of a load take their tickets from one stock, and so share the count of forerunners to come.
#[derive(Clone)]
pub(crate) struct Agreement {
    wanted: Handshake,
    slots: u32,
    forerunners: Arc<AtomicU32>,
}

impl Agreement {
    /// That of a load with so many slots.
    pub(crate) fn new(wanted: Handshake, slots: u32) -> Self {
        Self { wanted, slots, forerunners: Arc::new(AtomicU32::new(slots)) }
    }

    pub(crate) fn wanted(&self) -> Handshake {
        self.wanted
    }

    /// Whether one more may be.
    fn take_forerunner(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.forerunners.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// A connection that failed may have taken a ticket, and brought none.
    fn give_forerunner(&self) {
        let more = |left: u32| (left < self.slots).then_some(left + 1);
        let _all_are_there =
            self.forerunners.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// What a dialect's connections have of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// Whether another connection makes up for one that failed where their number is limited.
    pub(crate) makes_up: bool,
    /// Whether a connection may take its time as long as something moves on it.
    pub(crate) times_silence: bool,
    /// Whether the segment size of the first connection is told.
    pub(crate) tells_segments: bool,
    /// How many connections may be under way over which nothing has come; absent: as many as do well.
    pub(crate) most_pending: Option<usize>,
    /// Whether what is under way when the load is ended at once is closed in order, and not by a reset.
    pub(crate) parts_in_order: bool,
}

/// One slot for a connection.
struct ConnectionSlot {
    shared: Arc<FlowShared>,
    facts: Option<Box<SlotFacts>>,
}

/// What few slots have.
#[derive(Default)]
struct SlotFacts {
    errors: BTreeMap<&'static str, u64>,
    handshakes: Handshakes,
    /// What is told of the sockets of all its connections.
    socket: Option<Box<SocketFacts>>,
}

impl ConnectionSlot {
    fn facts(&mut self) -> &mut SlotFacts {
        self.facts.get_or_insert_default()
    }
}

/// The slots of one shard.
pub(crate) struct Slots {
    slots: Vec<ConnectionSlot>,
    /// Slots without a connection.
    idle: Vec<usize>,
    rules: Rules,
    /// Idle slots that pause after a failure, and until when.
    pausing: Vec<(usize, u64)>,
    timetable: Option<Timetable>,
    /// How connections are to agree on their keys, where they have any.
    agreement: Option<Agreement>,
    timeout_ns: u64,
    /// Connections that may still be begun.
    left: u64,
    /// When the load ends, as far as is known.
    ends_ns: u64,
    /// When the measured part began, once that was seen.
    measured_from_ns: Option<u64>,
    /// Connections of the measured part that were taken, and after all never begun.
    withdrawn: u64,
    /// Connections that were due and never begun, once that is counted.
    never_begun: Option<u64>,
    next_sweep_ns: u64,
}

/// The next connection to begin.
pub(crate) struct Due {
    pub(crate) index: usize,
    /// When it is due by the schedule; `None` without one: from when it begins.
    pub(crate) scheduled_ns: Option<u64>,
    pub(crate) warm_up: bool,
}

/// When the parts of a connection were done, 0 where they aren't; on the monotonic clock.
#[derive(Clone, Copy, Default)]
pub(crate) struct Milestones {
    pub(crate) due_ns: u64,
    pub(crate) began_ns: u64,
    pub(crate) established_ns: u64,
    pub(crate) first_byte_ns: u64,
    pub(crate) closed_ns: u64,
    /// When it was closed, where it was held open from `closed_ns` on; 0: it wasn't.
    pub(crate) released_ns: u64,
    pub(crate) warm_up: bool,
    /// How it agreed on its keys, where it has any.
    pub(crate) handshake: Option<Handshake>,
}

impl Slots {
    /// One slot for each flow, for what all of them do together: whichever slot is free takes the next connection.
    pub(crate) fn new(churn: &Churn, flows: Vec<Arc<FlowShared>>) -> Self {
        Self {
            idle: (0..flows.len()).rev().collect(),
            rules: Rules::default(),
            slots: flows.into_iter().map(|shared| ConnectionSlot { shared, facts: None }).collect(),
            pausing: Vec::new(),
            timetable: churn.schedule.as_ref().map(Timetable::new),
            agreement: None,
            timeout_ns: churn.timeout_ns,
            left: match churn.end {
                StepEnd::Count { count } => count,
                _ => u64::MAX,
            },
            ends_ns: u64::MAX,
            measured_from_ns: None,
            withdrawn: 0,
            never_begun: None,
            next_sweep_ns: 0,
        }
    }

    /// The same under a dialect's rules.
    pub(crate) fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether a connection may take its time as long as something moves on it.
    pub(super) fn times_silence(&self) -> bool {
        self.rules.times_silence
    }

    /// Whether what is under way when the load is ended at once is closed in order.
    pub(super) fn parts_in_order(&self) -> bool {
        self.rules.parts_in_order
    }

    /// The counts of one slot.
    pub(crate) fn tally(&self, index: usize) -> &Tally {
        &self.slots[index].shared.tally
    }

    pub(crate) fn set_ready(&self, local: &Local) {
        self.slots.iter().for_each(|slot| slot.shared.set_ready(local));
    }

    /// Whether nothing is left to begin, nor under way. What a stop cuts off the schedule is counted
    /// here.
    pub(crate) fn are_done(&mut self, reached: Reached, now_ns: u64) -> bool {
        let stopped = reached.phase >= Phase::Stop || self.left == 0;
        let under_way = self.slots.len() - self.idle.len() - self.pausing.len();
        if stopped {
            self.count_never_begun(now_ns.min(reached.ends_ns));
        }
        stopped && under_way == 0
    }

    /// Counts what was due and never begun, once.
    fn count_never_begun(&mut self, now_ns: u64) {
        let Some(mut timetable) = self.timetable.take() else { return };
        // What was due in the warm-up belongs to it.
        let measured_from_ns = self.measured_from_ns.unwrap_or(now_ns);
        let before = timetable.take_due_before(measured_from_ns, self.left);
        let left = self.left.saturating_sub(before);
        self.never_begun = Some(timetable.take_due_before(now_ns, left));
    }

    /// A turn of the loop in which connections may begin.
    pub(crate) fn open_turn(&mut self, reached: Reached) {
        if reached.phase == Phase::Measure {
            self.measured_from_ns.get_or_insert(reached.measuring_ns);
        }
        self.ends_ns = reached.ends_ns;
        if let Some(timetable) = &mut self.timetable {
            timetable.begin(reached.opened_ns);
        }
    }

    /// Takes the next connection that is due, if there is a slot for it.
    pub(crate) fn take_due(&mut self) -> Option<Due> {
        if self.left == 0 {
            return None;
        }
        let &index = self.idle.last()?;
        let now_ns = monotonic_ns();
        let scheduled_ns = self.timetable.as_ref().map(Timetable::due_ns);
        let due_ns = scheduled_ns.unwrap_or(now_ns);
        if due_ns > now_ns || due_ns >= self.ends_ns {
            return None;
        }
        if let Some(timetable) = &mut self.timetable {
            timetable.take();
        }
        self.idle.pop();
        self.left = self.left.saturating_sub(1);
        let warm_up = self.measured_from_ns.is_none_or(|from_ns| due_ns < from_ns);
        Some(Due { index, scheduled_ns, warm_up })
    }

    /// A connection that was taken is not begun.
    pub(crate) fn withdraw(&mut self, due: &Due) {
        self.idle.push(due.index);
        self.left = self.left.saturating_add(1);
        self.withdrawn += u64::from(due.scheduled_ns.is_some() && !due.warm_up);
    }

    /// Whether the slot is the next to be taken.
    pub(crate) fn is_next(&self, index: usize) -> bool {
        self.idle.last() == Some(&index)
    }

    /// The first packet of a slot's first connection leaves.
    pub(crate) fn note_first(&self, index: usize, began_ns: u64) {
        let first_ns = &self.slots[index].shared.tally.first_ns;
        if first_ns.value() == 0 {
            first_ns.set(began_ns);
        }
    }

    /// Has it counted how connections agree on their keys.
    pub(crate) fn count_handshakes(&mut self, agreement: Agreement) {
        self.agreement = Some(agreement);
    }

    /// Notes what is told of a slot's sockets; its connection is about to be closed.
    #[inline]
    pub(crate) fn see(&mut self, index: usize, socket: &Socket) {
        if self.rules.tells_segments {
            self.slots[index].facts().socket.get_or_insert_with(|| {
                Box::new(SocketFacts { mss_bytes: segment_bytes(socket), ..SocketFacts::default() })
            });
        }
    }

    /// The connection of a slot came to its end.
    pub(crate) fn finish(&mut self, index: usize, times: &Milestones, local: &mut Local) {
        let slot = &mut self.slots[index];
        if let (Some(handshake), Some(agreement)) = (times.handshake, &self.agreement) {
            if handshake != agreement.wanted {
                if agreement.take_forerunner() {
                    // It had nothing to resume, and is there to be resumed: it doesn't count.
                    self.left = self.left.saturating_add(1);
                    return self.idle.push(index);
                }
                return self.fail(index, NOT_RESUMED, times.warm_up, times.closed_ns);
            }
            if !times.warm_up {
                slot.facts().handshakes.record(handshake);
            }
        }
        let tally = &self.slots[index].shared.tally;
        let latency_ns = times.closed_ns.saturating_sub(times.due_ns);
        tally.record_transaction(latency_ns, times.warm_up);
        tally.last_ns.set(times.closed_ns.max(times.released_ns));
        self.idle.push(index);
        if times.warm_up {
            return;
        }
        let latencies = &mut local.latencies;
        latencies.record_total_ns(latency_ns);
        let parts = [
            (&mut latencies.service, times.closed_ns),
            (&mut latencies.establishment, times.established_ns),
            (&mut latencies.first_byte, times.first_byte_ns),
        ];
        for (histogram, at_ns) in parts {
            // Of a connection over which nothing came there is no first byte.
            if let Some(histogram) = histogram.as_mut().filter(|_| at_ns > 0) {
                histogram.record_ns(at_ns.saturating_sub(times.began_ns));
            }
        }
    }

    /// The connection of a slot came to nothing.
    pub(crate) fn fail(&mut self, index: usize, kind: &'static str, warm_up: bool, now_ns: u64) {
        let slot = &mut self.slots[index];
        if !warm_up {
            *slot.facts().errors.entry(kind).or_insert(0) += 1;
        }
        self.left = self.left.saturating_add(u64::from(self.rules.makes_up));
        slot.shared.tally.last_ns.set(now_ns);
        if let Some(agreement) = self.agreement.as_ref().filter(|_| kind != NOT_RESUMED) {
            agreement.give_forerunner();
        }
        self.pausing.push((index, now_ns + PAUSE_NS));
    }

    /// Ends pauses that have been long enough.
    pub(crate) fn end_pauses(&mut self, now_ns: u64) {
        let idle = &mut self.idle;
        self.pausing.retain(|(index, until_ns)| {
            let pauses = *until_ns > now_ns;
            if !pauses {
                idle.push(*index);
            }
            pauses
        });
    }

    /// Now and then: the time before which connections under way must have begun.
    pub(crate) fn oldest_begin(&mut self, now_ns: u64) -> Option<u64> {
        if now_ns < self.next_sweep_ns {
            return None;
        }
        self.next_sweep_ns = now_ns + SWEEP_NS + SWEEP_NS_PER_SLOT * self.slots.len() as u64;
        Some(now_ns.saturating_sub(self.timeout_ns))
    }

    /// How long a loop may sleep while no connection has anything to do.
    pub(crate) fn wait_at_most_ns(&self, phase: Phase) -> u64 {
        if phase == Phase::Hold || phase >= Phase::Stop || self.left == 0 {
            return LONGEST_WAIT_NS;
        }
        let pause_ns = if self.pausing.is_empty() { LONGEST_WAIT_NS } else { PAUSE_NS };
        let due_ns = match (&self.timetable, self.idle.is_empty()) {
            (_, true) => LONGEST_WAIT_NS,
            (None, false) => 0,
            (Some(timetable), false) => timetable.due_ns().saturating_sub(monotonic_ns()),
        };
        pause_ns.min(due_ns)
    }

    /// Tells what came of each.
    pub(crate) fn leave(mut self, now_ns: u64, local: &Local) {
        // A load that is given up was never stopped.
        self.count_never_begun(now_ns);
        let mut never_begun = self.never_begun.map(|count| count.saturating_add(self.withdrawn));
        for slot in self.slots {
            if slot.shared.tally.last_ns.value() == 0 {
                slot.shared.tally.last_ns.set(now_ns);
            }
            // The shard's, and so told once.
            let transactions_unsent = never_begun.take();
            let facts = slot.facts.map(|facts| *facts).unwrap_or_default();
            let ending = Ending {
                errors: facts.errors,
                transactions_unsent,
                handshakes: self.agreement.as_ref().map(|_| facts.handshakes),
                socket: facts.socket,
                ..Ending::default()
            };
            slot.shared.set_ended(ending, local);
        }
    }
}
