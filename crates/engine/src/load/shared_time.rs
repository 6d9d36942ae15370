//! The time that all flows to this end share, and what arrives in it.
//!
//! Flows end one after the other: what sockets and queues hold when the senders' time is up arrives at the pace of the
//! flows that are left. A total is therefore taken when that time is up, counted from the first byte that arrived, or
//! when the first flow has ended, whichever comes first.

use linerate_measure::report::SharedTime;
use linerate_measure::sample::Role;
use linerate_measure::{Direction, End};

use super::meter::Meter;
use super::{Load, MOST_WATCHED_FLOWS, end};
use crate::clock::MILLISECOND_NS;
use crate::flow::{Base, FlowShared};
use crate::phase::Phase;
use crate::tally::Progress;

/// A shorter time says nothing about a rate.
const SHORTEST_NS: u64 = MILLISECOND_NS;
/// How often a load of many flows is looked at.
const LOOK_NS: u64 = 50 * MILLISECOND_NS;

/// What totals are made of.
#[derive(Debug, Default)]
pub(super) struct TotalsMeter {
    /// When the load's time will be over; 0: nothing has arrived yet.
    due_ns: u64,
    /// When many flows are next looked at.
    next_look_ns: u64,
    taken: Option<SharedTime>,
    is_over: bool,
    /// By a schedule: transactions of the measured part that were done when the load was stopped.
    pub(super) done_at_stop: Option<u64>,
}

impl TotalsMeter {
    /// When the next look is due for certain; `u64::MAX`: not known, or none is.
    pub(super) fn due_ns(&self, now_ns: u64) -> u64 {
        if self.is_over || self.due_ns == 0 { u64::MAX } else { self.due_ns.max(now_ns) }
    }

    /// What was taken; `None`: nothing arrived, or for too short a time.
    pub(super) fn taken(&self) -> Option<SharedTime> {
        self.taken
    }
}

/// What the flows to this end have come to.
#[derive(Debug, Default)]
struct ArrivalTotals {
    /// The first arrival that counts; `None`: there is none.
    from_ns: Option<u64>,
    bytes: u64,
    /// Flows that go on.
    going: usize,
    /// Flows that have ended as they should, and when the last of them did.
    ended: usize,
    last_end_ns: u64,
}

/// Looks whether the time that all flows share is over, and takes what has arrived in it.
pub(super) fn look(load: &mut Load, now_ns: u64) {
    let is_measured = load.phase.current() >= Phase::Measure && !load.meter.measured_nothing();
    let (Some(opened_ns), true) = (load.meter.opened_ns(), is_measured) else { return };
    let is_stream_to_here = load.receives_stream() && !load.is_datagrams();
    let is_early = load.flows.len() > MOST_WATCHED_FLOWS && now_ns < load.meter.totals.next_look_ns;
    if load.meter.totals.is_over || !is_stream_to_here || is_early {
        return;
    }
    let arrived = arrived(load);
    let end = load.workload.end;
    load.meter.totals.take(&arrived, end, opened_ns, now_ns);
}

/// When the first byte that counts arrived at this end.
pub(super) fn first_arrival_ns(load: &Load) -> Option<u64> {
    arrived(load).from_ns
}

fn arrived(load: &Load) -> ArrivalTotals {
    let to_here = if load.role == Role::Client { Direction::Down } else { Direction::Up };
    let mut arrived = ArrivalTotals::default();
    for (index, flow) in load.flows.iter().enumerate() {
        let Some(flow) = flow else { continue };
        if load.workload.flow_direction(flow.number) == to_here {
            let base = end::base_of(load, &load.meter, index, flow);
            arrived.add(&load.meter, flow, &base);
        }
    }
    arrived
}

impl TotalsMeter {
    /// Takes the shared time where it is over.
    fn take(&mut self, arrived: &ArrivalTotals, end: End, opened_ns: u64, now_ns: u64) {
        self.next_look_ns = now_ns.saturating_add(LOOK_NS);
        let Some(from_ns) = arrived.from_ns else { return };
        self.due_ns = match end {
            End::Time { duration_ns } => from_ns.saturating_add(duration_ns),
            End::Bytes { .. } | End::Count { .. } => u64::MAX,
        };
        if self.due_ns > now_ns {
            self.next_look_ns = self.next_look_ns.min(self.due_ns);
            if arrived.ended == 0 {
                return;
            }
        }
        self.is_over = true;
        // Where all have ended, that was everything.
        let to_ns = if arrived.going > 0 { now_ns } else { arrived.last_end_ns };
        if to_ns >= from_ns.saturating_add(SHORTEST_NS) && arrived.bytes > 0 {
            self.taken = Some(SharedTime {
                from_ns: from_ns.saturating_sub(opened_ns),
                to_ns: to_ns.saturating_sub(opened_ns),
                bytes: arrived.bytes,
            });
        }
    }
}

