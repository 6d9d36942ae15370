//! Requests and responses as plain datagrams.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_measure::step::Exchange;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use crate::buffers::{Buffers, Dirt};
use crate::clock::monotonic_ns;
use crate::flow::departures::Departures;
use crate::flow::{CALLS_PER_TURN, Local, Stage, Turn};
use crate::phase::{Phase, Reached};
use crate::tally::Tally;

/// Sends requests and takes responses.
///
/// 1. Nothing in a response says to which request it belongs: it answers the oldest.
/// 2. When the oldest request has waited for too long, all that are on their way are lost, and the
///    flow begins anew: after a loss nobody could tell whose a response is.
pub(crate) struct PlainAsker {
    request: Vec<u8>,
    outstanding: usize,
    departures: Departures,
    timeout_ns: u64,
    /// When each request on its way was due, and whether in the warm-up.
    on_their_way: VecDeque<(u64, bool)>,
    lost: u64,
    dirt: Dirt,
}

impl PlainAsker {
    pub(super) fn new(socket: &Socket, step: &Exchange, buffers: &Buffers) -> Self {
        let timeout_ns = step.timeout_ns.unwrap_or(u64::MAX);
        // A socket that blocks wakes up by itself when a response is overdue; on one that doesn't
        // the option has no effect.
        let _wakes_late_at_worst =
            socket.set_read_timeout(step.timeout_ns.map(Duration::from_nanos));
        Self {
            request: buffers.filled(step.request_bytes as usize, 1),
            outstanding: step.outstanding as usize,
            departures: Departures::new(step),
            timeout_ns,
            on_their_way: VecDeque::new(),
            lost: 0,
            dirt: buffers.dirt,
        }
    }

    /// Requests whose response did not come in time.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn turn(
        &mut self,
        socket: &Socket,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            let reached = local.reached();
            if reached.phase == Phase::Hold {
                return Ok(Stage::Goes(Turn::Held));
            }
            self.send_due(socket, reached, tally)?;
            if self.on_their_way.is_empty() {
                match self.departures.next_due_ns() {
                    Some(until_ns) if !self.departures.are_over() => {
                        return Ok(Stage::Goes(Turn::Pause { until_ns }));
                    }
                    _ => {
                        tally.last_ns.set(monotonic_ns());
                        return Ok(Stage::Over);
                    }
                }
            }
            self.dirt.before_receive(&mut local.receive_buffer);
            match rustix::net::recv(socket.as_fd(), &mut *local.receive_buffer, RecvFlags::empty())
            {
                // The peer says that it will answer no more.
                Ok((0, _)) => {
                    tally.last_ns.set(monotonic_ns());
                    return Ok(Stage::Over);
                }
                Ok((length, _)) => self.record_response(length, tally, local),
                Err(Errno::AGAIN) if local.spins_alone => self.give_up_overdue(),
                Err(Errno::AGAIN) => return Ok(Stage::Goes(self.handle_silence())),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    fn send_due(&mut self, socket: &Socket, reached: Reached, tally: &Tally) -> io::Result<()> {
        let now_ns = monotonic_ns();
        if !self.departures.go_on(reached, now_ns, tally) {
            return Ok(());
        }
        while self.on_their_way.len() < self.outstanding {
            let Some(due_ns) = self.departures.due_by(now_ns) else { return Ok(()) };
            self.dirt.before_send(&mut self.request);
            let sent = rustix::net::send(socket.as_fd(), &self.request, SendFlags::empty())?;
            tally.record_sent(sent);
            tally.datagrams_sent.add(1);
            self.departures.take();
            self.on_their_way.push_back((due_ns, self.departures.is_warm_up(due_ns)));
        }
        Ok(())
    }

    fn record_response(&mut self, length: usize, tally: &Tally, local: &mut Local) {
        let now_ns = monotonic_ns();
        tally.record_received(length);
        tally.datagrams_received.add(1);
        let Some((due_ns, warm_up)) = self.on_their_way.pop_front() else { return };
        let latency_ns = now_ns.saturating_sub(due_ns);
        tally.record_transaction(latency_ns, warm_up);
        if !warm_up {
            local.latencies.record_ns(latency_ns, latency_ns);
        }
    }

    fn handle_silence(&mut self) -> Turn {
        self.give_up_overdue();
        let overdue_ns =
            self.on_their_way.front().map(|(due_ns, _)| due_ns.saturating_add(self.timeout_ns));
        let room = self.on_their_way.len() < self.outstanding;
        let due_ns = self.departures.next_due_ns().filter(|_| room);
        match [overdue_ns, due_ns].into_iter().flatten().min() {
            Some(until_ns) => Turn::Wait { until_ns: Some(until_ns) },
            None => Turn::Again,
        }
    }

    fn give_up_overdue(&mut self) {
        let Some((due_ns, _)) = self.on_their_way.front() else { return };
        if monotonic_ns() < due_ns.saturating_add(self.timeout_ns) {
            return;
        }
        let measured = self.on_their_way.iter().filter(|(_, warm_up)| !warm_up).count();
        self.lost += measured as u64;
        self.on_their_way.clear();
    }
}

/// Answers every datagram that isn't empty.
pub(crate) struct PlainAnswerer {
    response: Vec<u8>,
    dirt: Dirt,
    /// Whether a response awaits that the socket takes it.
    unsent: bool,
}

impl PlainAnswerer {
    pub(super) fn new(step: &Exchange, buffers: &Buffers) -> Self {
        let response = buffers.filled(step.response_bytes as usize, 1);
        Self { response, dirt: buffers.dirt, unsent: false }
    }

    pub(super) fn turn(
        &mut self,
        socket: &Socket,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            if local.phase() >= Phase::Drained {
                tally.last_ns.set(monotonic_ns());
                return Ok(Stage::Over);
            }
            if self.unsent {
                self.send_response(socket, tally)?;
            }
            let into = &mut *local.receive_buffer;
            self.dirt.before_receive(into);
            let length = match rustix::net::recv(socket.as_fd(), into, RecvFlags::empty()) {
                Ok((length, _)) => length,
                Err(Errno::AGAIN) if local.spins_alone => continue,
                Err(error) => return Err(error.into()),
            };
            if length == 0 {
                tally.last_ns.set(monotonic_ns());
                return Ok(Stage::Over);
            }
            if tally.first_ns.value() == 0 {
                tally.first_ns.set(monotonic_ns());
            }
            tally.record_received(length);
            tally.datagrams_received.add(1);
            self.send_response(socket, tally)?;
        }
        Ok(Stage::Goes(Turn::Again))
    }

    /// A socket that takes no more now takes the response later. One that refuses it has lost it,
    /// as the path may.
    fn send_response(&mut self, socket: &Socket, tally: &Tally) -> io::Result<()> {
        self.unsent = false;
        self.dirt.before_send(&mut self.response);
        match rustix::net::send(socket.as_fd(), &self.response, SendFlags::empty()) {
            Ok(sent) => {
                tally.record_sent(sent);
                tally.datagrams_sent.add(1);
                tally.transactions.add(1);
                Ok(())
            }
            Err(error) => {
                self.unsent = error == Errno::AGAIN;
                Err(error.into())
            }
        }
    }
}
