//! Many requests on their way at once over a stream, and requests that keep to a schedule.

use std::collections::VecDeque;
use std::io;

use linerate_wire::step::{Exchange, StepEnd};

use super::{CALLS_PER_TURN, Local, Stage, Turn};
use crate::clock::monotonic_ns;
use crate::phase::Phase;
use crate::tally::Tally;
use crate::timetable::Timetable;
use crate::transport::ByteStream;

/// Sends requests as long as there is room for more on their way, each when it is due, and takes
/// their responses in order.
///
/// 1. By a schedule, a request counts from the moment when it was due, however late it could be
///    sent; what it took from the real send is recorded beside it.
/// 2. A request that is due while no more may be on their way waits, and is sent as soon as one of
///    them is answered.
/// 3. When the load stops, what was due and never sent is counted, and what was sent is awaited.
pub(crate) struct Pipeline {
    request_bytes: usize,
    response_bytes: usize,
    outstanding: usize,
    timetable: Option<Timetable>,
    left: u64,
    unsent_bytes: usize,
    /// Bytes of the oldest response that have come.
    received_bytes: usize,
    on_their_way: VecDeque<Request>,
    stopped: bool,
    never_sent: u64,
}

/// A request that awaits its response.
struct Request {
    due_ns: u64,
    sent_ns: u64,
    warm_up: bool,
}

impl Pipeline {
    pub(crate) fn new(step: &Exchange) -> Self {
        Self {
            request_bytes: step.request_bytes as usize,
            response_bytes: step.response_bytes as usize,
            outstanding: step.outstanding as usize,
            timetable: step.schedule.as_ref().map(Timetable::new),
            left: match step.end {
                StepEnd::Count { count } => count,
                _ => u64::MAX,
            },
            unsent_bytes: 0,
            received_bytes: 0,
            on_their_way: VecDeque::new(),
            stopped: false,
            never_sent: 0,
        }
    }

    /// Whether a step needs this rather than the plain way, one request after the other.
    pub(crate) fn serves(step: &Exchange) -> bool {
        step.outstanding > 1 || step.schedule.is_some()
    }

    /// Requests that were due and never sent; `None` without a schedule.
    pub(crate) fn never_sent(&self) -> Option<u64> {
        self.timetable.as_ref().map(|_| self.never_sent)
    }

    pub(crate) fn turn<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            let drained = self.receive(stream, tally, local)?;
            let phase = local.phase();
            if phase == Phase::Hold {
                return Ok(Stage::Goes(Turn::Held));
            }
            let now_ns = monotonic_ns();
            self.begin_due(now_ns, phase, tally);
            let sent_all = self.send(stream, tally, local)?;
            if self.stopped && sent_all && self.on_their_way.is_empty() {
                tally.last_ns.set(monotonic_ns());
                return Ok(Stage::Over);
            }
            if drained {
                return Ok(Stage::Goes(Turn::Wait { until_ns: self.next_due_ns() }));
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    /// Begins what is due and has room.
    fn begin_due(&mut self, now_ns: u64, phase: Phase, tally: &Tally) {
        if phase >= Phase::Stop || self.left == 0 {
            self.stop(now_ns);
            return;
        }
        if tally.first_ns.value() == 0 {
            tally.first_ns.set(now_ns);
        }
        if let Some(timetable) = &mut self.timetable {
            timetable.begin(now_ns);
        }
        while self.left > 0 && self.on_their_way.len() < self.outstanding {
            let due_ns = self.timetable.as_ref().map_or(now_ns, Timetable::due_ns);
            if due_ns > now_ns {
                return;
            }
            if let Some(timetable) = &mut self.timetable {
                timetable.take();
            }
            let warm_up = phase == Phase::WarmUp;
            self.on_their_way.push_back(Request { due_ns, sent_ns: now_ns, warm_up });
            self.unsent_bytes += self.request_bytes;
            self.left -= 1;
        }
    }

    fn stop(&mut self, now_ns: u64) {
        if self.stopped {
            return;
        }
        self.stopped = true;
        if let Some(timetable) = &mut self.timetable {
            self.never_sent = timetable.take_due_before(now_ns, self.left);
        }
    }

    /// Sends what there is; says whether nothing is left.
    fn send<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<bool> {
        while self.unsent_bytes > 0 {
            let length = self.unsent_bytes.min(local.receive_buffer.len());
            match stream.send(local.pattern.slice(0, length)) {
                Ok(sent) => {
                    tally.record_sent(sent);
                    self.unsent_bytes -= sent;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        stream.flush()?;
        Ok(true)
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
        let length = match stream.receive(&mut local.receive_buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        };
        tally.record_received(length);
        self.received_bytes += length;
        if self.received_bytes >= self.response_bytes {
            self.record_responses(tally, local);
        }
        Ok(S::SHORT_MEANS_EMPTY && length < local.receive_buffer.len())
    }

    fn record_responses(&mut self, tally: &Tally, local: &mut Local) {
        let now_ns = monotonic_ns();
        while self.received_bytes >= self.response_bytes {
            let Some(request) = self.on_their_way.pop_front() else { return };
            self.received_bytes -= self.response_bytes;
            let latency_ns = now_ns.saturating_sub(request.due_ns);
            tally.record_transaction(latency_ns, request.warm_up);
            if request.warm_up {
                continue;
            }
            local.latencies.total.record_ns(latency_ns);
            if let Some(service) = &mut local.latencies.service {
                service.record_ns(now_ns.saturating_sub(request.sent_ns));
            }
        }
    }

    /// When the next request is due, if there is room for it.
    fn next_due_ns(&self) -> Option<u64> {
        let timetable = self.timetable.as_ref().filter(|_| !self.stopped)?;
        (self.on_their_way.len() < self.outstanding).then(|| timetable.due_ns())
    }
}
