//! One connection at the client, from its first packet to its close.

use std::io;
use std::sync::Arc;

use linerate_wire::native::opening::OPENING_BYTES;
use linerate_wire::step::Closing;
use rustls::{ClientConnection, Connection};

use super::Interest;
use super::carrier::Carrier;
use super::places::Milestones;
use super::source::Dialed;
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
}

/// How far it has come; the numbers are bytes done.
enum Stage {
    Opening(usize),
    Securing,
    Requesting(usize),
    Awaiting(usize),
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
    ) -> io::Result<Option<Interest>> {
        for _ in 0..CALLS_PER_TURN {
            match self.step(script, tally, local) {
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
            Stage::Securing | Stage::Awaiting(_) | Stage::Closing => Interest::Readable,
        }))
    }

    /// One operation; says whether everything is done but the close.
    fn step(&mut self, script: &Script, tally: &Tally, local: &mut Local) -> io::Result<bool> {
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
                        Stage::Securing
                    }
                };
            }
            Stage::Securing => {
                self.carrier.establish()?;
                self.established_ns = monotonic_ns();
                self.stage = Stage::Requesting(0);
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
                let length = self.receive(tally, local)?;
                if length == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if done == 0 {
                    self.first_byte_ns = monotonic_ns();
                }
                self.stage = Stage::Awaiting(done + length);
                if done + length >= script.response_bytes {
                    self.stage = Stage::Closing;
                    return Ok(script.close != Closing::Server);
                }
            }
            Stage::Closing => return Ok(self.receive(tally, local)? == 0),
        }
        Ok(false)
    }

    fn receive(&mut self, tally: &Tally, local: &mut Local) -> io::Result<usize> {
        let length = self.carrier.receive(&mut local.receive_buffer)?;
        tally.record_received(length);
        Ok(length)
    }

    /// Closes it, and says when each part was done.
    pub(super) fn close(self, close: Closing) -> Milestones {
        match close {
            Closing::Fin | Closing::Server => self.carrier.close(),
            Closing::Rst => self.carrier.reset(),
        }
        Milestones {
            due_ns: self.due_ns,
            began_ns: self.began_ns,
            established_ns: self.established_ns,
            first_byte_ns: self.first_byte_ns,
            closed_ns: monotonic_ns(),
            warm_up: self.warm_up,
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
