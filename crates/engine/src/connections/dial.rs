//! The client's loop: begins connections, each when it is due, and sees them through.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_wire::native::opening::Opening;
use linerate_wire::step::{Connection, Schedule, StepEnd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::source::{Source, kind_of};
use super::worker::{Attempt, Script};
use super::{Dial, LONGEST_WAIT_NS, Poll};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::Phase;
use crate::shard::Inlet;
use crate::timetable::Timetable;

/// After a connection that couldn't be made, this long none is begun in its place.
const PAUSE_NS: u64 = MILLISECOND_NS;

/// The part of a load of connections that falls to one shard.
pub(crate) struct Dialing {
    pub(crate) dial: Dial,
    /// What each of them does; the parts of one load.
    pub(crate) steps: Vec<Connection>,
    pub(crate) flows: Vec<Arc<FlowShared>>,
    /// Which shard this is, of how many.
    pub(crate) shard: (usize, usize),
}

/// One place for a connection: when one is closed, the next takes its place.
struct Place {
    shared: Arc<FlowShared>,
    attempt: Option<Attempt>,
    errors: BTreeMap<&'static str, u64>,
    /// Nothing is begun here before this time.
    free_at_ns: u64,
}

struct Dialer {
    script: Script,
    source: Source,
    timeout_ns: u64,
    timetable: Option<Timetable>,
    left: u64,
    places: Vec<Place>,
    /// Places without a connection.
    idle: Vec<usize>,
    /// Idle places that pause after a failure.
    pausing: Vec<usize>,
    /// When the measured part was first seen to have begun.
    measured_from_ns: Option<u64>,
    /// Connections that were due and never begun, once that is counted.
    never_begun: Option<u64>,
    next_sweep_ns: u64,
}

impl Dialing {
    /// Runs until the load is stopped and the last connection is closed.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let flows = self.flows.clone();
        let (Some(mut poll), Some(mut dialer)) = (Poll::new(waker), Dialer::new(self, local))
        else {
            flows.iter().for_each(|flow| flow.set_ended(Ending::default(), local));
            return;
        };
        dialer.places.iter().for_each(|place| place.shared.set_ready(local));
        let mut ready = Vec::new();
        loop {
            let phase = local.phase();
            let now_ns = monotonic_ns();
            if dialer.is_over(phase, now_ns) {
                return dialer.leave(now_ns, local);
            }
            if phase > Phase::Hold {
                dialer.begin_due(now_ns, phase, &poll, local);
                dialer.sweep(now_ns);
            }
            let at_most_ns = dialer.wait_at_most(phase);
            if dialer.is_alone() {
                dialer.wait_alone(waker, at_most_ns, &mut ready);
            } else {
                poll.wait(at_most_ns);
                poll.take_ready(&mut ready, waker);
            }
            for index in ready.drain(..) {
                dialer.advance(index, &poll, local);
            }
        }
    }
}

impl Dialer {
    /// `None` where the shard has nothing to do.
    fn new(dialing: Dialing, local: &Local) -> Option<Self> {
        let step = dialing.steps.first()?;
        let flow = dialing.flows.first()?.number;
        let mut first_bytes = Opening { flow, token: dialing.dial.token }.encode().to_vec();
        if dialing.dial.tls.is_none() {
            first_bytes.extend_from_slice(local.pattern.slice(0, step.request_bytes as usize));
        }
        let places = dialing.flows.iter().map(|shared| Place {
            shared: Arc::clone(shared),
            attempt: None,
            errors: BTreeMap::new(),
            free_at_ns: 0,
        });
        let left = dialing.steps.iter().fold(0_u64, |sum, step| match step.end {
            StepEnd::Count { count } => sum.saturating_add(count),
            _ => u64::MAX,
        });
        let (shard, shards) = dialing.shard;
        Some(Self {
            script: Script {
                first_bytes,
                request_bytes: step.request_bytes as usize,
                response_bytes: step.response_bytes as usize,
                close: step.close,
                tls: dialing.dial.tls.clone(),
            },
            source: Source::new(&dialing.dial, shard, shards),
            timeout_ns: step.timeout_ns,
            timetable: together(&dialing.steps).as_ref().map(Timetable::new),
            left,
            idle: (0..dialing.flows.len()).rev().collect(),
            places: places.collect(),
            pausing: Vec::new(),
            measured_from_ns: None,
            never_begun: None,
            next_sweep_ns: 0,
        })
    }

