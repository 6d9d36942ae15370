//! One connection at the client, from its first packet to its close.

use std::io;
use std::sync::Arc;

use linerate_measure::{Closing, Handshake};
use linerate_wire::native::opening::OPENING_BYTES;
use rustls::{ClientConnection, Connection};

use super::Interest;
use super::carrier::Carrier;
use super::places::Milestones;
use super::source::Dialed;
use super::spin_wait::{Awaited, SpinWait};
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Local};
use crate::tally::Tally;

/// What every connection of a shard says and awaits.
pub(super) struct Script {
    /// The opening; without TLS the request follows it at once.
    pub(super) first_bytes: Vec<u8>,
    /// The request, under TLS.
    pub(super) request_bytes: usize,
    pub(super) response_bytes: usize,
    pub(super) close: Closing,
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
    /// How connections are to agree on their keys.
    pub(super) handshake: Handshake,
}

/// A connection under way.
pub(super) struct Attempt {
    carrier: Carrier,
    stage: Stage,
    /// Whether its socket blocks.
    blocks: bool,
    /// Whether a socket that blocks came back before the connection stood.
    connecting: bool,
    /// What the poll set watches it for.
    pub(super) watched: Option<Interest>,
    /// When it was due; without a schedule, when it began.
    pub(super) due_ns: u64,
    pub(super) began_ns: u64,
    pub(super) warm_up: bool,
    established_ns: u64,
    first_byte_ns: u64,
    /// When it had what it came for and waited for a ticket; 0: it never did.
    answered_ns: u64,
    /// Bytes of the request that left before the handshake was done.
    early: usize,
}

/// How far it has come; the numbers are bytes done.
enum Stage {
    Opening(usize),
    Securing,
    Requesting(usize),
    Awaiting(usize),
    /// The response is here, and the ticket that the next connection needs is not.
    Parting,
    /// The response is here; the server closes.
    Closing,
}

impl Attempt {
    pub(super) fn new(dialed: Dialed, blocks: bool, due_ns: u64, warm_up: bool) -> Self {
        Self {
            carrier: Carrier::new(dialed.socket),
            connecting: blocks && dialed.in_progress,
            stage: Stage::Opening(0),
            blocks,
            watched: None,
            due_ns,
            began_ns: dialed.began_ns,
            warm_up,
            established_ns: 0,
            first_byte_ns: 0,
            answered_ns: 0,
            early: 0,
        }
    }

