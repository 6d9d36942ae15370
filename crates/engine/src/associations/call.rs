//! The client's connections that come and go: each is begun when it is due and seen through.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use linerate_measure::report::Handshakes;
use linerate_measure::{Handshake, Workload};
use linerate_wire::native::opening::{OPENING_BYTES, Opening};
use linerate_wire::step::{Connection, Schedule, Step, StepEnd};
use socket2::Socket;

use super::attempt::{Attempt, Script};
use super::sockets::Place;
use super::{DONE, LONGEST_WAIT, Quic, Side, Sockets};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::load::flow_steps;
use crate::phase::Phase;
use crate::shard::Inlet;
use crate::timetable::Timetable;
use crate::transport::quic::{ClientSide, Event};

/// After a connection that couldn't be made, this long none is begun in its place.
const PAUSE_NS: u64 = MILLISECOND_NS;
/// Time-outs are looked at this often.
const SWEEP_NS: u64 = 10 * MILLISECOND_NS;

/// The part of a load of connections that falls to one shard.
pub(crate) struct Calling {
    pub(crate) quic: Quic,
    pub(crate) workload: Workload,
    pub(crate) flows: Vec<Arc<FlowShared>>,
    /// Which shard this is, of how many.
    pub(crate) shard: (usize, usize),
    pub(crate) inlet: Receiver<Socket>,
}

/// One place for a connection: when one is closed, the next takes its place.
struct Seat {
    shared: Arc<FlowShared>,
    attempt: Option<(Place, Attempt)>,
    errors: BTreeMap<&'static str, u64>,
    handshakes: Handshakes,
    /// Whether it has had a connection that others can resume.
    has_begun: bool,
    free_at_ns: u64,
}

struct Caller {
    client: ClientSide,
    server: std::net::SocketAddr,
    script: Script,
    timeout_ns: u64,
    /// How connections are to agree on their keys.
    handshake: Handshake,
    timetable: Option<Timetable>,
    left: u64,
    seats: Vec<Seat>,
    idle: Vec<usize>,
    pausing: Vec<usize>,
    /// Places whose connection has its response, and waits for the ticket that the next needs.
    parting: Vec<usize>,
    /// Which seat a connection has.
    seat_of: HashMap<Place, usize>,
    measured_from_ns: Option<u64>,
    never_begun: Option<u64>,
    next_sweep_ns: u64,
}

impl Calling {
    /// Runs until the load is stopped and the last connection is closed.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let flows = self.flows.clone();
        let mut sockets = Sockets::new(&self.quic, &self.workload, self.inlet);
        let caller = Caller::new(&self.quic, &self.workload, self.flows, self.shard, local);
        let Some(mut caller) = caller else {
            flows.iter().for_each(|flow| flow.set_ended(Ending::default(), local));
            return;
        };
        let mut events = Vec::new();
        loop {
            if !sockets.take_new(waker).is_empty() {
                flows.iter().for_each(|flow| flow.set_ready(local));
            }
            let more_in = sockets.take_in(&mut events);
            for (place, event) in events.drain(..) {
                caller.handle(place, &event, local);
            }
            caller.part(local);
            let (phase, now_ns) = (local.phase(), monotonic_ns());
            if caller.is_over(phase, now_ns) || sockets.is_released() {
                break;
            }
            if phase > Phase::Hold {
                caller.begin_due(phase, &mut sockets);
                caller.sweep(now_ns);
            }
            let more_out = sockets.send_out(&mut events);
            if !more_in && !more_out && events.is_empty() {
                sockets.wait(caller.wait_at_most(phase), waker);
            }
        }
        caller.leave(local);
        sockets.close();
    }
}

impl Caller {
    /// `None` where the shard has nothing to do.
    fn new(
        quic: &Quic,
        workload: &Workload,
        flows: Vec<Arc<FlowShared>>,
        (shard, _): (usize, usize),
        local: &Local,
    ) -> Option<Self> {
        let Side::Client { server, client } = quic.side.clone() else { return None };
        let steps: Vec<Connection> = flows
            .iter()
            .filter_map(|flow| match flow_steps(workload, flow.number).client.pop() {
                Some(Step::Connect(step)) => Some(step),
                _ => None,
            })
            .collect();
        let step = steps.first()?;
        let opening = Opening { flow: shard as u32, token: quic.token };
        let mut first_bytes = opening.encode().to_vec();
        first_bytes.extend_from_slice(local.pattern.slice(0, step.request_bytes as usize));
        let left = steps.iter().fold(0_u64, |sum, step| match step.end {
            StepEnd::Count { count } => sum.saturating_add(count),
            _ => u64::MAX,
        });
        let schedule = step
            .schedule
            .map(|first| Schedule { per_s: first.per_s * steps.len() as f64, ..first });
        Some(Self {
            client,
            server,
            script: Script { first_bytes, response_bytes: step.response_bytes as usize },
            timeout_ns: step.timeout_ns,
            handshake: workload.quic.handshake,
            timetable: schedule.as_ref().map(Timetable::new),
            left,
            idle: (0..flows.len()).rev().collect(),
            seats: flows
                .into_iter()
                .map(|shared| Seat {
                    shared,
                    attempt: None,
                    errors: BTreeMap::new(),
                    handshakes: Handshakes::default(),
                    has_begun: false,
                    free_at_ns: 0,
                })
                .collect(),
            pausing: Vec::new(),
            parting: Vec::new(),
            seat_of: HashMap::new(),
            measured_from_ns: None,
            never_begun: None,
            next_sweep_ns: 0,
        })
    }

