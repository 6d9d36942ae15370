//! Many requests on their way at once over a stream, and requests that keep to a schedule.

use std::collections::VecDeque;
use std::io;

use linerate_measure::step::Exchange;

use super::departures::Departures;
use super::failure::EarlyResponse;
use super::{Calls, Local, Sending, Stage, Turn};
use crate::clock::monotonic_ns;
use crate::phase::{Phase, Reached};
use crate::tally::Tally;
use crate::transport::ByteStream;

/// Sends before the responses that have come are taken.
const SENDS_PER_ROUND: u32 = 4;

/// Sends requests as long as there is room for more on their way, each when it is due, and takes
/// their responses in order.
///
/// 1. By a schedule, a request counts from the moment when it was due, however late it could be
///    sent; what it took from the moment when its first byte was handed to the system is recorded
///    beside it.
/// 2. A request that is due while no more may be on their way waits, and is sent as soon as one of
///    them is answered.
/// 3. When the load stops, what was due and of which no byte was sent is counted, and what was
///    sent is awaited.
/// 4. A load that is drained awaits nothing: what is on its way then counts neither way.
/// 5. A response before its whole request has been sent is none, and ends the flow.
pub(crate) struct Pipeline {
    request_bytes: usize,
    response_bytes: usize,
    outstanding: usize,
    departures: Departures,
    unsent_bytes: usize,
    /// Bytes of the oldest response that have come.
    received_bytes: usize,
    on_their_way: VecDeque<Request>,
}

/// A request that awaits its response.
struct Request {
    due_ns: u64,
    /// When its first byte was sent.
    sent_ns: u64,
    warm_up: bool,
}

impl Pipeline {
    pub(crate) fn new(step: &Exchange) -> Self {
        Self {
            request_bytes: step.request_bytes as usize,
            response_bytes: step.response_bytes as usize,
            outstanding: step.outstanding as usize,
            departures: Departures::new(step),
            unsent_bytes: 0,
            received_bytes: 0,
            on_their_way: VecDeque::new(),
        }
    }

    /// Whether a step needs this rather than the plain way, one request after the other.
    pub(crate) fn serves(step: &Exchange) -> bool {
        step.outstanding > 1 || step.schedule.is_some()
    }

    /// What tells the requests that were due and never sent; `None` without a schedule.
    pub(crate) fn left_behind(&self) -> Option<Box<Departures>> {
        self.departures.left_behind()
    }

    /// Requests whose response hasn't come; `None` where there are none.
    pub(crate) fn unanswered(&self) -> Option<u64> {
        let unanswered = self.on_their_way.iter().filter(|request| !request.warm_up).count();
        (unanswered > 0).then_some(unanswered as u64)
    }

