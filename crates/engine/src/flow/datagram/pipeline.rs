//! Many requests on their way at once as datagrams, and requests that keep to a schedule.

use std::collections::VecDeque;
use std::io;

use linerate_measure::step::Exchange;

use super::flush;
use super::requests::Requests;
use crate::clock::monotonic_ns;
use crate::flow::departures::Departures;
use crate::flow::{CALLS_PER_TURN, Ending, Local, Sending, Stage, Turn};
use crate::phase::{Phase, Reached};
use crate::tally::Tally;
use crate::transport::DatagramPath;

/// Requests that are remembered, the answered ones behind one that isn't included: an answer that
/// is never to come holds up a flow that is so far ahead of it, and no memory grows without end.
const MOST_REMEMBERED: usize = 1 << 20;

/// Sends requests as long as there is room for more on their way, each when it is due, and takes
/// their responses in any order.
///
/// The rules are those of [`Pipeline`](crate::flow::pipeline::Pipeline), and one more: a request
/// whose response hasn't come in time is lost, and makes room.
pub(crate) struct DatagramPipeline<R> {
    requests_of: R,
    request: Vec<u8>,
    outstanding: usize,
    departures: Departures,
    timeout_ns: u64,
    /// The sequence number of the oldest request that is remembered.
    oldest_seq: u64,
    requests: VecDeque<Request>,
    /// Those of them that haven't been answered.
    unanswered: usize,
    lost: u64,
}

/// A request that was sent.
struct Request {
    due_ns: u64,
    sent_ns: u64,
    warm_up: bool,
    answered: bool,
}

impl<R: Requests> DatagramPipeline<R> {
    pub(super) fn new(requests_of: R, step: &Exchange) -> Self {
        Self {
            request: requests_of.blank(step.request_bytes as usize),
            requests_of,
            outstanding: step.outstanding as usize,
            departures: Departures::new(step),
            timeout_ns: step.timeout_ns.unwrap_or(u64::MAX),
            oldest_seq: 0,
            requests: VecDeque::new(),
            unanswered: 0,
            lost: 0,
        }
    }

    /// What is still on its way when the flow ends won't be awaited, and is lost.
    pub(super) fn leave(self, ending: &mut Ending) {
        let given_up = self.requests.iter().filter(|r| !r.answered && !r.warm_up).count();
        ending.transactions_lost = Some(self.lost + given_up as u64);
        ending.departures = self.departures.left_behind();
    }