    fn is_over(&mut self, phase: Phase, now_ns: u64) -> bool {
        if phase == Phase::Abort {
            for index in 0..self.seats.len() {
                self.give_up(index, "given_up", now_ns);
            }
            return true;
        }
        let stopped = phase >= Phase::Stop || self.left == 0;
        let under_way = self.seats.len() - self.idle.len() - self.pausing.len();
        if stopped && let Some(mut timetable) = self.timetable.take() {
            // What was due in the warm-up belongs to it.
            let measured_from_ns = self.measured_from_ns.unwrap_or(now_ns);
            let before = timetable.take_due_before(measured_from_ns, self.left);
            let left = self.left.saturating_sub(before);
            self.never_begun = Some(timetable.take_due_before(now_ns, left));
        }
        stopped && under_way == 0
    }

    fn begin_due(&mut self, phase: Phase, sockets: &mut Sockets) {
        if phase >= Phase::Stop {
            return;
        }
        let now_ns = monotonic_ns();
        if phase == Phase::Measure {
            self.measured_from_ns.get_or_insert(now_ns);
        }
        if let Some(timetable) = &mut self.timetable {
            timetable.begin(now_ns);
        }
        while self.left > 0
            && let Some(&index) = self.idle.last()
        {
            let now_ns = monotonic_ns();
            let due_ns = self.timetable.as_ref().map_or(now_ns, Timetable::due_ns);
            if due_ns > now_ns {
                return;
            }
            if let Some(timetable) = &mut self.timetable {
                timetable.take();
            }
            self.idle.pop();
            self.left = self.left.saturating_sub(1);
            let warm_up = self.measured_from_ns.is_none_or(|from_ns| due_ns < from_ns);
            self.begin(index, due_ns, warm_up, sockets);
        }
    }

    fn begin(&mut self, index: usize, due_ns: u64, warm_up: bool, sockets: &mut Sockets) {
        let began_ns = monotonic_ns();
        let made = sockets.get(0).map(|endpoint| {
            let link = endpoint.connect(self.server, "linerate", &self.client)?;
            let gone = || std::io::Error::from(std::io::ErrorKind::NotConnected);
            Ok((link, endpoint.connection(link).cloned().ok_or_else(gone)?))
        });
        let Some(seat) = self.seats.get_mut(index) else { return };
        if seat.shared.tally.first_ns.value() == 0 {
            seat.shared.tally.first_ns.set(began_ns);
        }
        match made {
            Some(Ok((link, connection))) => {
                let place = (0, link);
                let mut attempt = Attempt::new(connection, due_ns, began_ns, warm_up);
                let begun = attempt.begin_early(&self.script, &seat.shared.tally);
                seat.attempt = Some((place, attempt));
                self.seat_of.insert(place, index);
                if let Err(error) = begun {
                    self.give_up(index, error_kind(&error), began_ns);
                }
            }
            Some(Err(error)) => self.fail(index, error_kind(&error), warm_up, began_ns),
            None => self.fail(index, "io", warm_up, began_ns),
        }
    }

    fn handle(&mut self, place: Place, event: &Event, local: &mut Local) {
        let Some(&index) = self.seat_of.get(&place) else { return };
        if let Event::Closed(cause) = event {
            return self.give_up(index, error_kind(&cause.error()), monotonic_ns());
        }
        let Some(seat) = self.seats.get_mut(index) else { return };
        let Some((_, attempt)) = &mut seat.attempt else { return };
        match attempt.handle(event, &self.script, &seat.shared.tally) {
            Ok(false) => {}
            Ok(true) if self.handshake == Handshake::Full => self.finish(index, local),
            Ok(true) => self.parting.push(index),
            Err(error) => self.give_up(index, error_kind(&error), monotonic_ns()),
        }
    }

