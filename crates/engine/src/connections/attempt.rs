//! One connection at the client, from its first packet to its close.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_measure::Handshake;
use linerate_measure::sample::TcpStatus;
use linerate_measure::step::{Close, Life};
use linerate_wire::native::opening::Opening;

use super::Interest;
use super::finished::Call;
use super::living::Living;
use super::script::{LifeStream, Progress, Script};
use super::slots::Milestones;
use super::spin_wait::Awaited;
use crate::buffers::Buffers;
use crate::clock::monotonic_ns;
use crate::flow::Local;
use crate::socket::TcpCounts;
use crate::tally::Tally;

/// More bytes than the buffers of both ends hold of a connection that the server hasn't accepted: twice what the
/// kernel lets either grow to unasked (tcp_wmem, tcp_rmem).
const MOST_QUEUED_BYTES: u64 = 16 << 20;

/// What every connection of a shard does.
pub(crate) struct Part {
    /// What goes before all payload, and behind it the beginning of the life's first bytes.
    pub(crate) first_bytes: Vec<u8>,
    /// How much of it is no payload.
    prefix_bytes: usize,
    /// The test's token, with which each connection begins.
    token: Option<[u8; 16]>,
    pub(crate) script: Script,
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
    /// How connections are to agree on their keys.
    pub(super) handshake: Handshake,
}

impl Part {
    /// Payload goes along with the opening unless TLS is agreed on between them.
    pub(crate) fn new(
        life: &Life,
        buffers: &Buffers,
        opening: Option<Opening>,
        (tls, handshake): (Option<Arc<rustls::ClientConfig>>, Handshake),
        local: &Local,
    ) -> Self {
        let script = Script::new(life, buffers);
        let token = opening.map(|opening| opening.token);
        let mut first_bytes = opening.map_or_else(Vec::new, |opening| opening.encode().to_vec());
        let prefix_bytes = first_bytes.len();
        if tls.is_none() {
            let length = script.first_sent(local.receive_buffer.len());
            first_bytes.extend_from_slice(local.pattern.slice(0, length));
        }
        Self { first_bytes, prefix_bytes, token, script, tls, handshake }
    }

    /// The connection that begins next is that of this number. The opening says so where the two ends are to agree
    /// on it.
    fn set_number(&mut self, number: u32) {
        self.script.set_number(number);
        if let (true, Some(token)) = (self.script.is_numbered(), self.token) {
            let opening = Opening { flow: number, token }.encode();
            for (place, byte) in self.first_bytes.iter_mut().zip(opening) {
                *place = byte;
            }
        }
    }

    /// Payload among so many of the first bytes.
    pub(crate) fn payload(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.prefix_bytes)
    }
}

/// What carries a connection that comes and goes.
pub(crate) trait Carrier: LifeStream {
    /// How far a client's connection has come before its life.
    type Opening;

    /// Operations of one connection before others have their turn.
    const OPERATIONS_PER_TURN: u32;

    /// Does one operation of what comes before the life, and notes when the connection stood; returns how far the
    /// life has come where it begins.
    fn open(
        &mut self,
        opening: &mut Self::Opening,
        part: &Part,
        times: &mut Milestones,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<Option<Progress>>;

    /// Whether something that was given to be sent must leave before the close.
    fn wants_write(&self) -> bool;

    /// Has it leave.
    fn flush(&mut self) -> io::Result<()>;

    /// Waits for the ticket that the server gives.
    fn take_ticket(&mut self) -> io::Result<()>;

    /// Says that nothing more will be sent.
    fn finish_sending(&mut self) -> io::Result<()>;

    /// Reads what has come and forgets it, without waiting; says how many bytes, 0 when the peer has finished.
    fn discard(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }

    /// How the ends agreed on their keys, once they have.
    fn handshake(&self) -> Option<Handshake>;

    /// This end's address and the other's, where there are any.
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        None
    }

    /// Bytes that were sent and that the peer has not acknowledged, where the kernel tells.
    fn unacknowledged_bytes(&self) -> u64 {
        0
    }

    /// What the kernel knows of it, where it is TCP.
    fn kernel_figures(&self) -> Option<(TcpStatus, TcpCounts)> {
        None
    }

    /// Closes in order.
    fn close(self);

    /// Closes at once.
    fn reset(self);

    /// Closes what has failed, so that the peer knows it has.
    fn fail(self)
    where
        Self: Sized,
    {
        self.reset();
    }
}

/// A connection under way.
pub(crate) struct Attempt<C: Carrier> {
    pub(crate) carrier: C,
    pub(super) opening: C::Opening,
    pub(super) stage: Stage,
    /// Its number among the load's connections.
    number: u32,
    /// Whether it may still wait in the listener's queue.
    pub(super) is_pending: bool,
    /// The life that is over, of one that waits for its close.
    past: Option<Box<Living>>,
    /// What the poll set watches it for, where there is one.
    pub(super) watched: Option<Interest>,
    /// `closed_ns` is 0 until it had what it came for and waited for a ticket.
    pub(super) times: Milestones,
    /// What had moved when it was last seen to go on, and when that was.
    seen: (u64, u64),
}

/// How far it has come.
pub(super) enum Stage {
    Opening,
    Living(Progress),
    /// All is sent but what has not left.
    Flushing,
    /// All is here but the ticket that the next connection needs.
    Parting,
    /// The server closes.
    Closing,
}

