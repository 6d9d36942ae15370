//! What goes over connections that come and go, and how far one of them has come.

use std::io;

use linerate_measure::step::{Close, Life, LifeStep};

use super::Interest;
use super::spin_wait::Awaited;
use crate::buffers::{Buffers, Dirt};
use crate::flow::Local;
use crate::tally::Tally;

/// Bytes of the largest send from a dialect's own buffer.
const MOST_BYTES: usize = 1 << 20;

/// What carries the bytes of a life: a connection, or a stream of one. An operation that can't go on fails with
/// `WouldBlock`.
pub(crate) trait LifeStream {
    /// How a loop that has one connection at a time waits.
    type Wait;

    /// Sends the beginning of `bytes`; says how many.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Receives into the beginning of `into`; says how many bytes, 0 when the peer has finished.
    fn receive(
        &mut self,
        awaited: Awaited,
        into: &mut [u8],
        wait: &mut Self::Wait,
    ) -> io::Result<usize>;

    /// All that the life sends was given to be sent. A connection that is closed as a whole needs no word of that.
    fn end_sending(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What each connection of a load does at this end, and with which bytes.
pub(crate) struct Script {
    steps: Vec<LifeStep>,
    /// Steps up to the last one that sends.
    sending_steps: usize,
    pub(super) close: Close,
    /// What is sent, over and over; absent: the pattern.
    outgoing: Option<Vec<u8>>,
    dirt: Dirt,
}

/// How far one connection has come in its life.
#[derive(Default)]
pub(crate) struct Progress {
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
    pub(crate) fn new(life: &Life, buffers: &Buffers) -> Self {
        let most = life.steps.iter().map(|step| step.amounts().0).max().unwrap_or(0);
        let most = usize::try_from(most).unwrap_or(usize::MAX).clamp(1, MOST_BYTES);
        let last_sending = life.steps.iter().rposition(|step| step.amounts().0 > 0);
        Self {
            sending_steps: last_sending.map_or(0, |index| index + 1),
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
    pub(crate) fn begin(&self, sent: usize, received: usize) -> Progress {
        let mut progress = Progress::default();
        self.record(&mut progress, sent as u64, received as u64);
        progress
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_over(&self, progress: &Progress) -> bool {
        progress.done == self.steps.len()
    }

    /// Whether nothing is left to send.
    pub(crate) fn has_sent_all(&self, progress: &Progress) -> bool {
        match self.steps.get(progress.done) {
            Some(step) if progress.done + 1 == self.sending_steps => {
                progress.sent == step.amounts().0
            }
            _ => progress.done >= self.sending_steps,
        }
    }

    /// Whether the life is over when the last bytes were sent: nothing that comes then shows that they have arrived.
    pub(crate) fn ends_by_sending(&self) -> bool {
        self.sending_steps > 0 && self.sending_steps == self.steps.len()
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
    pub(crate) fn advance<S: LifeStream>(
        &mut self,
        progress: &mut Progress,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
        wait: &mut S::Wait,
    ) -> io::Result<()> {
        let Some(step) = self.steps.get(progress.done) else { return Ok(()) };
        let (send, receive) = step.amounts();
        let (send, receive) = (send - progress.sent, receive - progress.received);
        let sent = match send {
            0 => Ok(0),
            left => self.send(left, stream, tally, local),
        };
        let received = match (receive, &sent) {
            (0, _) => Ok(0),
            // Where the connection is broken, that is all there is to tell.
            (_, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Ok(0),
            (left, _) => self.receive(left, stream, tally, local, wait),
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
        if send > 0 && self.has_sent_all(progress) {
            stream.end_sending()?;
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

    fn send<S: LifeStream>(
        &mut self,
        left: u64,
        stream: &mut S,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<u64> {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let sent = match &mut self.outgoing {
            None => stream.send(local.pattern.slice(0, left.min(local.receive_buffer.len())))?,
            Some(outgoing) => {
                let length = left.min(outgoing.len());
                let piece = outgoing.get_mut(..length).unwrap_or_default();
                self.dirt.before_send(piece);
                stream.send(piece)?
            }
        };
        tally.record_sent(sent);
        Ok(sent as u64)
    }

    fn receive<S: LifeStream>(
        &self,
        left: u64,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
        wait: &mut S::Wait,
    ) -> io::Result<u64> {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(local.receive_buffer.len());
        let into = local.receive_buffer.get_mut(..most).unwrap_or_default();
        self.dirt.before_receive(into);
        let length = stream.receive(Awaited::Bytes, into, wait)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        tally.record_received(length);
        Ok(length as u64)
    }
}
