//! The endpoints of one shard: as many as it has associations.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use linerate_measure::Workload;
use linerate_wire::native::datagram::{Handshake, PADDED_BYTES, Welcome, flow_tag};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use socket2::Socket;

use super::{DONE, LONGEST_WAIT, Quic, Side};
use crate::phase::Phase;
use crate::shard::{Coming, Inlet};
use crate::transport::quic::{Endpoint, Event, Link};

/// A shard that is busy looks for what was rung for once in so many rounds.
const ROUNDS_PER_LOOK: u32 = 64;

/// The endpoints of one shard.
pub(super) struct Sockets {
    quic: Quic,
    inlet: Receiver<Socket>,
    endpoints: Vec<Endpoint>,
    spins: bool,
    /// Whether no association and no flow can come any more: the load is over.
    closed: bool,
    /// Whether somebody has rung, as the last wait found.
    rung: Cell<bool>,
    rounds: u32,
}

/// Where an event has come from: the endpoint's number, and the connection.
pub(super) type Place = (usize, Link);

impl Sockets {
    pub(super) fn new(quic: &Quic, workload: &Workload, inlet: Receiver<Socket>) -> Self {
        let (spins, rung) = (workload.busy_poll, Cell::new(true));
        Self {
            quic: quic.clone(),
            inlet,
            endpoints: Vec::new(),
            spins,
            closed: false,
            rung,
            rounds: 0,
        }
    }

    /// Whether the conductor has let go of the shard.
    pub(super) fn is_released(&self) -> bool {
        self.closed
    }

    pub(super) fn get(&mut self, number: usize) -> Option<&mut Endpoint> {
        self.endpoints.get_mut(number)
    }

    /// Takes the associations that have come; returns the numbers of the new ones.
    pub(super) fn take_new(&mut self, waker: &Inlet) -> std::ops::Range<usize> {
        self.rounds = self.rounds.wrapping_add(1);
        if !self.rung.take() && !self.rounds.is_multiple_of(ROUNDS_PER_LOOK) {
            return 0..0;
        }
        waker.silence();
        // No flow ever comes here, only the end.
        self.closed |= matches!(waker.take(), Coming::Closed);
        let before = self.endpoints.len();
        while let Ok(socket) = self.inlet.try_recv() {
            let accepts = match &self.quic.side {
                Side::Server { server } => Some(server),
                Side::Client { .. } => None,
            };
            // An association that can't be had never carries anything, which its flows' ends say.
            if let Ok(endpoint) = Endpoint::new(Arc::new(socket), &self.quic.settings, accepts) {
                self.endpoints.push(endpoint.keeping_foreign());
            }
        }
        before..self.endpoints.len()
    }

    /// Takes packets in everywhere; says whether there may be more.
    pub(super) fn take_in(&mut self, events: &mut Vec<(Place, Event)>) -> bool {
        let mut more = false;
        for (number, endpoint) in self.endpoints.iter_mut().enumerate() {
            more |= endpoint.take_in().unwrap_or(false);
            drain(number, endpoint, events);
            while let Some(datagram) = endpoint.poll_foreign() {
                welcome_again(&self.quic, endpoint, &datagram);
            }
        }
        more
    }

    /// Sends what there is to be sent; says whether there is more.
    pub(super) fn send_out(&mut self, events: &mut Vec<(Place, Event)>) -> bool {
        let mut more = false;
        for (number, endpoint) in self.endpoints.iter_mut().enumerate() {
            more |= endpoint.send_out().unwrap_or(false);
            drain(number, endpoint, events);
        }
        more
    }

    /// Waits until there is something to do, until a timer is due, or for so long; nobody spins before the load
    /// has begun.
    pub(super) fn wait(&self, at_most: Duration, waker: &Inlet, phase: Phase) {
        if (self.spins && phase > Phase::Hold) || self.endpoints.iter().any(Endpoint::is_busy) {
            return;
        }
        let due = self.endpoints.iter().filter_map(Endpoint::next_time).min();
        let mut wait = at_most.min(LONGEST_WAIT);
        if let Some(due) = due {
            wait = wait.min(due.saturating_duration_since(Instant::now()));
        }
        let mut polled = Vec::with_capacity(1 + self.endpoints.len());
        polled.push(PollFd::from_borrowed_fd(waker.as_fd(), PollFlags::IN));
        for endpoint in &self.endpoints {
            polled.push(PollFd::from_borrowed_fd(endpoint.as_fd(), endpoint.poll_flags()));
        }
        let timeout =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        // Interrupted by a signal: as if the time were over.
        let _interrupted = poll(&mut polled, Some(&timeout));
        let rung = polled.first().is_some_and(|waker| !waker.revents().is_empty());
        self.rung.set(self.rung.get() || rung);
        for (polled, endpoint) in polled.iter().skip(1).zip(&self.endpoints) {
            endpoint.handle_readiness(polled.revents());
        }
    }

    /// Closes every connection in order, and sees the words of that out.
    pub(super) fn close(&mut self) {
        for endpoint in &mut self.endpoints {
            endpoint.close_all(DONE);
            endpoint.flush(Duration::from_millis(100));
        }
    }
}

fn drain(number: usize, endpoint: &mut Endpoint, events: &mut Vec<(Place, Event)>) {
    while let Some((link, event)) = endpoint.poll_event() {
        events.push(((number, link), event));
    }
}

/// A client whose welcome was lost proves itself again, and the proof comes here.
fn welcome_again(quic: &Quic, endpoint: &Endpoint, datagram: &[u8]) {
    let Ok(Handshake::Proof(proof)) = Handshake::decode(datagram) else { return };
    if proof.token != quic.token {
        return;
    }
    let tag = flow_tag(&quic.token, proof.flow);
    let welcome = Handshake::Welcome(Welcome { flow: proof.flow, tag });
    let mut bytes = [0; PADDED_BYTES];
    if let Ok(length) = welcome.encode(&mut bytes) {
        // Lost here is as lost on the way.
        let _asked_again = endpoint.socket().send(bytes.get(..length).unwrap_or_default());
    }
}