    /// Sees out connections that have all they came for.
    fn part(&mut self, local: &mut Local) {
        for index in std::mem::take(&mut self.parting) {
            match self.seats.get(index).and_then(|seat| seat.attempt.as_ref()) {
                Some((_, attempt)) if attempt.has_ticket() => self.finish(index, local),
                Some(_) => self.parting.push(index),
                None => {}
            }
        }
    }

    fn take_attempt(&mut self, index: usize) -> Option<Attempt> {
        let (place, attempt) = self.seats.get_mut(index)?.attempt.take()?;
        self.seat_of.remove(&place);
        Some(attempt)
    }

    fn finish(&mut self, index: usize, local: &mut Local) {
        let Some(attempt) = self.take_attempt(index) else { return };
        let handshake = attempt.handshake();
        // What waits for a ticket has been done before.
        let done_ns = attempt.answered_ns;
        attempt.close(DONE);
        let closed_at_ns = if self.handshake == Handshake::Full { monotonic_ns() } else { done_ns };
        let Some(seat) = self.seats.get_mut(index) else { return };
        let is_first = !std::mem::replace(&mut seat.has_begun, true);
        if handshake != self.handshake {
            if is_first {
                // It had nothing to resume, and is there to be resumed: it doesn't count.
                self.left = self.left.saturating_add(1);
                self.idle.push(index);
                return;
            }
            return self.fail(index, "not_resumed", attempt.warm_up, closed_at_ns);
        }
        if !attempt.warm_up {
            seat.handshakes.record(handshake);
        }
        let latency_ns = closed_at_ns.saturating_sub(attempt.due_ns);
        seat.shared.tally.record_transaction(latency_ns, attempt.warm_up);
        seat.shared.tally.last_ns.set(closed_at_ns);
        if !attempt.warm_up {
            let latencies = &mut local.latencies;
            latencies.total.record_ns(latency_ns);
            let since = |at_ns: u64| at_ns.saturating_sub(attempt.began_ns);
            let parts = [
                (&mut latencies.service, since(closed_at_ns)),
                (&mut latencies.establishment, since(attempt.established_ns)),
                (&mut latencies.first_byte, since(attempt.first_byte_ns)),
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
        let Some(attempt) = self.take_attempt(index) else { return };
        attempt.close(DONE);
        self.fail(index, kind, attempt.warm_up, now_ns);
    }

    fn fail(&mut self, index: usize, kind: &'static str, warm_up: bool, now_ns: u64) {
        let Some(seat) = self.seats.get_mut(index) else { return };
        if !warm_up {
            *seat.errors.entry(kind).or_insert(0) += 1;
        }
        seat.shared.tally.last_ns.set(now_ns);
        seat.free_at_ns = now_ns + PAUSE_NS;
        self.pausing.push(index);
    }

    /// Ends connections that take too long, and pauses that have been long enough.
    fn sweep(&mut self, now_ns: u64) {
        let (seats, idle) = (&self.seats, &mut self.idle);
        self.pausing.retain(|index| {
            let pauses = seats.get(*index).is_some_and(|seat| seat.free_at_ns > now_ns);
            if !pauses {
                idle.push(*index);
            }
            pauses
        });
        if now_ns < self.next_sweep_ns {
            return;
        }
        self.next_sweep_ns = now_ns + SWEEP_NS;
        for index in 0..self.seats.len() {
            let begun = self.seats.get(index).and_then(|seat| seat.attempt.as_ref());
            if begun.is_some_and(|(_, attempt)| now_ns > attempt.began_ns + self.timeout_ns) {
                self.give_up(index, "timed_out", now_ns);
            }
        }
    }

    fn wait_at_most(&self, phase: Phase) -> Duration {
        if phase == Phase::Hold || phase >= Phase::Stop || self.left == 0 {
            return LONGEST_WAIT;
        }
        let pause_ns = if self.pausing.is_empty() { SWEEP_NS } else { PAUSE_NS };
        let due_ns = match (&self.timetable, self.idle.is_empty()) {
            (_, true) => SWEEP_NS,
            (None, false) => 0,
            (Some(timetable), false) => timetable.due_ns().saturating_sub(monotonic_ns()),
        };
        Duration::from_nanos(pause_ns.min(due_ns))
    }

    fn leave(self, local: &Local) {
        let now_ns = monotonic_ns();
        let mut never_begun = self.never_begun;
        for seat in self.seats {
            if seat.shared.tally.last_ns.value() == 0 {
                seat.shared.tally.last_ns.set(now_ns);
            }
            // The shard's, and so told once.
            let transactions_unsent = never_begun.take();
            let ending = Ending {
                errors: seat.errors,
                transactions_unsent,
                handshakes: Some(seat.handshakes),
                ..Ending::default()
            };
            seat.shared.set_ended(ending, local);
        }
    }
}

/// Bytes before the request, which are no payload.
pub(super) const NO_PAYLOAD_BYTES: usize = OPENING_BYTES;