    fn is_over(&mut self, phase: Phase, now_ns: u64) -> bool {
        if phase == Phase::Abort {
            for index in 0..self.places.len() {
                self.give_up(index, "given_up", now_ns);
            }
            return true;
        }
        let stopped = phase >= Phase::Stop || self.left == 0;
        let under_way = self.places.len() - self.idle.len() - self.pausing.len();
        if stopped && let Some(mut timetable) = self.timetable.take() {
            // What was due in the warm-up belongs to it.
            let measured_from_ns = self.measured_from_ns.unwrap_or(now_ns);
            let before = timetable.take_due_before(measured_from_ns, self.left);
            let left = self.left.saturating_sub(before);
            self.never_begun = Some(timetable.take_due_before(now_ns, left));
        }
        stopped && under_way == 0
    }

    /// Whether there is one place: then its socket blocks, which is fewer calls than a poll set
    /// takes.
    fn is_alone(&self) -> bool {
        self.places.len() == 1
    }

    /// Waits for the time of the next connection, unless there is one under way.
    fn wait_alone(&self, waker: &Inlet, at_most_ns: u64, ready: &mut Vec<usize>) {
        if self.places.iter().any(|place| place.attempt.is_some()) {
            return ready.push(0);
        }
        if at_most_ns == 0 {
            return;
        }
        let mut polled = [PollFd::new(waker, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: at_most_ns.min(LONGEST_WAIT_NS) as _ };
        // Interrupted by a signal: as if the time were over.
        if poll(&mut polled, Some(&timeout)).unwrap_or(0) > 0 {
            waker.silence();
        }
    }

    fn begin_due(&mut self, now_ns: u64, phase: Phase, poll: &Poll, local: &mut Local) {
        if phase >= Phase::Stop {
            return;
        }
        if phase == Phase::Measure {
            self.measured_from_ns.get_or_insert(now_ns);
        }
        if let Some(timetable) = &mut self.timetable {
            timetable.begin(now_ns);
        }
        while self.left > 0
            && let Some(&index) = self.idle.last()
        {
            let due_ns = self.timetable.as_ref().map_or_else(monotonic_ns, Timetable::due_ns);
            if self.timetable.is_some() && due_ns > monotonic_ns() {
                return;
            }
            if let Some(timetable) = &mut self.timetable {
                timetable.take();
            }
            self.idle.pop();
            self.left = self.left.saturating_sub(1);
            let warm_up = self.measured_from_ns.is_none_or(|from_ns| due_ns < from_ns);
            self.begin(index, due_ns, warm_up, poll, local);
            // A place that is free again at once gets its next turn after a look at the phase.
            if self.idle.last() == Some(&index) {
                return;
            }
        }
    }

    fn begin(&mut self, index: usize, due_ns: u64, warm_up: bool, poll: &Poll, local: &mut Local) {
        let alone = self.is_alone();
        let place = &mut self.places[index];
        let blocks_for = alone.then_some(Duration::from_nanos(LONGEST_WAIT_NS));
        match self.source.connect(blocks_for) {
            Ok(dialed) => {
                if place.shared.tally.first_ns.value() == 0 {
                    place.shared.tally.first_ns.set(dialed.began_ns);
                }
                place.attempt = Some(Attempt::new(dialed, alone, due_ns, warm_up));
                self.advance(index, poll, local);
            }
            Err(error) => self.fail(index, kind_of(&error), warm_up, monotonic_ns()),
        }
    }

    fn advance(&mut self, index: usize, poll: &Poll, local: &mut Local) {
        let alone = self.is_alone();
        let Some(place) = self.places.get_mut(index) else { return };
        let Some(attempt) = &mut place.attempt else { return };
        match attempt.advance(&self.script, &place.shared.tally, local) {
            Ok(Some(interest)) => {
                if alone || poll.watch(attempt.carrier().as_fd(), index, attempt.watched, interest)
                {
                    attempt.watched = Some(interest);
                } else {
                    self.give_up(index, "io", monotonic_ns());
                }
            }
            Ok(None) => self.finish(index, local),
            Err(error) => self.give_up(index, error_kind(&error), monotonic_ns()),
        }
    }

    fn finish(&mut self, index: usize, local: &mut Local) {
        let place = &mut self.places[index];
        let Some(attempt) = place.attempt.take() else { return };
        let (due_ns, began_ns, warm_up) = (attempt.due_ns, attempt.began_ns, attempt.warm_up);
        let times = attempt.close(self.script.close);
        let latency_ns = times.closed_at_ns.saturating_sub(due_ns);
        place.shared.tally.record_transaction(latency_ns, warm_up);
        place.shared.tally.last_ns.set(times.closed_at_ns);
        if !warm_up {
            let latencies = &mut local.latencies;
            latencies.total.record_ns(latency_ns);
            let parts = [
                (&mut latencies.service, times.closed_at_ns.saturating_sub(began_ns)),
                (&mut latencies.establishment, times.establishment_ns),
                (&mut latencies.first_byte, times.first_byte_ns),
            ];
            for (histogram, time_ns) in parts {
                if let Some(histogram) = histogram {
                    histogram.record_ns(time_ns);
                }
            }
        }
        self.idle.push(index);
    }

    /// A connection under way comes to nothing.
    fn give_up(&mut self, index: usize, kind: &'static str, now_ns: u64) {
        let place = &mut self.places[index];
        let Some(attempt) = place.attempt.take() else { return };
        let warm_up = attempt.warm_up;
        attempt.abandon();
        self.fail(index, kind, warm_up, now_ns);
    }

    fn fail(&mut self, index: usize, kind: &'static str, warm_up: bool, now_ns: u64) {
        let place = &mut self.places[index];
        if !warm_up {
            *place.errors.entry(kind).or_insert(0) += 1;
        }
        place.shared.tally.last_ns.set(now_ns);
        place.free_at_ns = now_ns + PAUSE_NS;
        self.pausing.push(index);
    }

    /// Ends connections that take too long, and pauses that have been long enough.
    fn sweep(&mut self, now_ns: u64) {
        let (places, idle) = (&mut self.places, &mut self.idle);
        self.pausing.retain(|index| {
            let pauses = places[*index].free_at_ns > now_ns;
            if !pauses {
                idle.push(*index);
            }
            pauses
        });
        if now_ns < self.next_sweep_ns {
            return;
        }
        self.next_sweep_ns = now_ns + LONGEST_WAIT_NS;
        for index in 0..self.places.len() {
            let overdue = |attempt: &Attempt| now_ns > attempt.began_ns + self.timeout_ns;
            if self.places[index].attempt.as_ref().is_some_and(overdue) {
                self.give_up(index, "timed_out", now_ns);
            }
        }
    }

    fn wait_at_most(&self, phase: Phase) -> u64 {
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

    fn leave(self, now_ns: u64, local: &Local) {
        let mut never_begun = self.never_begun;
        for place in self.places {
            if place.shared.tally.last_ns.value() == 0 {
                place.shared.tally.last_ns.set(now_ns);
            }
            // The shard's, and so told once.
            let transactions_unsent = never_begun.take();
            let ending = Ending { errors: place.errors, transactions_unsent, ..Ending::default() };
            place.shared.set_ended(ending, local);
        }
    }
}

/// The schedule of all connections of a shard together: whichever place is free takes the next.
fn together(steps: &[Connection]) -> Option<Schedule> {
    let first = steps.first()?.schedule?;
    Some(Schedule { per_s: first.per_s * steps.len() as f64, ..first })
}
