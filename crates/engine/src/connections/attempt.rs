//! One connection at the client, from its first packet to its close.

use std::io;
use std::sync::Arc;

use linerate_measure::Handshake;
use linerate_measure::step::Close;
use rustls::{ClientConnection, Connection};

use super::Interest;
use super::carrier::Carrier;
use super::script::{Progress, Script};
use super::slots::Milestones;
use super::source::Dialed;
use super::spin_wait::{Awaited, SpinWait};
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Local};
use crate::tally::Tally;

/// What every connection of a shard does.
pub(super) struct Part {
    /// What goes before all payload, and behind it the beginning of the life's first bytes.
    pub(super) first_bytes: Vec<u8>,
    /// How much of it is no payload.
    pub(super) prefix_bytes: usize,
    pub(super) script: Script,
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
    /// How connections are to agree on their keys.
    pub(super) handshake: Handshake,
}

/// A connection under way.
pub(super) struct Attempt {
    carrier: Carrier,
    stage: Stage,
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
    /// What had moved when it was last seen to go on, and when that was.
    seen: (u64, u64),
}

/// How far it has come.
enum Stage {
    /// So many of the first bytes have left.
    Opening(usize),
    Securing,
    Living(Progress),
    /// All is sent but what the socket has not taken.
    Flushing,
    /// All is here but the ticket that the next connection needs.
    Parting,
    /// The server closes.
    Closing,
}

impl Attempt {
    pub(super) fn new(dialed: Dialed, blocks: bool, due_ns: u64, warm_up: bool) -> Self {
        Self {
            carrier: Carrier::new(dialed.socket),
            connecting: blocks && dialed.in_progress,
            stage: Stage::Opening(0),
            watched: None,
            due_ns,
            began_ns: dialed.began_ns,
            warm_up,
            established_ns: 0,
            first_byte_ns: 0,
            answered_ns: 0,
            early: 0,
            seen: (0, dialed.began_ns),
        }
    }

    pub(super) fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// Since when nothing has moved on it, as far as was seen.
    pub(super) fn silent_since_ns(&mut self, now_ns: u64) -> u64 {
        let moved = match &self.stage {
            Stage::Living(progress) => progress.moved,
            Stage::Opening(_) | Stage::Securing => 0,
            _ => u64::MAX,
        };
        if moved != self.seen.0 {
            self.seen = (moved, now_ns);
        }
        self.seen.1
    }

