//! One connection at the server, from its opening to its close.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::SocketOptions;
use linerate_measure::step::Close;
use linerate_wire::native::opening::{Arrival, OPENING_BYTES, Opening, sniff};
use rustix::net::{RecvFlags, recv};
use rustls::{Connection as TlsConnection, ServerConnection};
use socket2::Socket;

use super::attempt::Carrier;
use super::carrier::TcpCarrier;
use super::finished::Call;
use super::living::Living;
use super::script::{LifeStream, Progress, Script};
use super::spin_wait::{Awaited, SpinWait};
use super::{Accept, Interest};
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Local};
use crate::socket::configure_asked;
use crate::tally::Tally;

/// A connection that was accepted.
pub(super) struct Incoming {
    pub(super) carrier: TcpCarrier,
    pub(super) stage: Stage,
    pub(super) watched: Option<Interest>,
    pub(super) expires_ns: u64,
    /// Whether its socket blocks, for a moment.
    pub(super) blocks: bool,
    /// Its number among those that wait and haven't said whose they are.
    pub(super) pending: Option<u64>,
    /// Its number among the load's connections, where the two ends agree on that.
    number: u32,
    /// The life that is over, of one that waits for its close.
    past: Option<Box<Living>>,
    /// What had moved when it was last looked at.
    seen: u64,
}

/// How far it has come.
pub(super) enum Stage {
    Opening,
    Securing,
    Living(Progress),
    /// All is sent but what the socket has not taken.
    Flushing,
    /// The client closes.
    Closing,
}

/// What becomes of a connection.
pub(super) enum Fate {
    /// It has had all, and the client will close.
    Answered,
    Waits(Interest),
    /// It is to be closed.
    Closes,
    /// It isn't one of this load's.
    Foreign,
}

impl Incoming {
    pub(super) fn new(socket: Socket, stage: Stage) -> Self {
        Self {
            carrier: TcpCarrier::new(socket),
            stage,
            watched: None,
            expires_ns: 0,
            blocks: false,
            pending: None,
            number: 0,
            past: None,
            seen: 0,
        }
    }

    /// After the opening, with which so much of the life's first bytes has come: sets the options that were asked
    /// for, and begins TLS where the load has it.
    pub(super) fn prepare(
        &mut self,
        accept: &Accept,
        script: &mut Script,
        number: u32,
        received: usize,
    ) -> io::Result<()> {
        self.number = number;
        self.begin(script, received);
        if accept.options != SocketOptions::default() {
            configure_asked(self.carrier.socket(), &accept.options)?;
        }
        if let Some(config) = &accept.tls {
            let session = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
            self.carrier.secure(TlsConnection::from(session));
            self.stage = Stage::Securing;
        }
        Ok(())
    }

    /// Begins its life, of which so many bytes have come.
    fn begin(&mut self, script: &mut Script, received: usize) {
        script.set_number(self.number);
        let mut progress = script.begin(0, received);
        script.tell_established(&mut progress, &self.carrier);
        self.stage = Stage::Living(progress);
    }

    /// Whether anything has moved on it since this was asked last, or it pauses by itself at this time.
    pub(super) fn has_moved(&mut self, now_ns: u64) -> bool {
        let moved = match &self.stage {
            Stage::Living(progress) if progress.is_paused(now_ns) => return true,
            Stage::Living(progress) => progress.moved,
            _ => 0,
        };
        std::mem::replace(&mut self.seen, moved) != moved
    }

    /// Goes on as far as it can.
    pub(super) fn advance(
        &mut self,
        accept: &Accept,
        script: &mut Script,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<Fate> {
        let mut calls = 0;
        loop {
            calls += 1;
            if calls > CALLS_PER_TURN && self.yield_turn() {
                return Ok(Fate::Waits(self.interest(script)));
            }
            if self.blocks && calls > CALLS_PER_TURN {
                // A slow handshake goes on where it delays no other connection.
                self.carrier.socket().set_nonblocking(true)?;
                self.blocks = false;
                return Ok(Fate::Waits(self.interest(script)));
            }
            match self.step(accept, script, tally, local, spin_wait) {
                Ok(Some(fate)) => return Ok(fate),
                Ok(None) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(Fate::Waits(self.interest(script))),
                    io::ErrorKind::Interrupted => {}
                    // A client that closes by a reset, or has gone, has had all before.
                    io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::TimedOut
                        if matches!(self.stage, Stage::Closing) =>
                    {
                        return Ok(Fate::Closes);
                    }
                    _ => return Err(error),
                },
            }
        }
    }

    /// Of a life of more than sends and receives of fixed sizes: has it go on when the others have had their turn.
    fn yield_turn(&mut self) -> bool {
        let Stage::Living(progress) = &mut self.stage else { return false };
        let living = progress.living_mut();
        living.map(Living::yield_turn).is_some()
    }

