//! Requests and responses as datagrams: any of them may be lost, and the flow goes on.

use std::io;

use linerate_measure::step::{Exchange, StepEnd};
use linerate_wire::native::datagram::RrHeader;
use socket2::Socket;

use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Ending, Local, Stage, Turn};
use crate::phase::Phase;
use crate::tally::Tally;
use crate::transport::DatagramPath;

/// A spinning flow looks whether its response is overdue once in so many empty rounds.
const SILENCES_PER_LOOK: u32 = 64;

/// Sends a request, awaits its response or the time-out, and again.
pub(crate) struct DatagramAsker {
    header: RrHeader,
    request: Vec<u8>,
    left: u64,
    timeout_ns: u64,
    started_ns: u64,
    awaiting: bool,
    silences: u32,
    lost: u64,
}

impl DatagramAsker {
    pub(super) fn new(socket: &Socket, tag: u32, step: &Exchange) -> Self {
        let timeout_ns = step.timeout_ns.unwrap_or(u64::MAX);
        // A socket that blocks wakes up by itself when a response is overdue; on one that doesn't
        // the option has no effect.
        let _wakes_late_at_worst =
            socket.set_read_timeout(Some(std::time::Duration::from_nanos(timeout_ns)));
        Self {
            header: RrHeader { response: false, tag, seq: 0, warm_up: false },
            request: vec![0; step.request_bytes as usize],
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
                        self.header.warm_up = phase == Phase::WarmUp;
                    }
                    _ => {
                        tally.last_ns.set(monotonic_ns());
                        return Ok(Stage::Over);
                    }
                }
                self.send_request(path, tally)?;
                return Ok(Stage::Goes(self.wait()));
            }
            match path.receive_one(&mut local.receive_buffer) {
                Ok(length) => {
                    if local.phase() >= Phase::Drained {
                        return Ok(Stage::Over);
                    }
                    self.handle_datagram(length, tally, local);
                }
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if local.spins_alone && !self.looks_at_clock() => {}
                Err(_) => return Ok(Stage::Goes(self.handle_silence())),
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    fn wait(&self) -> Turn {
        Turn::Wait { until_ns: Some(self.started_ns.saturating_add(self.timeout_ns)) }
    }

    fn send_request(&mut self, path: &mut impl DatagramPath, tally: &Tally) -> io::Result<()> {
        // A request has room for its header: the plan's limits see to it.
        let _has_room = self.header.encode(&mut self.request);
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
        let datagram = &local.receive_buffer[..length];
        let expected = RrHeader { response: true, ..self.header };
        if RrHeader::decode(datagram) != Ok(expected) {
            // An answer to a request given up already, the end of the handshake, or a stranger's.
            return;
        }
        let now_ns = monotonic_ns();
        let latency_ns = now_ns - self.started_ns;
        tally.record_received(length);
        tally.record_transaction(latency_ns, self.header.warm_up);
        if !self.header.warm_up {
            local.latencies.total.record_ns(latency_ns);
        }
        self.next(now_ns);
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
        if !self.header.warm_up {
            self.lost += 1;
        }
        self.next(now_ns);
        Turn::Again
    }

    fn next(&mut self, now_ns: u64) {
        self.started_ns = now_ns;
        self.header.seq += 1;
        self.left -= 1;
        self.awaiting = false;
    }

    /// A request that is still on its way when the flow ends won't be awaited, and is lost.
    pub(super) fn leave(self, ending: &mut Ending) {
        let given_up = self.awaiting && !self.header.warm_up;
        ending.transactions_lost = Some(self.lost + u64::from(given_up));
    }
}

/// Answers every request of its flow.
pub(crate) struct DatagramAnswerer {
    tag: u32,
    response: Vec<u8>,
    /// Whether `response` awaits that the socket takes it.
    unsent: bool,
    started: bool,
}

impl DatagramAnswerer {
    pub(super) fn new(tag: u32, step: &Exchange) -> Self {
        let response = vec![0; step.response_bytes as usize];
        Self { tag, response, unsent: false, started: false }
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
            let Ok(header) = RrHeader::decode(&local.receive_buffer[..length]) else { continue };
            if header.response || header.tag != self.tag {
                continue;
            }
            if !self.started {
                self.started = true;
                tally.first_ns.set(monotonic_ns());
            }
            tally.record_received(length);
            // A response has room for its header: the plan's limits see to it.
            let _has_room = RrHeader { response: true, ..header }.encode(&mut self.response);
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