    pub(crate) fn turn<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        let mut calls = Calls::of_turn(local);
        while calls.take(local) {
            if local.phase() == Phase::Drained {
                self.on_their_way.clear();
                tally.last_ns.set(local.reached().ends_ns.min(monotonic_ns()));
                return Ok(Stage::Over);
            }
            let drained = self.receive(stream, tally, local)?;
            let reached = local.reached();
            if reached.phase == Phase::Hold {
                return Ok(Stage::Goes(Turn::Held));
            }
            let now_ns = monotonic_ns();
            self.begin_due(now_ns, reached, tally);
            let sending = self.send(stream, now_ns, tally, local)?;
            if self.departures.are_over()
                && sending == Sending::Done
                && self.on_their_way.is_empty()
            {
                tally.last_ns.set(monotonic_ns());
                return Ok(Stage::Over);
            }
            if drained && sending != Sending::More {
                return Ok(Stage::Goes(Turn::Wait { until_ns: self.next_due_ns() }));
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    /// Begins what is due and has room.
    fn begin_due(&mut self, now_ns: u64, reached: Reached, tally: &Tally) {
        if !self.departures.go_on(reached, now_ns, tally) {
            if reached.phase >= Phase::Stop {
                self.withdraw_unsent();
            }
            return;
        }
        while self.on_their_way.len() < self.outstanding {
            let Some(due_ns) = self.departures.due_by(now_ns) else { return };
            self.departures.take();
            let warm_up = self.departures.is_warm_up(due_ns);
            self.on_their_way.push_back(Request { due_ns, sent_ns: now_ns, warm_up });
            self.unsent_bytes += self.request_bytes;
        }
    }

    /// Requests of which no byte was sent are none.
    fn withdraw_unsent(&mut self) {
        let unsent = self.unsent_bytes / self.request_bytes;
        self.unsent_bytes -= unsent * self.request_bytes;
        for request in self.on_their_way.drain(self.on_their_way.len() - unsent..) {
            self.departures.withdraw(u64::from(!request.warm_up));
        }
    }

    /// Sends what there is, or a part of it.
    fn send<S: ByteStream>(
        &mut self,
        stream: &mut S,
        now_ns: u64,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<Sending> {
        let mut now_ns = now_ns;
        for _ in 0..SENDS_PER_ROUND {
            if self.unsent_bytes == 0 {
                break;
            }
            let length = self.unsent_bytes.min(local.receive_buffer.len());
            match stream.send(local.pattern.slice(0, length)) {
                Ok(sent) => {
                    tally.record_sent(sent);
                    self.record_sent(sent, now_ns);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Sending::Blocked);
                }
                Err(error) => return Err(error),
            }
            if self.unsent_bytes > 0 {
                now_ns = monotonic_ns();
            }
        }
        if self.unsent_bytes > 0 {
            return Ok(Sending::More);
        }
        stream.flush()?;
        Ok(Sending::Done)
    }

    fn record_sent(&mut self, sent: usize, now_ns: u64) {
        let requests = self.on_their_way.len();
        let unbegun_before = self.unsent_bytes / self.request_bytes;
        self.unsent_bytes -= sent;
        let unbegun = self.unsent_bytes / self.request_bytes;
        for request in self.on_their_way.range_mut(requests - unbegun_before..requests - unbegun) {
            request.sent_ns = now_ns;
            if !self.departures.is_scheduled() {
                request.due_ns = now_ns;
            }
        }
    }

    /// Takes what has come; says whether nothing is left to take.
    fn receive<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<bool> {
        if self.on_their_way.is_empty() {
            return Ok(true);
        }
        let length = match stream.receive_in_place(&mut local.receive_buffer, &mut |_| {}) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        };
        tally.record_received(length);
        self.received_bytes += length;
        if self.received_bytes >= self.response_bytes {
            self.record_responses(tally, local)?;
        }
        Ok(S::SHORT_MEANS_EMPTY && length < local.receive_buffer.len())
    }

    /// What is popped here has left whole, so the requests of which bytes are to be sent are always
    /// the last of those on their way.
    fn record_responses(&mut self, tally: &Tally, local: &mut Local) -> io::Result<()> {
        let now_ns = monotonic_ns();
        let unsent = self.unsent_bytes.div_ceil(self.request_bytes);
        while self.received_bytes >= self.response_bytes {
            if self.on_their_way.len() <= unsent {
                return Err(EarlyResponse.into());
            }
            let Some(request) = self.on_their_way.pop_front() else { return Ok(()) };
            self.received_bytes -= self.response_bytes;
            let latency_ns = now_ns.saturating_sub(request.due_ns);
            tally.record_transaction(latency_ns, request.warm_up);
            if !request.warm_up {
                local.latencies.record_ns(latency_ns, now_ns.saturating_sub(request.sent_ns));
            }
        }
        // What is left is a part of the next response, whose request must have left, too.
        if self.received_bytes > 0 && self.on_their_way.len() <= unsent {
            return Err(EarlyResponse.into());
        }
        Ok(())
    }

    /// When the next request is due, if there is room for it.
    fn next_due_ns(&self) -> Option<u64> {
        self.departures.next_due_ns().filter(|_| self.on_their_way.len() < self.outstanding)
    }
}
