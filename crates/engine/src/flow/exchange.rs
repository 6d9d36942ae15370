//! Requests and responses over a stream.

use std::io;

use linerate_measure::step::{Exchange, StepEnd};

use super::{Calls, Local, Stage, Turn};
use crate::clock::monotonic_ns;
use crate::phase::Phase;
use crate::tally::Tally;
use crate::transport::ByteStream;

/// Sends a request, awaits its response, and again.
///
/// The clock is read once a transaction where one request follows the other: the next starts where the
/// last response ended. Where not all flows of the shard may be active at a time, it has a place among them
/// for so many requests, then rests.
pub(crate) struct Asker {
    request_bytes: usize,
    response_bytes: usize,
    left: u64,
    /// Requests until the flow gives up its place among the active ones; 0: it has none.
    left_of_turn: u64,
    unsent: usize,
    unreceived: usize,
    started_ns: u64,
    /// Whether the transaction under way began in the warm-up: then it doesn't count.
    warm_up: bool,
}

impl Asker {
    pub(crate) fn new(step: &Exchange) -> Self {
        Self {
            request_bytes: step.request_bytes as usize,
            response_bytes: step.response_bytes as usize,
            left: match step.end {
                StepEnd::Count { count } => count,
                _ => u64::MAX,
            },
            left_of_turn: 0,
            unsent: 0,
            unreceived: 0,
            started_ns: 0,
            warm_up: false,
        }
    }

