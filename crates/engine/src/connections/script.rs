//! What goes over connections that come and go, and how far one of them has come.

use std::io;

use linerate_measure::step::{Close, Life, LifeStep};

use super::Interest;
use super::carrier::Carrier;
use super::spin_wait::{Awaited, SpinWait};
use crate::buffers::{Buffers, Dirt};
use crate::flow::Local;
use crate::tally::Tally;

/// Bytes of the largest send from a dialect's own buffer.
const MOST_BYTES: usize = 1 << 20;

/// What each connection of a load does at this end, and with which bytes.
pub(super) struct Script {
    steps: Vec<LifeStep>,
    pub(super) close: Close,
    /// What is sent, over and over; absent: the pattern.
    outgoing: Option<Vec<u8>>,
    dirt: Dirt,
}

/// How far one connection has come in its life.
#[derive(Default)]
pub(super) struct Progress {
    /// Steps that are over.
    done: usize,
    /// Bytes of the step after them.
    sent: u64,
    received: u64,
    /// Bytes of all steps.
    pub(super) moved: u64,
    /// Whether anything was received.
    pub(super) has_received: bool,
}

impl Script {
    pub(super) fn new(life: &Life, buffers: &Buffers) -> Self {
        let most = life.steps.iter().map(|step| step.amounts().0).max().unwrap_or(0);
        let most = usize::try_from(most).unwrap_or(usize::MAX).clamp(1, MOST_BYTES);
        Self {
            steps: life.steps.clone(),
            close: life.close,
            outgoing: (!buffers.are_plain()).then(|| buffers.filled(most, 1)),
            dirt: buffers.dirt,
        }
    }

    /// Whether a step sends and receives at once: then no call may block.
    pub(super) fn has_duplex(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, LifeStep::Duplex { .. }))
    }

    /// Bytes of the pattern with which the life begins, of so many at most.
    pub(super) fn first_sent(&self, most: usize) -> usize {
        match self.steps.first() {
            Some(step @ LifeStep::Send { .. }) if self.outgoing.is_none() => {
                usize::try_from(step.amounts().0).unwrap_or(usize::MAX).min(most)
            }
            _ => 0,
        }
    }

    /// Bytes with which the peer begins, of so many at most.
    pub(super) fn first_received(&self, most: usize) -> usize {
        match self.steps.first() {
            Some(step @ LifeStep::Receive { .. }) => {
                usize::try_from(step.amounts().1).unwrap_or(usize::MAX).min(most)
            }
            _ => 0,
        }
    }

    /// A life of which so many bytes were sent and received already.
    pub(super) fn begin(&self, sent: usize, received: usize) -> Progress {
        let mut progress = Progress::default();
        self.record(&mut progress, sent as u64, received as u64);
        progress
    }

    /// Whether nothing is left to do.
    pub(super) fn is_over(&self, progress: &Progress) -> bool {
        progress.done == self.steps.len()
    }

    /// Whether the next thing is to receive, and nothing of it has come.
    pub(super) fn awaits(&self, progress: &Progress) -> bool {
        progress.received == 0
            && matches!(self.steps.get(progress.done), Some(LifeStep::Receive { .. }))
    }

    /// What the connection waits for.
    pub(super) fn interest(&self, progress: &Progress) -> Interest {
        let (send, receive) = self.steps.get(progress.done).map_or((0, 0), |step| step.amounts());
        match (progress.sent < send, progress.received < receive) {
            (true, true) => Interest::Both,
            (true, false) => Interest::Writable,
            _ => Interest::Readable,
        }
    }

    /// One operation, or one each way.
    #[inline]
    pub(super) fn advance(
        &mut self,
        progress: &mut Progress,
        carrier: &mut Carrier,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<()> {
        let Some(step) = self.steps.get(progress.done) else { return Ok(()) };
        let (send, receive) = step.amounts();
        let (send, receive) = (send - progress.sent, receive - progress.received);
        let sent = match send {
            0 => Ok(0),
            left => self.send(left, carrier, tally, local),
        };
        let received = match (receive, &sent) {
            (0, _) => Ok(0),
            // Where the connection is broken, that is all there is to tell.
            (_, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Ok(0),
            (left, _) => self.receive(left, carrier, tally, local, spin_wait),
        };
        match (sent, received) {
            (Ok(sent), Ok(received)) => self.record(progress, sent, received),
            (Ok(sent), Err(error)) if sent > 0 && error.kind() == io::ErrorKind::WouldBlock => {
                self.record(progress, sent, 0);
            }
            (Err(error), Ok(received))
                if received > 0 && error.kind() == io::ErrorKind::WouldBlock =>
            {
                self.record(progress, 0, received);
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        }
        Ok(())
    }

    #[inline]
    fn record(&self, progress: &mut Progress, sent: u64, received: u64) {
        progress.sent += sent;
        progress.received += received;
        progress.moved += sent + received;
        progress.has_received |= received > 0;
        while let Some(step) = self.steps.get(progress.done)
            && step.amounts() == (progress.sent, progress.received)
        {
            (progress.done, progress.sent, progress.received) = (progress.done + 1, 0, 0);
        }
    }

    fn send(
        &mut self,
        left: u64,
        carrier: &mut Carrier,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<u64> {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let sent = match &mut self.outgoing {
            None => carrier.send(local.pattern.slice(0, left.min(local.receive_buffer.len())))?,
            Some(outgoing) => {
                let length = left.min(outgoing.len());
                let piece = outgoing.get_mut(..length).unwrap_or_default();
                self.dirt.before_send(piece);
                carrier.send(piece)?
            }
        };
        tally.record_sent(sent);
        Ok(sent as u64)
    }

    fn receive(
        &self,
        left: u64,
        carrier: &mut Carrier,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<u64> {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(local.receive_buffer.len());
        let into = local.receive_buffer.get_mut(..most).unwrap_or_default();
        self.dirt.before_receive(into);
        let length = carrier.receive(Awaited::Bytes, into, spin_wait)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        tally.record_received(length);
        Ok(length as u64)
    }
}
