//! Requests and responses as datagrams: any of them may be lost, and the flow goes on.

use std::io;

use linerate_measure::step::{Exchange, StepEnd};
use socket2::Socket;

use super::flush;
use super::requests::Requests;
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Ending, Local, Stage, Turn};
use crate::phase::Phase;
use crate::tally::Tally;
use crate::transport::DatagramPath;

/// A spinning flow looks whether its response is overdue once in so many empty rounds.
const SILENCES_PER_LOOK: u32 = 64;

/// Sends a request, awaits its response or the time-out, and again.
pub(crate) struct DatagramAsker<R> {
    requests: R,
    request: Vec<u8>,
    seq: u64,
    /// Whether the request under way belongs to the warm-up.
    warm_up: bool,
    left: u64,
    timeout_ns: u64,
    started_ns: u64,
    awaiting: bool,
    silences: u32,
    lost: u64,
}

impl<R: Requests> DatagramAsker<R> {
    pub(super) fn new(socket: &Socket, requests: R, step: &Exchange) -> Self {
        let timeout_ns = step.timeout_ns.unwrap_or(u64::MAX);
        // A socket that blocks wakes up by itself when a response is overdue; on one that doesn't
        // the option has no effect.
        let _wakes_late_at_worst =
            socket.set_read_timeout(Some(std::time::Duration::from_nanos(timeout_ns)));
        Self {
            request: requests.blank(step.request_bytes as usize),
            requests,
            seq: 0,
            warm_up: false,
            left: match step.end {
                StepEnd::Count { count } => count,
                _ => u64::MAX,
            },
            timeout_ns,
            started_ns: 0,
            awaiting: false,
            silences: 0,
            lost: 0,
        }
    }