    /// When it goes on by itself, where that isn't queued yet.
    pub(super) fn take_resumption(&mut self) -> Option<u64> {
        match &mut self.stage {
            Stage::Living(progress) => progress.take_resumption(),
            _ => None,
        }
    }

    /// Its place in a life of more than sends and receives of fixed sizes.
    pub(super) fn living(&self) -> Option<&Living> {
        match &self.stage {
            Stage::Living(progress) => progress.living(),
            _ => self.past.as_deref(),
        }
    }

    fn interest(&self, script: &Script) -> Interest {
        match &self.stage {
            Stage::Living(progress) => match script.interest(progress) {
                Interest::Readable if self.carrier.wants_write() => Interest::Both,
                Interest::Nothing if self.carrier.wants_write() => Interest::Writable,
                interest => interest,
            },
            Stage::Flushing => Interest::Writable,
            _ => Interest::Readable,
        }
    }

    /// One operation; `None`: the next may follow.
    fn step(
        &mut self,
        accept: &Accept,
        script: &mut Script,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<Option<Fate>> {
        match &mut self.stage {
            Stage::Opening => return self.open(accept, script, tally, local, spin_wait),
            Stage::Securing => {
                self.carrier.establish()?;
                self.begin(script, 0);
            }
            Stage::Living(progress) => {
                script.advance(progress, &mut self.carrier, tally, local, spin_wait)?;
                if script.is_over(progress) {
                    self.past = progress.take_living();
                    return Ok(self.conclude(script, tally));
                }
                if !self.blocks && script.awaits(progress, &self.carrier) && !script.is_plain() {
                    return Ok(Some(Fate::Waits(Interest::Readable)));
                }
            }
            Stage::Flushing => {
                self.carrier.flush()?;
                return Ok(self.conclude(script, tally));
            }
            Stage::Closing => {
                self.past.iter_mut().for_each(|past| past.call = Call::Receive);
                let into = &mut local.receive_buffer;
                let length = self.carrier.receive(Awaited::Close, into, spin_wait)?;
                script.take_excess(length)?;
                // A client that sends too much gets no more turns than the others.
                return Ok(Some(match length {
                    0 => Fate::Closes,
                    _ => Fate::Waits(Interest::Readable),
                }));
            }
        }
        Ok(None)
    }

    /// All transfers are over.
    fn conclude(&mut self, script: &Script, tally: &Tally) -> Option<Fate> {
        if self.carrier.wants_write() {
            self.stage = Stage::Flushing;
            return Some(Fate::Waits(Interest::Writable));
        }
        tally.transactions.add(1);
        if matches!(script.close, Close::AtOnce | Close::Reset) {
            return Some(Fate::Closes);
        }
        self.stage = Stage::Closing;
        match self.blocks {
            // Answered before its last word, which brings the ticket that the client waits for.
            _ if self.carrier.is_handshaking() => Some(Fate::Waits(Interest::Readable)),
            true => None,
            false => Some(Fate::Answered),
        }
    }

    /// Sees whose connection it is, and takes what comes with the opening.
    fn open(
        &mut self,
        accept: &Accept,
        script: &mut Script,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<Option<Fate>> {
        let Some(shared) = &accept.shared else {
            if tally.first_ns.value() == 0 {
                tally.first_ns.set(monotonic_ns());
            }
            self.prepare(accept, script, 0, 0)?;
            return Ok(None);
        };
        let most = local.receive_buffer.len();
        let first = if accept.tls.is_some() { 0 } else { script.first_received(most) };
        let most = most.min(OPENING_BYTES + first);
        let buffer = &mut local.receive_buffer[..most];
        let seen = match spin_wait {
            Some(spin_wait) => {
                spin_wait.receive(Awaited::Bytes, self.carrier.socket(), buffer, RecvFlags::PEEK)?
            }
            None => recv(self.carrier.as_fd(), &mut *buffer, RecvFlags::PEEK)?.0,
        };
        match sniff(&buffer[..seen.min(OPENING_BYTES)]) {
            // One that comes in pieces goes to the server's first thread: there it waits without being looked at.
            Some(Arrival::Data) if seen < OPENING_BYTES => return Ok(Some(Fate::Foreign)),
            Some(Arrival::Data) => {}
            _ => return Ok(Some(Fate::Foreign)),
        }
        let opening = buffer.first_chunk::<OPENING_BYTES>().map(Opening::decode);
        let number = match opening {
            Some(Ok(opening)) if opening.token == shared.token => opening.flow,
            _ => return Ok(Some(Fate::Foreign)),
        };
        let (length, _) = recv(self.carrier.as_fd(), &mut *buffer, RecvFlags::empty())?;
        if tally.first_ns.value() == 0 {
            tally.first_ns.set(monotonic_ns());
        }
        let received = length.saturating_sub(OPENING_BYTES);
        tally.record_received(received);
        self.expires_ns = 0;
        self.prepare(accept, script, number, received)?;
        Ok(None)
    }
}