    pub(crate) fn turn<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        let mut calls = Calls::of_turn(local);
        while calls.take(local) {
            if self.unreceived == 0 {
                let phase = local.phase();
                if phase < Phase::Stop && self.left > 0 && !self.takes_place(tally, local) {
                    return Ok(Stage::Goes(Turn::Rest));
                }
                match phase {
                    Phase::Hold => return Ok(Stage::Goes(Turn::Held)),
                    Phase::WarmUp | Phase::Measure if self.left > 0 => {
                        self.warm_up = phase == Phase::WarmUp;
                        self.begin(tally);
                    }
                    _ => {
                        // A flow that rests had its last response earlier.
                        if self.left_of_turn > 0 {
                            tally.last_ns.set(monotonic_ns());
                        }
                        return Ok(Stage::Over);
                    }
                }
            }
            if self.unsent > 0 {
                if local.phase() == Phase::Drained {
                    return Ok(self.leave_outstanding(tally, local));
                }
                let sent = stream.send(local.pattern.slice(0, self.unsent))?;
                tally.record_sent(sent);
                self.unsent -= sent;
                // The response can't be here yet; asking for it now would be a call for nothing.
                return Ok(Stage::Goes(if self.unsent == 0 { Turn::READY } else { Turn::Again }));
            }
            let most = self.unreceived.min(local.receive_buffer.len());
            let space = &mut local.receive_buffer[..most];
            let length = match stream.receive_in_place(space, &mut |_| {}) {
                Err(error) if local.spins_alone && error.kind() == io::ErrorKind::WouldBlock => {
                    continue;
                }
                received => received?,
            };
            if length == 0 {
                return self.handle_end(tally, local);
            }
            tally.record_received(length);
            self.unreceived -= length;
            if self.unreceived == 0 {
                self.record_transaction(tally, local);
                self.left_of_turn -= 1;
                if self.left_of_turn == 0 {
                    self.rest(tally, local);
                    if self.left > 0 {
                        return Ok(Stage::Goes(Turn::Rest));
                    }
                }
                if local.receives_together {
                    // The next request starts when those beside this flow have received.
                    self.started_ns = 0;
                    return Ok(Stage::Goes(Turn::ThenSend));
                }
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    /// Nothing more comes of a response that is outstanding.
    #[cold]
    fn handle_end(&mut self, tally: &Tally, local: &mut Local) -> io::Result<Stage> {
        match local.phase() {
            Phase::Drained => Ok(self.leave_outstanding(tally, local)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The load's time is up, and the response that is outstanding isn't awaited: it counts neither way.
    #[cold]
    fn leave_outstanding(&mut self, tally: &Tally, local: &mut Local) -> Stage {
        (self.unsent, self.unreceived) = (0, 0);
        tally.last_ns.set(local.reached().ends_ns.min(monotonic_ns()));
        Stage::Over
    }

    /// Whether the flow has a place among the active ones, or takes one.
    #[inline]
    fn takes_place(&mut self, tally: &Tally, local: &mut Local) -> bool {
        if self.left_of_turn == 0
            && let Some(requests) = local.active.take()
        {
            self.left_of_turn = requests;
            // What it does now hasn't ended.
            tally.last_ns.set(0);
        }
        self.left_of_turn > 0
    }

    /// The flow gives up its place, and has done so far what it does.
    fn rest(&mut self, tally: &Tally, local: &mut Local) {
        local.active.give_back();
        tally.last_ns.set(self.started_ns);
        self.started_ns = 0;
    }

    /// The flow that ends gives up its place.
    pub(crate) fn leave(&mut self, local: &mut Local) {
        if self.left_of_turn > 0 {
            self.left_of_turn = 0;
            local.active.give_back();
        }
    }

    #[inline]
    fn begin(&mut self, tally: &Tally) {
        self.unsent = self.request_bytes;
        self.unreceived = self.response_bytes;
        if self.started_ns == 0 {
            self.started_ns = monotonic_ns();
            if tally.first_ns.value() == 0 {
                tally.first_ns.set(self.started_ns);
            }
        }
    }

    #[inline]
    fn record_transaction(&mut self, tally: &Tally, local: &mut Local) {
        let now_ns = monotonic_ns();
        let latency_ns = now_ns - self.started_ns;
        self.started_ns = now_ns;
        self.left -= 1;
        if !self.warm_up {
            local.latencies.record_total_ns(latency_ns);
        }
        tally.record_transaction(latency_ns, self.warm_up);
    }
}

/// Receives requests, sends their responses, and again until the peer has finished.
///
/// Requests that came together are answered together. While a response can't be sent nothing more
/// is received: a peer that doesn't read is not served.
pub(crate) struct Answerer {
    request_bytes: usize,
    response_bytes: usize,
    /// Whether the peer sends a request only when it has the last response.
    one_by_one: bool,
    /// Bytes of a request that hasn't come whole.
    received_bytes: usize,
    unsent_bytes: usize,
    /// Whether the last receive took all there was.
    drained: bool,
    started: bool,
}

impl Answerer {
    pub(crate) fn new(step: &Exchange) -> Self {
        Self {
            request_bytes: step.request_bytes as usize,
            response_bytes: step.response_bytes as usize,
            one_by_one: step.outstanding == 1,
            received_bytes: 0,
            unsent_bytes: 0,
            drained: false,
            started: false,
        }
    }

    pub(crate) fn turn<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        // Requests that came since the last turn were announced then, and nobody announces them
        // again: unless the peer awaits this response, the socket must be asked.
        self.drained &= self.one_by_one;
        let mut calls = Calls::of_turn(local);
        while calls.take(local) {
            if self.unsent_bytes > 0 {
                let length = self.unsent_bytes.min(local.receive_buffer.len());
                let sent = stream.send(local.pattern.slice(0, length))?;
                tally.record_sent(sent);
                self.unsent_bytes -= sent;
                if self.unsent_bytes == 0 && self.drained {
                    return Ok(Stage::Goes(Turn::READY));
                }
                continue;
            }
            let length = match stream.receive_in_place(&mut local.receive_buffer, &mut |_| {}) {
                Err(error) if local.spins_alone && error.kind() == io::ErrorKind::WouldBlock => {
                    continue;
                }
                received => received?,
            };
            if length == 0 && self.received_bytes > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if length == 0 || local.phase() >= Phase::Drained {
                tally.last_ns.set(monotonic_ns());
                return Ok(Stage::Over);
            }
            if !self.started {
                self.started = true;
                tally.first_ns.set(monotonic_ns());
            }
            tally.record_received(length);
            self.record_requests(length, tally);
            self.drained = self.has_drained::<S>(length, local);
            if local.receives_together && self.one_by_one && self.unsent_bytes > 0 {
                return Ok(Stage::Goes(Turn::ThenSend));
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    #[inline]
    fn record_requests(&mut self, length: usize, tally: &Tally) {
        self.received_bytes += length;
        if self.received_bytes >= self.request_bytes {
            let requests = self.received_bytes / self.request_bytes;
            self.received_bytes -= requests * self.request_bytes;
            self.unsent_bytes = requests * self.response_bytes;
            tally.transactions.add(requests as u64);
        }
    }

    /// Whether nothing more can be in the socket. A peer that awaits this response has sent nothing
    /// yet, and asking would be a call for nothing.
    #[inline]
    fn has_drained<S: ByteStream>(&self, length: usize, local: &Local) -> bool {
        (S::SHORT_MEANS_EMPTY && length < local.receive_buffer.len())
            || (self.one_by_one && self.unsent_bytes > 0)
    }
}