    pub(super) fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// Goes on as far as it can.
    pub(super) fn advance(
        &mut self,
        script: &Script,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<Option<Interest>> {
        for _ in 0..CALLS_PER_TURN {
            match self.step(script, tally, local, spin_wait) {
                Ok(true) => return Ok(None),
                // The response can't be here yet; asking for it now would be a call for nothing.
                Ok(false) if !self.blocks && matches!(self.stage, Stage::Awaiting(0)) => break,
                Ok(false) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(Some(match self.stage {
            Stage::Opening(_) | Stage::Requesting(_) => Interest::Writable,
            _ if self.carrier.wants_write() => Interest::Writable,
            Stage::Securing | Stage::Awaiting(_) | Stage::Parting | Stage::Closing => {
                Interest::Readable
            }
        }))
    }

    /// One operation; says whether everything is done but the close.
    fn step(
        &mut self,
        script: &Script,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<bool> {
        match self.stage {
            Stage::Opening(_) if self.connecting => {
                self.carrier.await_connection()?;
                self.connecting = false;
            }
            Stage::Opening(done) => {
                let tried_ns = monotonic_ns();
                let sent = self.carrier.send(&script.first_bytes[done..])?;
                if done == 0 && script.tls.is_none() {
                    self.established_ns = tried_ns;
                }
                // What goes before the request is no payload.
                let payload = |bytes: usize| bytes.saturating_sub(OPENING_BYTES);
                tally.record_sent(payload(done + sent) - payload(done));
                self.stage = match (done + sent == script.first_bytes.len(), &script.tls) {
                    (false, _) => Stage::Opening(done + sent),
                    (true, None) => Stage::Awaiting(0),
                    (true, Some(config)) => {
                        self.carrier.secure(session(config)?);
                        self.send_early(script, tally, local)?;
                        Stage::Securing
                    }
                };
            }
            Stage::Securing => {
                self.carrier.establish()?;
                self.established_ns = monotonic_ns();
                // What was said early and not taken is forgotten, and said again.
                let taken = self.carrier.handshake() == Some(Handshake::Early);
                self.stage = match if taken { self.early } else { 0 } {
                    done if done == script.request_bytes => Stage::Awaiting(0),
                    done => Stage::Requesting(done),
                };
            }
            Stage::Requesting(done) => {
                let length = (script.request_bytes - done).min(local.receive_buffer.len());
                let sent = self.carrier.send(local.pattern.slice(0, length))?;
                tally.record_sent(sent);
                self.stage = if done + sent == script.request_bytes {
                    Stage::Awaiting(0)
                } else {
                    Stage::Requesting(done + sent)
                };
            }
            Stage::Awaiting(done) => {
                let length = self.receive(Awaited::Bytes, tally, local, spin_wait)?;
                return self.take_response(done, length, script);
            }
            Stage::Parting => {
                match self.carrier.take_ticket() {
                    // A server that gives none has closed: the next connection will say so.
                    Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                        return Err(error);
                    }
                    _ => return Ok(true),
                }
            }
            Stage::Closing => {
                return Ok(self.receive(Awaited::Close, tally, local, spin_wait)? == 0);
            }
        }
        Ok(false)
    }

    /// So much more of the response has come; says whether everything is done but the close.
    fn take_response(&mut self, done: usize, length: usize, script: &Script) -> io::Result<bool> {
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if done == 0 {
            self.first_byte_ns = monotonic_ns();
        }
        self.stage = Stage::Awaiting(done + length);
        if done + length < script.response_bytes {
            return Ok(false);
        }
        if script.handshake != Handshake::Full {
            self.answered_ns = monotonic_ns();
            self.stage = Stage::Parting;
            return Ok(false);
        }
        self.stage = Stage::Closing;
        Ok(script.close != Closing::Server)
    }

    /// Sends as much of the request as may leave with the first messages.
    fn send_early(&mut self, script: &Script, tally: &Tally, local: &Local) -> io::Result<()> {
        if script.handshake != Handshake::Early {
            return Ok(());
        }
        let length = script.request_bytes.min(local.receive_buffer.len());
        self.early = self.carrier.send_early(local.pattern.slice(0, length))?;
        if self.early > 0 {
            tally.record_sent(self.early);
        }
        Ok(())
    }

    fn receive(
        &mut self,
        awaited: Awaited,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<usize> {
        let length = self.carrier.receive(awaited, &mut local.receive_buffer, spin_wait)?;
        tally.record_received(length);
        Ok(length)
    }

    /// Closes it, and says when each part was done.
    pub(super) fn close(self, close: Closing) -> Milestones {
        let handshake = self.carrier.handshake();
        match close {
            Closing::Fin | Closing::Server => self.carrier.close(),
            Closing::Rst => self.carrier.reset(),
        }
        Milestones {
            due_ns: self.due_ns,
            began_ns: self.began_ns,
            established_ns: self.established_ns,
            first_byte_ns: self.first_byte_ns,
            // What waits for a ticket has been done before.
            closed_ns: if self.answered_ns > 0 { self.answered_ns } else { monotonic_ns() },
            warm_up: self.warm_up,
            handshake,
        }
    }

    /// Gives it up.
    pub(super) fn abandon(self) {
        self.carrier.reset();
    }
}

fn session(config: &Arc<rustls::ClientConfig>) -> io::Result<Connection> {
    ClientConnection::new(Arc::clone(config), crate::control::server_name())
        .map(Connection::from)
        .map_err(io::Error::other)
}