impl ArrivalTotals {
    /// Adds a flow to this end, whose measured part began there.
    fn add(&mut self, meter: &Meter, flow: &FlowShared, base: &Base) {
        let (first_ns, last_ns) = (flow.tally.first_ns.value(), flow.tally.last_ns.value());
        let has_failed = || flow.tally.progress() == Progress::Ended && flow.error().is_some();
        if first_ns > 0 {
            let from_ns = first_ns.max(base.at_ns);
            self.from_ns = Some(self.from_ns.map_or(from_ns, |earliest| earliest.min(from_ns)));
            let bytes = flow.tally.counts().since(&base.counts).received_bytes;
            self.bytes = self.bytes.saturating_add(bytes);
        }
        match last_ns {
            0 if has_failed() => {}
            0 => self.going += 1,
            // It had its only turns in the warm-up.
            last_ns if last_ns < meter.measuring_ns => {}
            last_ns => {
                self.ended += 1;
                self.last_end_ns = self.last_end_ns.max(last_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const OPENED_NS: u64 = 7 * SECOND_NS;

    fn arrived(going: usize, ended: usize, bytes: u64) -> ArrivalTotals {
        let (from_ns, last_end_ns) = (OPENED_NS + SECOND_NS, OPENED_NS + 4 * SECOND_NS);
        ArrivalTotals { from_ns: Some(from_ns), bytes, going, ended, last_end_ns }
    }

    /// What is taken of a load `at_s` seconds after its opening.
    fn taken(end: End, arrived: &ArrivalTotals, at_s: u64) -> Option<SharedTime> {
        let mut totals = TotalsMeter::default();
        totals.take(arrived, end, OPENED_NS, OPENED_NS + at_s * SECOND_NS);
        totals.taken()
    }

    fn shared(to_s: u64, bytes: u64) -> Option<SharedTime> {
        Some(SharedTime { from_ns: SECOND_NS, to_ns: to_s * SECOND_NS, bytes })
    }

    #[test]
    fn a_shared_time_ends_with_the_loads_time_or_with_the_first_flow() {
        let by_time = End::Time { duration_ns: 10 * SECOND_NS };
        // The time counts from the first arrival, a second after the opening.
        assert_eq!(taken(by_time, &arrived(4, 0, 50), 10), None);
        assert_eq!(taken(by_time, &arrived(4, 0, 50), 11), shared(11, 50));
        assert_eq!(taken(by_time, &arrived(3, 1, 50), 5), shared(5, 50));
        assert_eq!(taken(by_time, &arrived(0, 4, 50), 5), shared(4, 50));
        let by_bytes = End::Bytes { bytes: 60 };
        assert_eq!(taken(by_bytes, &arrived(4, 0, 50), 100), None);
        assert_eq!(taken(by_bytes, &arrived(3, 1, 50), 5), shared(5, 50));
        // Nothing arrived.
        assert_eq!(taken(by_time, &ArrivalTotals::default(), 20), None);
    }

    #[test]
    fn a_shared_time_is_taken_once_and_its_end_is_known_before() {
        let mut totals = TotalsMeter::default();
        assert_eq!(totals.due_ns(OPENED_NS), u64::MAX);
        let by_time = End::Time { duration_ns: 10 * SECOND_NS };
        totals.take(&arrived(4, 0, 50), by_time, OPENED_NS, OPENED_NS + 2 * SECOND_NS);
        assert_eq!(totals.due_ns(OPENED_NS), OPENED_NS + 11 * SECOND_NS);
        totals.take(&arrived(4, 0, 50), by_time, OPENED_NS, OPENED_NS + 11 * SECOND_NS);
        assert_eq!((totals.taken(), totals.due_ns(OPENED_NS)), (shared(11, 50), u64::MAX));
    }
}
