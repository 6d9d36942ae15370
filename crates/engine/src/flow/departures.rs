//! Which requests are to leave, and when.

use linerate_measure::step::{Exchange, StepEnd};

use crate::phase::{Phase, Reached};
use crate::tally::Tally;
use crate::timetable::Timetable;

/// The requests of a flow that haven't left yet.
///
/// 1. By a schedule each is due at its own time, otherwise as soon as there is room for it.
/// 2. A request belongs to the warm-up if it was due in it, whenever it leaves.
/// 3. A schedule begins when the load is opened and ends when it is stopped, however late the flow sees either:
///    of thousands of flows some do.
/// 4. When the load stops, those are counted that were due in the measured part and never left:
///    together with those that did, they are all that were due. So it is where the flow ends before.
#[derive(Clone)]
pub(crate) struct Departures {
    timetable: Option<Timetable>,
    left: u64,
    /// When the measured part began; `u64::MAX`: not yet.
    measured_from_ns: u64,
    /// When the load ends; `u64::MAX`: unknown.
    ends_ns: u64,
    stopped: bool,
    never_sent: u64,
}

impl Departures {
    pub(super) fn new(step: &Exchange) -> Self {
        Self {
            timetable: step.schedule.as_ref().map(Timetable::new),
            left: match step.end {
                StepEnd::Count { count } => count,
                _ => u64::MAX,
            },
            measured_from_ns: u64::MAX,
            ends_ns: u64::MAX,
            stopped: false,
            never_sent: 0,
        }
    }

    /// Whether requests may leave as far as the load has come.
    #[inline]
    pub(super) fn go_on(&mut self, reached: Reached, now_ns: u64, tally: &Tally) -> bool {
        self.measured_from_ns = reached.measuring_ns;
        self.ends_ns = reached.ends_ns;
        if reached.phase >= Phase::Stop || self.left == 0 {
            self.stop(now_ns.min(reached.ends_ns));
            return false;
        }
        if tally.first_ns.value() == 0 {
            tally.first_ns.set(now_ns);
        }
        if let Some(timetable) = &mut self.timetable {
            timetable.begin(reached.opened_ns);
        }
        true
    }

    /// When the next request was due, if it may leave by now.
    #[inline]
    pub(super) fn due_by(&self, now_ns: u64) -> Option<u64> {
        let due_ns = self.timetable.as_ref().map_or(now_ns, Timetable::due_ns);
        (self.left > 0 && due_ns <= now_ns && due_ns < self.ends_ns).then_some(due_ns)
    }

    /// The next request leaves.
    #[inline]
    pub(super) fn take(&mut self) {
        self.left -= 1;
        if let Some(timetable) = &mut self.timetable {
            timetable.take();
        }
    }

    /// Whether a request that was due at this time belongs to the warm-up.
    #[inline]
    pub(super) fn is_warm_up(&self, due_ns: u64) -> bool {
        due_ns < self.measured_from_ns
    }

    #[inline]
    pub(super) fn is_scheduled(&self) -> bool {
        self.timetable.is_some()
    }

    /// Requests of the measured part that were taken, and after all never left.
    pub(super) fn withdraw(&mut self, requests: u64) {
        self.never_sent += requests;
    }

    fn stop(&mut self, now_ns: u64) {
        if self.stopped {
            return;
        }
        self.stopped = true;
        let Some(timetable) = &mut self.timetable else { return };
        let of_warm_up = timetable.take_due_before(self.measured_from_ns.min(now_ns), self.left);
        self.never_sent += timetable.take_due_before(now_ns, self.left - of_warm_up);
    }

    pub(super) fn are_over(&self) -> bool {
        self.stopped
    }

    /// For a flow that ends: what tells the requests that never left; `None` without a schedule.
    pub(super) fn left_behind(&self) -> Option<Box<Self>> {
        self.is_scheduled().then(|| Box::new(self.clone()))
    }

    /// Requests that were due and never left, of a load whose measured part began and stopped then.
    pub(crate) fn never_sent(mut self, measuring_ns: u64, stopped_ns: u64) -> u64 {
        self.measured_from_ns = self.measured_from_ns.min(measuring_ns);
        if !self.stopped
            && let Some(timetable) = &mut self.timetable
        {
            // There may be many such flows.
            timetable.go_on_in_mean();
        }
        self.stop(stopped_ns);
        self.never_sent
    }

