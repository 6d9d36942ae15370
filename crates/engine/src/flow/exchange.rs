//! Requests and responses over a stream.

use std::io;

use linerate_wire::step::{Exchange, StepEnd};

use super::{CALLS_PER_TURN, Local, Stage, Turn};
use crate::clock::monotonic_ns;
use crate::phase::Phase;
use crate::tally::Tally;
use crate::transport::ByteStream;

/// Sends a request, awaits its response, and again.
///
/// The clock is read once a transaction: a closed loop's next request starts where the last
/// response ended.
pub(crate) struct Asker {
    request_bytes: usize,
    response_bytes: usize,
    left: u64,
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
        for _ in 0..CALLS_PER_TURN {
            if self.unreceived == 0 {
                match local.phase() {
                    Phase::Hold => return Ok(Stage::Goes(Turn::Held)),
                    phase @ (Phase::WarmUp | Phase::Measure) if self.left > 0 => {
                        self.warm_up = phase == Phase::WarmUp;
                        self.begin(tally);
                    }
                    _ => {
                        tally.last_ns.set(monotonic_ns());
                        return Ok(Stage::Over);
                    }
                }
            }
            if self.unsent > 0 {
                let sent = stream.send(local.pattern.slice(0, self.unsent))?;
                tally.record_sent(sent);
                self.unsent -= sent;
                // The response can't be here yet; asking for it now would be a call for nothing.
                return Ok(Stage::Goes(if self.unsent == 0 { Turn::READY } else { Turn::Again }));
            }
            let most = self.unreceived.min(local.receive_buffer.len());
            let length = match stream.receive(&mut local.receive_buffer[..most]) {
                Err(error) if local.spins_alone && error.kind() == io::ErrorKind::WouldBlock => {
                    continue;
                }
                received => received?,
            };
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            tally.record_received(length);
            self.unreceived -= length;
            if self.unreceived == 0 {
                self.record_transaction(tally, local);
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    #[inline]
    fn begin(&mut self, tally: &Tally) {
        self.unsent = self.request_bytes;
        self.unreceived = self.response_bytes;
        if self.started_ns == 0 {
            self.started_ns = monotonic_ns();
            tally.first_ns.set(self.started_ns);
        }
    }

    #[inline]
    fn record_transaction(&mut self, tally: &Tally, local: &mut Local) {
        let now_ns = monotonic_ns();
        let latency_ns = now_ns - self.started_ns;
        self.started_ns = now_ns;
        self.left -= 1;
        if !self.warm_up {
            local.latency.record_ns(latency_ns);
        }
        tally.record_transaction(latency_ns, self.warm_up);
    }
}

/// Receives a request, sends its response, and again until the peer has finished.
pub(crate) struct Answerer {
    request_bytes: usize,
    response_bytes: usize,
    unreceived: usize,
    unsent: usize,
    started: bool,
}

impl Answerer {
    pub(crate) fn new(step: &Exchange) -> Self {
        let request_bytes = step.request_bytes as usize;
        Self {
            request_bytes,
            response_bytes: step.response_bytes as usize,
            unreceived: request_bytes,
            unsent: 0,
            started: false,
        }
    }

    pub(crate) fn turn<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            if self.unsent > 0 {
                let sent = stream.send(local.pattern.slice(0, self.unsent))?;
                tally.record_sent(sent);
                self.unsent -= sent;
                if self.unsent == 0 {
                    self.unreceived = self.request_bytes;
                    tally.transactions.add(1);
                    // The next request can't be here before the peer has this response.
                    return Ok(Stage::Goes(Turn::READY));
                }
                continue;
            }
            let most = self.unreceived.min(local.receive_buffer.len());
            let length = match stream.receive(&mut local.receive_buffer[..most]) {
                Err(error) if local.spins_alone && error.kind() == io::ErrorKind::WouldBlock => {
                    continue;
                }
                received => received?,
            };
            if length == 0 && self.unreceived < self.request_bytes {
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
            self.unreceived -= length;
            if self.unreceived == 0 {
                self.unsent = self.response_bytes;
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }
}