    /// Goes on as far as it can; `None`: everything is done but the close. Where it `returns`, it comes back before
    /// it waits for the server.
    pub(super) fn advance(
        &mut self,
        returns: bool,
        part: &mut Part,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<Option<Interest>> {
        for _ in 0..CALLS_PER_TURN {
            match self.step(part, tally, local, spin_wait) {
                Ok(true) => return Ok(None),
                // The response can't be here yet; asking for it now would be a call for nothing.
                Ok(false) if returns && self.is_to_wait(part) => break,
                Ok(false) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(Some(match &self.stage {
            Stage::Opening(_) | Stage::Flushing => Interest::Writable,
            Stage::Living(progress) => match part.script.interest(progress) {
                Interest::Readable if self.carrier.wants_write() => Interest::Writable,
                interest => interest,
            },
            _ if self.carrier.wants_write() => Interest::Writable,
            Stage::Securing | Stage::Parting | Stage::Closing => Interest::Readable,
        }))
    }

    fn is_to_wait(&self, part: &Part) -> bool {
        match &self.stage {
            Stage::Living(progress) => part.script.awaits(progress),
            Stage::Closing => true,
            _ => false,
        }
    }

    /// One operation; says whether everything is done but the close.
    fn step(
        &mut self,
        part: &mut Part,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<bool> {
        match &mut self.stage {
            Stage::Opening(_) if self.connecting => {
                self.carrier.await_connection()?;
                self.connecting = false;
            }
            Stage::Opening(done) => {
                let done = *done;
                return self.open(done, part, tally, local);
            }
            Stage::Securing => {
                self.carrier.establish()?;
                self.established_ns = monotonic_ns();
                // What was said early and not taken is forgotten, and said again.
                let taken = self.carrier.handshake() == Some(Handshake::Early);
                let progress = part.script.begin(if taken { self.early } else { 0 }, 0);
                return self.go_on(progress, part);
            }
            Stage::Living(progress) => {
                part.script.advance(progress, &mut self.carrier, tally, local, spin_wait)?;
                if self.first_byte_ns == 0 && progress.has_received {
                    self.first_byte_ns = monotonic_ns();
                }
                if part.script.is_over(progress) {
                    return self.conclude(part);
                }
            }
            Stage::Flushing => {
                self.carrier.flush()?;
                return self.conclude(part);
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
                let into = &mut local.receive_buffer;
                let length = self.carrier.receive(Awaited::Close, into, spin_wait)?;
                tally.record_received(length);
                return Ok(length == 0);
            }
        }
        Ok(false)
    }

    /// Sends the first bytes, of which so many have left.
    fn open(
        &mut self,
        done: usize,
        part: &mut Part,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<bool> {
        let tried_ns = if done == 0 { monotonic_ns() } else { self.established_ns };
        let rest = part.first_bytes.get(done..).unwrap_or_default();
        if !rest.is_empty() {
            let sent = self.carrier.send(rest)?;
            // What goes before the request is no payload.
            let payload = |bytes: usize| bytes.saturating_sub(part.prefix_bytes);
            tally.record_sent(payload(done + sent) - payload(done));
            self.stage = Stage::Opening(done + sent);
            self.established_ns = tried_ns;
            if sent < rest.len() {
                return Ok(false);
            }
        }
        match &part.tls {
            None => {
                self.established_ns = tried_ns;
                let sent = part.first_bytes.len() - part.prefix_bytes;
                self.go_on(part.script.begin(sent, 0), part)
            }
            Some(config) => {
                self.carrier.secure(session(config)?);
                self.send_early(part, tally, local)?;
                self.stage = Stage::Securing;
                Ok(false)
            }
        }
    }

    /// Goes on with what is left of its life; says whether everything is done but the close.
    fn go_on(&mut self, progress: Progress, part: &Part) -> io::Result<bool> {
        let is_over = part.script.is_over(&progress);
        self.stage = Stage::Living(progress);
        if is_over { self.conclude(part) } else { Ok(false) }
    }

    /// All transfers are over; says whether everything is done but the close.
    fn conclude(&mut self, part: &Part) -> io::Result<bool> {
        if self.carrier.wants_write() {
            self.stage = Stage::Flushing;
            return Ok(false);
        }
        if part.handshake != Handshake::Full {
            self.answered_ns = monotonic_ns();
            self.stage = Stage::Parting;
            return Ok(false);
        }
        self.stage = Stage::Closing;
        match part.script.close {
            Close::AtOnce | Close::Reset => return Ok(true),
            Close::Graceful => self.carrier.finish_sending()?,
            Close::AfterPeer | Close::AfterReset => {}
        }
        Ok(false)
    }

    /// Sends as much of the request as may leave with the first messages.
    fn send_early(&mut self, part: &Part, tally: &Tally, local: &Local) -> io::Result<()> {
        if part.handshake != Handshake::Early {
            return Ok(());
        }
        let length = part.script.first_sent(local.receive_buffer.len());
        self.early = self.carrier.send_early(local.pattern.slice(0, length))?;
        if self.early > 0 {
            tally.record_sent(self.early);
        }
        Ok(())
    }

    /// Closes it, and says when each part was done.
    pub(super) fn close(self, close: Close) -> Milestones {
        let handshake = self.carrier.handshake();
        match close {
            Close::Reset => self.carrier.reset(),
            _ => self.carrier.close(),
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