impl<C: Carrier> Attempt<C> {
    /// One with its number that was due at a time; without a schedule, when it began.
    pub(super) fn new(
        (carrier, opening): (C, C::Opening),
        number: u32,
        due_ns: u64,
        began_ns: u64,
        warm_up: bool,
    ) -> Self {
        let times = Milestones { due_ns, began_ns, warm_up, ..Milestones::default() };
        let (stage, seen) = (Stage::Opening, (0, began_ns));
        Self {
            carrier,
            opening,
            stage,
            number,
            is_pending: true,
            past: None,
            watched: None,
            times,
            seen,
        }
    }

    /// Whether the server has taken it from its listener's queue, as far as is known: something has come, or more has
    /// left than waits there.
    pub(super) fn is_accepted(&self) -> bool {
        let moved = match &self.stage {
            Stage::Living(progress) => progress.moved,
            _ => 0,
        };
        self.times.first_byte_ns > 0 || moved > MOST_QUEUED_BYTES
    }

    /// Whether it waits for a ticket and nothing else.
    pub(crate) fn is_parting(&self) -> bool {
        matches!(self.stage, Stage::Parting)
    }

    /// Since when nothing has moved on it, as far as was seen.
    pub(super) fn silent_since_ns(&mut self, now_ns: u64) -> u64 {
        let moved = match &self.stage {
            Stage::Living(progress) => progress.moved,
            Stage::Opening => 0,
            _ => u64::MAX,
        };
        let pauses = matches!(&self.stage, Stage::Living(progress) if progress.is_paused(now_ns));
        if moved != self.seen.0 || pauses {
            self.seen = (moved, now_ns);
        }
        self.seen.1
    }

    /// Goes on as far as it can; says whether everything is done but the close. Where it `returns`, it comes back
    /// before it waits for the server.
    pub(super) fn advance(
        &mut self,
        returns: bool,
        part: &mut Part,
        tally: &Tally,
        local: &mut Local,
        wait: &mut C::Wait,
    ) -> io::Result<bool> {
        for _ in 0..C::OPERATIONS_PER_TURN {
            match self.step(part, tally, local, wait) {
                Ok(true) => return Ok(true),
                // The response can't be here yet; asking for it now would be a call for nothing.
                Ok(false) if returns && self.is_to_wait(part) => return Ok(false),
                Ok(false) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(false),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        if let Stage::Living(progress) = &mut self.stage
            && let Some(living) = progress.living_mut()
        {
            living.yield_turn();
        }
        Ok(false)
    }

    /// Holds it open no longer; says whether it was held.
    pub(super) fn end_hold(&mut self, part: &Part) -> bool {
        let Stage::Living(progress) = &mut self.stage else { return false };
        part.script.end_hold(progress)
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

    fn is_to_wait(&self, part: &Part) -> bool {
        match &self.stage {
            Stage::Living(progress) => part.script.awaits(progress, &self.carrier),
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
        wait: &mut C::Wait,
    ) -> io::Result<bool> {
        match &mut self.stage {
            Stage::Opening => {
                part.set_number(self.number);
                let opened =
                    self.carrier.open(&mut self.opening, part, &mut self.times, tally, local)?;
                let Some(mut progress) = opened else { return Ok(false) };
                part.script.tell_established(&mut progress, &self.carrier);
                let is_over = part.script.is_over(&progress);
                self.stage = Stage::Living(progress);
                if is_over {
                    return self.end_life(part);
                }
            }
            Stage::Living(progress) => {
                part.script.advance(progress, &mut self.carrier, tally, local, wait)?;
                if self.times.first_byte_ns == 0 && progress.has_received {
                    self.times.first_byte_ns = monotonic_ns();
                }
                if part.script.is_over(progress) {
                    return self.end_life(part);
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
                self.past.iter_mut().for_each(|past| past.call = Call::Receive);
                let into = &mut local.receive_buffer;
                let length = self.carrier.receive(Awaited::Close, into, wait)?;
                tally.record_received(length);
                part.script.take_excess(length)?;
                return Ok(length == 0);
            }
        }
        Ok(false)
    }

    /// Nothing of its life is left; says whether everything is done but the close.
    fn end_life(&mut self, part: &Part) -> io::Result<bool> {
        if let Stage::Living(progress) = &mut self.stage {
            self.past = progress.take_living();
        }
        self.conclude(part)
    }

    /// All transfers are over; says whether everything is done but the close.
    fn conclude(&mut self, part: &Part) -> io::Result<bool> {
        if self.carrier.wants_write() {
            self.stage = Stage::Flushing;
            return Ok(false);
        }
        if part.handshake != Handshake::Full {
            self.times.closed_ns = monotonic_ns();
            self.stage = Stage::Parting;
            return Ok(false);
        }
        self.stage = Stage::Closing;
        match part.script.close_of(self.past.as_deref()) {
            Close::AtOnce | Close::Reset => return Ok(true),
            Close::Graceful | Close::Drawn => {
                self.past.iter_mut().for_each(|past| past.call = Call::Shutdown);
                self.carrier.finish_sending()?;
            }
            Close::AfterPeer | Close::AfterReset => {}
        }
        Ok(false)
    }

    /// Closes it, and says when each part was done.
    pub(super) fn close(self, close: Close) -> Milestones {
        let handshake = self.carrier.handshake();
        match close {
            Close::Reset => self.carrier.reset(),
            _ => self.carrier.close(),
        }
        let mut times = Milestones { handshake, ..self.times };
        // What waits for a ticket, or was held open, has been done before.
        times.closed_ns = match self.past {
            Some(past) if past.held_ns > 0 => {
                times.released_ns = monotonic_ns();
                past.held_ns
            }
            _ => times.closed_ns,
        };
        if times.closed_ns == 0 {
            times.closed_ns = monotonic_ns();
        }
        times
    }
}