    pub(super) fn turn(
        &mut self,
        path: &mut impl DatagramPath,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            let reached = local.reached();
            let drained = match self.receive(path, tally, local)? {
                // A socket that is shut down reads as the peer's end does.
                None if reached.phase == Phase::Drained => true,
                None => {
                    tally.last_ns.set(monotonic_ns());
                    return Ok(Stage::Over);
                }
                Some(drained) => drained,
            };
            if reached.phase == Phase::Hold {
                return Ok(Stage::Goes(Turn::Held));
            }
            let now_ns = monotonic_ns();
            if drained {
                // Before that the response may be here and wait to be taken.
                self.give_up_overdue(now_ns);
            }
            let sending = self.send_due(path, now_ns, reached, tally)?;
            if reached.phase >= Phase::Drained {
                if reached.phase == Phase::Drained {
                    // What is outstanding when the time is up counts neither way.
                    self.requests.clear();
                }
                tally.last_ns.set(reached.ends_ns.min(monotonic_ns()));
                return Ok(Stage::Over);
            }
            if self.departures.are_over() && self.unanswered == 0 {
                tally.last_ns.set(monotonic_ns());
                return Ok(flush(path));
            }
            if drained && sending != Sending::More {
                return Ok(Stage::Goes(Turn::Wait { until_ns: self.next_time_ns(sending) }));
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    /// Sends what is due and has room, or a part of it.
    fn send_due(
        &mut self,
        path: &mut impl DatagramPath,
        now_ns: u64,
        reached: Reached,
        tally: &Tally,
    ) -> io::Result<Sending> {
        if !self.departures.go_on(reached, now_ns, tally) {
            return Ok(Sending::Done);
        }
        let mut now_ns = now_ns;
        for _ in 0..CALLS_PER_TURN {
            if !self.has_room() {
                return Ok(Sending::Done);
            }
            let Some(due_ns) = self.departures.due_by(now_ns) else { return Ok(Sending::Done) };
            let warm_up = self.departures.is_warm_up(due_ns);
            let seq = self.oldest_seq + self.requests.len() as u64;
            self.requests_of.write_request(&mut self.request, seq, warm_up);
            match path.send(&self.request, self.request.len()) {
                Ok(_) => tally.record_sent(self.request.len()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Sending::Blocked);
                }
                Err(error) => return Err(error),
            }
            self.departures.take();
            self.requests.push_back(Request { due_ns, sent_ns: now_ns, warm_up, answered: false });
            self.unanswered += 1;
            // One after the other: each counts from its own send.
            now_ns = monotonic_ns();
        }
        Ok(Sending::More)
    }

    fn has_room(&self) -> bool {
        self.unanswered < self.outstanding && self.requests.len() < MOST_REMEMBERED
    }

    /// Takes what has come; says whether nothing is left to take. `None`: the peer has finished.
    fn receive(
        &mut self,
        path: &mut impl DatagramPath,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Option<bool>> {
        for _ in 0..CALLS_PER_TURN {
            self.requests_of.before_receive(&mut local.receive_buffer);
            match path.receive_one(&mut local.receive_buffer) {
                Ok(length) if self.requests_of.is_end(&local.receive_buffer[..length]) => {
                    return Ok(None);
                }
                Ok(length) => self.handle_datagram(length, tally, local),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(true)),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(false))
    }

    fn handle_datagram(&mut self, length: usize, tally: &Tally, local: &mut Local) {
        let datagram = &local.receive_buffer[..length];
        let Some(seq) = self.requests_of.read_response(datagram, self.oldest_seq) else { return };
        // An answer to a request that was given up already has no place any more.
        let place = seq.checked_sub(self.oldest_seq).and_then(|n| usize::try_from(n).ok());
        let Some(request) = place.and_then(|place| self.requests.get_mut(place)) else { return };
        if request.answered {
            return;
        }
        request.answered = true;
        self.unanswered -= 1;
        let now_ns = monotonic_ns();
        let latency_ns = now_ns.saturating_sub(request.due_ns);
        tally.record_received(length);
        tally.record_transaction(latency_ns, request.warm_up);
        if !request.warm_up {
            local.latencies.record_ns(latency_ns, now_ns.saturating_sub(request.sent_ns));
        }
        while self.requests.front().is_some_and(|request| request.answered) {
            self.forget_oldest();
        }
    }

    fn give_up_overdue(&mut self, now_ns: u64) {
        while let Some(request) = self.requests.front() {
            let overdue = now_ns >= request.sent_ns.saturating_add(self.timeout_ns);
            if !request.answered && !overdue {
                return;
            }
            if R::IN_ORDER {
                return self.give_up_all();
            }
            self.lost += u64::from(!request.answered && !request.warm_up);
            self.unanswered -= usize::from(!request.answered);
            self.forget_oldest();
        }
    }

    fn give_up_all(&mut self) {
        let measured = self.requests.iter().filter(|request| !request.warm_up).count();
        self.lost += measured as u64;
        self.unanswered = 0;
        self.oldest_seq += self.requests.len() as u64;
        self.requests.clear();
    }

    fn forget_oldest(&mut self) {
        self.requests.pop_front();
        self.oldest_seq += 1;
    }

    /// When the next request is due, or a response overdue.
    fn next_time_ns(&self, sending: Sending) -> Option<u64> {
        let overdue_ns =
            self.requests.front().map(|request| request.sent_ns.saturating_add(self.timeout_ns));
        let may_send = sending == Sending::Done && self.has_room();
        let due_ns = self.departures.next_due_ns().filter(|_| may_send);
        [overdue_ns, due_ns].into_iter().flatten().min()
    }
}