    /// When the next request is due; `None` without a schedule, and where none will leave.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        let timetable = self.timetable.as_ref().filter(|_| !self.stopped && self.left > 0)?;
        Some(timetable.due_ns()).filter(|due_ns| *due_ns < self.ends_ns)
    }
}

#[cfg(test)]
mod tests {
    use linerate_measure::Arrivals;
    use linerate_measure::step::{Content, FlowSchedule, Framing};

    use super::*;

    fn reached(phase: Phase, measuring_ns: u64, ends_ns: u64) -> Reached {
        Reached { phase, opened_ns: 1, measuring_ns, ends_ns }
    }

    const WARM_UP: Reached =
        Reached { phase: Phase::WarmUp, opened_ns: 1, measuring_ns: u64::MAX, ends_ns: u64::MAX };

    fn departures(per_s: f64, end: StepEnd) -> Departures {
        Departures::new(&Exchange {
            end,
            request_bytes: 1,
            response_bytes: 1,
            outstanding: 1,
            schedule: Some(FlowSchedule { per_s, arrivals: Arrivals::Even, seed: 0, first_ns: 0 }),
            timeout_ns: None,
            content: Content::Filler,
            framing: Framing::None,
        })
    }

    #[test]
    fn sent_and_unsent_requests_add_up_to_those_due() {
        let mut departures = departures(1000.0, StepEnd::Peer);
        let tally = Tally::default();
        assert!(departures.go_on(reached(Phase::Measure, 1, u64::MAX), 7_000_000, &tally));
        let mut left = 0;
        while departures.due_by(40_000_001).is_some() && left < 17 {
            departures.take();
            left += 1;
        }
        assert!(!departures.go_on(reached(Phase::Stop, 1, 100_000_001), 130_000_000, &tally));
        assert_eq!((left, departures.clone().never_sent(1, 200_000_001)), (17, 83));
        assert_eq!((departures.next_due_ns(), departures.are_over()), (None, true));
    }

    #[test]
    fn requests_due_in_the_warm_up_are_not_counted() {
        let mut departures = departures(1000.0, StepEnd::Peer);
        let tally = Tally::default();
        assert!(departures.go_on(WARM_UP, 1, &tally));
        assert!(departures.go_on(
            reached(Phase::Measure, 50_000_001, u64::MAX),
            52_000_000,
            &tally
        ));
        assert!(departures.is_warm_up(50_000_000) && !departures.is_warm_up(50_000_001));
        assert!(!departures.go_on(
            reached(Phase::Stop, 50_000_001, 60_000_001),
            61_000_000,
            &tally
        ));
        assert_eq!(departures.never_sent(50_000_001, 60_000_001), 10);
    }

    #[test]
    fn requests_due_after_a_flow_broke_are_counted() {
        let mut broken = departures(1000.0, StepEnd::Peer);
        let tally = Tally::default();
        assert!(broken.go_on(WARM_UP, 1, &tally));
        for _ in 0..30 {
            broken.take();
        }
        let left = broken.left_behind().unwrap();
        // The warm-up took 50 ms of the load's 100.
        assert_eq!(left.never_sent(50_000_001, 100_000_001), 50);
        assert!(broken.go_on(reached(Phase::Measure, 50_000_001, u64::MAX), 52_000_000, &tally));
        for _ in 0..40 {
            broken.take();
        }
        assert_eq!(broken.left_behind().unwrap().never_sent(50_000_001, 100_000_001), 30);
    }

    #[test]
    fn a_count_is_never_surpassed() {
        let mut departures = departures(1000.0, StepEnd::Count { count: 3 });
        let tally = Tally::default();
        assert!(departures.go_on(reached(Phase::Measure, 1, u64::MAX), 1, &tally));
        let mut left = 0;
        while departures.due_by(1_000_000_000).is_some() {
            departures.take();
            left += 1;
        }
        assert!(!departures.go_on(reached(Phase::Measure, 1, u64::MAX), 1_000_000_000, &tally));
        assert_eq!((left, departures.never_sent(1, 2_000_000_000)), (3, 0));
    }
}