    pub(super) fn turn(
        &mut self,
        path: &mut impl DatagramPath,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            if !self.awaiting {
                match local.phase() {
                    Phase::Hold => return Ok(Stage::Goes(Turn::Held)),
                    phase @ (Phase::WarmUp | Phase::Measure) if self.left > 0 => {
                        self.warm_up = phase == Phase::WarmUp;
                    }
                    phase => {
                        tally.last_ns.set(monotonic_ns());
                        let is_late = phase >= Phase::Drained;
                        return Ok(if is_late { Stage::Over } else { flush(path) });
                    }
                }
                self.send_request(path, tally)?;
                return Ok(Stage::Goes(self.wait()));
            }
            self.requests.before_receive(&mut local.receive_buffer);
            match path.receive_one(&mut local.receive_buffer) {
                Ok(length) => {
                    if local.phase() >= Phase::Drained {
                        return Ok(self.leave_outstanding(tally, local));
                    }
                    if self.requests.is_end(&local.receive_buffer[..length]) {
                        tally.last_ns.set(monotonic_ns());
                        return Ok(Stage::Over);
                    }
                    self.handle_datagram(length, tally, local);
                }
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if local.spins_alone && !self.looks_at_clock() => {}
                Err(_) if local.phase() >= Phase::Drained => {
                    return Ok(self.leave_outstanding(tally, local));
                }
                Err(_) => return Ok(Stage::Goes(self.handle_silence())),
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    fn wait(&self) -> Turn {
        Turn::Wait { until_ns: Some(self.started_ns.saturating_add(self.timeout_ns)) }
    }

    fn send_request(&mut self, path: &mut impl DatagramPath, tally: &Tally) -> io::Result<()> {
        self.requests.write_request(&mut self.request, self.seq, self.warm_up);
        if self.started_ns == 0 {
            self.started_ns = monotonic_ns();
        }
        if tally.first_ns.value() == 0 {
            tally.first_ns.set(self.started_ns);
        }
        match path.send(&self.request, self.request.len()) {
            Ok(_) => tally.record_sent(self.request.len()),
            Err(error) => {
                // The request never was on its way: its time begins when it is.
                self.started_ns = 0;
                return Err(error);
            }
        }
        self.awaiting = true;
        Ok(())
    }

    fn handle_datagram(&mut self, length: usize, tally: &Tally, local: &mut Local) {
        let answered = self.requests.read_response(&local.receive_buffer[..length], self.seq);
        if answered != Some(self.seq) {
            // An answer to a request given up already, the end of the handshake, or a foreign datagram.
            return;
        }
        let now_ns = monotonic_ns();
        let latency_ns = now_ns - self.started_ns;
        tally.record_received(length);
        tally.record_transaction(latency_ns, self.warm_up);
        if !self.warm_up {
            local.latencies.record_total_ns(latency_ns);
        }
        self.next(now_ns);
    }

    /// The load is over. A request that is outstanding when its time is up counts neither way; in a load that is given
    /// up it is lost.
    #[cold]
    fn leave_outstanding(&mut self, tally: &Tally, local: &mut Local) -> Stage {
        let reached = local.reached();
        self.awaiting &= reached.phase >= Phase::Abort;
        tally.last_ns.set(reached.ends_ns.min(monotonic_ns()));
        Stage::Over
    }

    /// Whether a spinning flow, which asks its socket millions of times a second, asks the clock
    /// this time too.
    #[inline]
    fn looks_at_clock(&mut self) -> bool {
        self.silences = self.silences.wrapping_add(1);
        self.silences.is_multiple_of(SILENCES_PER_LOOK)
    }

    /// Nothing has come: perhaps the response is overdue.
    fn handle_silence(&mut self) -> Turn {
        let now_ns = monotonic_ns();
        if now_ns < self.started_ns.saturating_add(self.timeout_ns) {
            return self.wait();
        }
        if !self.warm_up {
            self.lost += 1;
        }
        self.next(now_ns);
        Turn::Again
    }

    fn next(&mut self, now_ns: u64) {
        self.started_ns = now_ns;
        self.seq += 1;
        self.left -= 1;
        self.awaiting = false;
    }

    /// A request that is still on its way when the flow ends won't be awaited, and is lost.
    pub(super) fn leave(self, ending: &mut Ending) {
        let given_up = self.awaiting && !self.warm_up;
        ending.transactions_lost = Some(self.lost + u64::from(given_up));
    }
}

/// Answers every request of its flow.
pub(crate) struct DatagramAnswerer<R> {
    requests: R,
    response: Vec<u8>,
    /// Whether `response` awaits that the socket takes it.
    unsent: bool,
    started: bool,
}

impl<R: Requests> DatagramAnswerer<R> {
    pub(super) fn new(requests: R, step: &Exchange) -> Self {
        let response = requests.blank(step.response_bytes as usize);
        Self { requests, response, unsent: false, started: false }
    }

    pub(super) fn turn(
        &mut self,
        path: &mut impl DatagramPath,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            if local.phase() >= Phase::Drained {
                tally.last_ns.set(monotonic_ns());
                return Ok(Stage::Over);
            }
            if self.unsent {
                self.send_response(path, tally)?;
            }
            self.requests.before_receive(&mut local.receive_buffer);
            let length = match path.receive_one(&mut local.receive_buffer) {
                Ok(length) => length,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock if local.spins_alone => continue,
                    // The peer has closed the path in order: no more requests will come.
                    io::ErrorKind::UnexpectedEof => {
                        tally.last_ns.set(monotonic_ns());
                        return Ok(Stage::Over);
                    }
                    _ => return Err(error),
                },
            };
            let datagram = &local.receive_buffer[..length];
            if self.requests.is_end(datagram) {
                tally.last_ns.set(monotonic_ns());
                return Ok(Stage::Over);
            }
            if !self.requests.write_response(datagram, &mut self.response) {
                continue;
            }
            if !self.started {
                self.started = true;
                tally.first_ns.set(monotonic_ns());
            }
            tally.record_received(length);
            self.send_response(path, tally)?;
        }
        Ok(Stage::Goes(Turn::Again))
    }

    /// A socket that takes no more now, or whose queue has no room, takes the response later. One that refuses it
    /// has lost it, as the path may.
    fn send_response(&mut self, path: &mut impl DatagramPath, tally: &Tally) -> io::Result<()> {
        self.unsent = false;
        match path.send(&self.response, self.response.len()) {
            Ok(_) => {
                tally.record_sent(self.response.len());
                tally.transactions.add(1);
                Ok(())
            }
            Err(error) => {
                self.unsent = error.raw_os_error() == Some(libc::ENOBUFS)
                    || matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    );
                Err(error)
            }
        }
    }
}
