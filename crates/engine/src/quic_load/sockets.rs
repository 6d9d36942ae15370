//! The QUIC endpoint of one shard: it has all UDP sockets of the shard.

use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use linerate_measure::Workload;
use linerate_wire::native::datagram::{Handshake, PADDED_BYTES, Welcome, flow_tag};
use socket2::Socket;

use super::connected::Connected;
use super::{DONE, LONGEST_WAIT, Quic, Side};
use crate::error::Error;
use crate::phase::Phase;
use crate::shard::{Coming, Inlet};
use crate::transport::quic::{Endpoint, Event, Facts, Link};

/// A shard that is busy looks for what was rung for once in so many rounds.
const ROUNDS_PER_LOOK: u32 = 64;

/// The endpoint of one shard, and what comes to the shard beside packets.
pub(super) struct Sockets {
    quic: Quic,
    inlet: Receiver<Socket>,
    pub(super) endpoint: Endpoint,
    spins: bool,
    /// Whether no UDP socket and no flow can come any more: the load is over.
    closed: bool,
    /// Whether the waker was used, as the last wait found.
    rung: bool,
    rounds: u32,
}

impl Sockets {
    /// # Errors
    ///
    /// Where QUIC can't be set up on this machine.
    pub(super) fn new(
        quic: &Quic,
        workload: &Workload,
        inlet: Receiver<Socket>,
    ) -> Result<Self, Error> {
        let accepts = match &quic.side {
            Side::Server { server } => Some(server),
            Side::Client { .. } => None,
        };
        let endpoint = Endpoint::new(&quic.settings, accepts)?.keeping_foreign();
        let (spins, quic) = (workload.threading.busy_poll, quic.clone());
        Ok(Self { quic, inlet, endpoint, spins, closed: false, rung: true, rounds: 0 })
    }

    /// Whether the conductor has let go of the shard.
    pub(super) fn is_released(&self) -> bool {
        self.closed
    }

    /// Takes the UDP sockets that have come; returns the number of the first one.
    pub(super) fn take_new(&mut self, waker: &Inlet) -> Option<u32> {
        self.rounds = self.rounds.wrapping_add(1);
        if !std::mem::take(&mut self.rung) && !self.rounds.is_multiple_of(ROUNDS_PER_LOOK) {
            return None;
        }
        waker.silence();
        // No flow ever comes here, only the end.
        self.closed |= matches!(waker.take(), Coming::Closed);
        let mut first = None;
        while let Ok(socket) = self.inlet.try_recv() {
            // A socket that can't be had never carries anything, which its flows' ends say.
            first = first.or(self.endpoint.add(Arc::new(socket)).ok());
        }
        first
    }

    /// Takes packets in; says whether there may be more.
    pub(super) fn take_in(&mut self) -> bool {
        // What a socket says that is of no use any more, its connections find out in time.
        let more = self.endpoint.take_in().unwrap_or(false);
        while let Some((number, datagram)) = self.endpoint.poll_foreign() {
            if let Some(socket) = self.endpoint.socket(number) {
                welcome_again(&self.quic, socket, &datagram);
            }
        }
        more
    }

    /// What has happened next.
    pub(super) fn poll_event(&mut self) -> Option<(Link, Event)> {
        self.endpoint.poll_event()
    }

    /// A connection with what its streams need.
    pub(super) fn connected(&self, link: Link) -> Option<Connected> {
        let (connection, port) =
            self.endpoint.connection(link).zip(self.endpoint.socket_of(link))?;
        let congestion = self.quic.settings.congestion;
        Some(Connected {
            connection: Rc::clone(connection),
            socket: Arc::clone(port.socket()),
            facts: Facts { congestion, offload: port.offload() },
        })
    }

    /// Sends what there is to be sent; says whether there is more.
    pub(super) fn send_out(&mut self) -> bool {
        self.endpoint.send_out().unwrap_or(false)
    }

    /// Waits until there is something to do, until a timer is due, or for so long; no thread spins before the load
    /// has begun.
    pub(super) fn wait(&mut self, at_most: Duration, waker: &Inlet, phase: Phase) {
        if !(self.spins && phase > Phase::Hold) {
            let rung = self.endpoint.wait(at_most.min(LONGEST_WAIT), Some(waker.as_fd()));
            self.rung |= rung.unwrap_or(true);
        }
    }

    /// Closes every connection in order, and sees the words of that out.
    pub(super) fn close(&mut self) {
        self.endpoint.close_all(DONE);
        self.endpoint.flush(Duration::from_millis(100));
    }
}

/// A client whose welcome was lost proves itself again, and the proof comes here.
fn welcome_again(quic: &Quic, socket: &Socket, datagram: &[u8]) {
    let Ok(Handshake::Proof(proof)) = Handshake::decode(datagram) else { return };
    if proof.token != quic.token {
        return;
    }
    let tag = flow_tag(&quic.token, proof.flow);
    let welcome = Handshake::Welcome(Welcome { flow: proof.flow, tag });
    let mut bytes = [0; PADDED_BYTES];
    if let Ok(length) = welcome.encode(&mut bytes) {
        // Lost here is as lost on the way.
        let _asked_again = socket.send(bytes.get(..length).unwrap_or_default());
    }
}
