//! What goes over connections that come and go, and how far one of them has come.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use linerate_measure::random::next_word;
use linerate_measure::step::{Close, Life, LifeFault, LifeStep};

use super::Interest;
use super::attempt::Carrier;
use super::finished::{Call, Finished, TellConnections, Told};
use super::living::{Established, Living, fault};
use super::spin_wait::Awaited;
use crate::buffers::{Buffers, Dirt};
use crate::clock::monotonic_ns;
use crate::control::random;
use crate::flow::{FlowShared, Local};
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

    /// Fails with `WouldBlock` as long as nothing comes on a connection that is held open.
    fn see_silence(&mut self, wait: &mut Self::Wait) -> io::Result<()> {
        match self.receive(Awaited::Bytes, &mut [0], wait)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Err(fault(LifeFault::Excess)),
        }
    }

    /// Whether what the peer sends can only be received from the socket, whose poll set tells of it: nothing is
    /// decrypted before it is asked for.
    fn holds_no_bytes(&self) -> bool {
        false
    }

    /// All that the life sends was given to be sent. A connection that is closed as a whole needs no word of that.
    fn end_sending(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What each connection of a load does at this end, and with which bytes.
pub(crate) struct Script {
    /// Sends and receives of fixed sizes; empty where the life has more than these.
    steps: Vec<LifeStep>,
    /// The life that has more.
    life: Option<Life>,
    /// The number of the connection whose life begins next.
    number: u32,
    /// The random numbers that this end has of its own.
    own: Cell<u64>,
    /// Takes note of what happens to connections.
    tell: Option<TellConnections>,
    /// The flow in whose tally the texts of all connections are counted; absent: each in that of its own.
    texts: Option<Arc<FlowShared>>,
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
    done: u32,
    /// Bytes of the step after them.
    sent: u64,
    received: u64,
    /// Bytes of all steps.
    pub(super) moved: u64,
    /// Whether anything was received.
    pub(super) has_received: bool,
    /// In the place of `done`, `sent` and `received` where the life has more than sends and receives of fixed sizes.
    living: Option<Box<Living>>,
}

impl Script {
    pub(crate) fn new(life: &Life, buffers: &Buffers) -> Self {
        let most = life.steps.iter().map(|step| step.amounts().0).max().unwrap_or(0);
        let most = usize::try_from(most).unwrap_or(usize::MAX).clamp(1, MOST_BYTES);
        let last_sending = life.steps.iter().rposition(LifeStep::sends);
        let is_plain = life.is_plain();
        Self {
            sending_steps: last_sending.map_or(0, |index| index + 1),
            steps: if is_plain { life.steps.clone() } else { Vec::new() },
            life: (!is_plain).then(|| life.clone()),
            number: 0,
            own: Cell::new(if is_plain { 0 } else { random_word() }),
            tell: None,
            texts: None,
            close: life.close,
            outgoing: (!buffers.are_plain()).then(|| buffers.filled(most, 1)),
            dirt: buffers.dirt,
        }
    }

    /// The same, where what happens to connections is told.
    pub(super) fn telling(mut self, life: &Life, tell: Option<TellConnections>) -> Self {
        if tell.is_some() {
            // What a connection has moved is counted in its place in a life.
            (self.steps, self.life) = (Vec::new(), Some(life.clone()));
        }
        Self { tell, ..self }
    }

    /// The same, where the texts of all connections are counted in one flow's tally: counts that few loads have take
    /// memory, and a load may have half a million flows.
    pub(crate) fn counting_texts_in(self, flow: Option<&Arc<FlowShared>>) -> Self {
        Self { texts: flow.cloned(), ..self }
    }

    /// Counts bytes that the peer of a connection of `tally` had not acknowledged when the run itself ended it.
    pub(super) fn record_unacknowledged(&self, tally: &Tally, bytes: u64) {
        if bytes > 0 {
            let tally = self.texts.as_ref().map_or(tally, |flow| &flow.tally);
            tally.extra().texts.unacknowledged_bytes.add(bytes);
        }
    }

    /// Whether it has nothing but sends and receives of fixed sizes, one after the other: then a call may block.
    pub(super) fn is_plain(&self) -> bool {
        self.life.is_none()
    }

    /// Whether the two ends agree on the number of each connection.
    pub(super) fn is_numbered(&self) -> bool {
        self.life.as_ref().is_some_and(Life::is_numbered)
    }

    /// Whether its connections do anything by the clock.
    pub(super) fn is_timed(&self) -> bool {
        self.life.as_ref().is_some_and(Life::is_timed)
    }

    /// Holds a connection open no longer; says whether it was held.
    pub(super) fn end_hold(&self, progress: &mut Progress) -> bool {
        match (&self.life, progress.living_mut()) {
            (Some(life), Some(living)) => living.end_hold(life),
            _ => false,
        }
    }

    /// The life that begins next is that of the connection of this number.
    pub(crate) fn set_number(&mut self, number: u32) {
        self.number = number;
    }

    /// How a connection closes whose life has come so far, or is over.
    pub(super) fn close_of(&self, living: Option<&Living>) -> Close {
        match (living, &self.life) {
            (Some(living), Some(life)) => living.close(life),
            _ => self.close,
        }
    }

    /// Whether what happens to connections is told.
    pub(super) fn tells(&self) -> bool {
        self.tell.is_some()
    }

    /// Tells that the connection of a life that begins stands, where a caller asks.
    pub(super) fn tell_established(&self, progress: &mut Progress, carrier: &impl Carrier) {
        let (Some(tell), Some(living)) = (&self.tell, progress.living_mut()) else { return };
        let (at_ns, addresses) = (monotonic_ns(), carrier.addresses());
        // Nothing has been sent yet: what was sent again is the first segment.
        let figures = tell.asks_kernel.then(|| carrier.kernel_figures()).flatten();
        let syn_retransmissions = figures.map(|(status, _)| status.retransmitted_segments.into());
        let established = |addresses| Box::new(Established { addresses, syn_retransmissions });
        (living.began_ns, living.established) = (at_ns, addresses.map(established));
        (tell.tell)(Told::Established { at_ns, addresses });
    }

    /// Tells what became of a connection, where a caller asks.
    pub(super) fn tell_finished<C: Carrier>(
        &self,
        living: Option<&Living>,
        carrier: Option<&C>,
        before_life: Call,
        error: Option<&io::Error>,
    ) {
        let Some(tell) = &self.tell else { return };
        let mut finished = Finished::new(monotonic_ns(), living, before_life, error);
        if tell.asks_kernel {
            finished.tcp = carrier.and_then(Carrier::kernel_figures);
            let established = living.and_then(|living| living.established.as_ref());
            if let (Some((_, counts)), Some(established)) = (&mut finished.tcp, established) {
                counts.syn_retransmissions = established.syn_retransmissions;
            }
        }
        (tell.tell)(Told::Finished(Box::new(finished)));
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
        match &self.life {
            None => self.record(&mut progress, sent as u64, received as u64),
            Some(life) => {
                let mut state = self.own.get();
                let own = next_word(&mut state);
                self.own.set(state);
                progress.living = Some(Box::new(Living::new(life, self.number, own)));
            }
        }
        progress
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_over(&self, progress: &Progress) -> bool {
        match (&progress.living, &self.life) {
            (Some(living), Some(life)) => living.is_over(life),
            _ => progress.done as usize == self.steps.len(),
        }
    }

    /// So many bytes have come behind all that was to be received.
    ///
    /// # Errors
    ///
    /// Where the life knows that they are too many.
    pub(super) fn take_excess(&self, length: usize) -> io::Result<()> {
        match length {
            1.. if self.life.is_some() => Err(fault(LifeFault::Excess)),
            _ => Ok(()),
        }
    }

    /// Whether nothing is left to send.
    pub(crate) fn has_sent_all(&self, progress: &Progress) -> bool {
        if let (Some(living), Some(life)) = (&progress.living, &self.life) {
            return living.has_sent_all(life);
        }
        match self.step(progress) {
            Some(step) if progress.done as usize + 1 == self.sending_steps => {
                progress.sent == step.amounts().0
            }
            _ => progress.done as usize >= self.sending_steps,
        }
    }

    /// Whether the life is over when the last bytes were sent: nothing that comes then shows that they have arrived.
    pub(crate) fn ends_by_sending(&self) -> bool {
        let steps = self.life.as_ref().map_or(self.steps.len(), |life| life.steps.len());
        self.sending_steps > 0 && self.sending_steps == steps
    }

    /// Whether the next thing is to receive, and nothing of it has come.
    pub(super) fn awaits(&self, progress: &Progress, stream: &impl LifeStream) -> bool {
        if let Some(living) = &progress.living {
            return living.awaits() && stream.holds_no_bytes();
        }
        progress.received == 0 && matches!(self.step(progress), Some(LifeStep::Receive { .. }))
    }

    /// The step that runs, where all send or receive a fixed size; absent: they are over.
    fn step(&self, progress: &Progress) -> Option<&LifeStep> {
        self.steps.get(progress.done as usize)
    }

    /// What the connection waits for.
    pub(super) fn interest(&self, progress: &Progress) -> Interest {
        if let Some(living) = &progress.living {
            return living.interest();
        }
        match self.step(progress) {
            Some(LifeStep::Send { .. }) => Interest::Writable,
            _ => Interest::Readable,
        }
    }

    /// One operation; one each way where a step sends and receives at once.
    #[inline]
    pub(crate) fn advance<S: LifeStream>(
        &mut self,
        progress: &mut Progress,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
        wait: &mut S::Wait,
    ) -> io::Result<()> {
        if let Some(life) = &self.life {
            let texts = self.texts.as_ref().map_or(tally, |flow| &flow.tally);
            return progress.advance_living(life, stream, (tally, texts), local, wait);
        }
        match self.step(progress) {
            None => {}
            Some(step @ LifeStep::Send { .. }) => {
                let sent = self.send(step.amounts().0 - progress.sent, stream, tally, local)?;
                self.record(progress, sent, 0);
                if self.has_sent_all(progress) {
                    stream.end_sending()?;
                }
            }
            Some(step) => {
                let left = step.amounts().1 - progress.received;
                let received = self.receive(left, stream, tally, local, wait)?;
                self.record(progress, 0, received);
            }
        }
        Ok(())
    }

    #[inline]
    fn record(&self, progress: &mut Progress, sent: u64, received: u64) {
        progress.sent += sent;
        progress.received += received;
        progress.moved += sent + received;
        progress.has_received |= received > 0;
        while let Some(step) = self.step(progress)
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

impl Progress {
    /// When its life goes on by itself, where that isn't queued yet.
    pub(crate) fn take_resumption(&mut self) -> Option<u64> {
        self.living.as_mut()?.take_resumption()
    }

    fn advance_living<S: LifeStream>(
        &mut self,
        life: &Life,
        stream: &mut S,
        (tally, texts): (&Tally, &Tally),
        local: &mut Local,
        wait: &mut S::Wait,
    ) -> io::Result<()> {
        let Some(living) = &mut self.living else { return Ok(()) };
        let had_sent_all = living.has_sent_all(life);
        let outcome = living.advance(life, stream, (tally, texts), local, wait);
        let (sent, received) = living.moved();
        self.moved = sent.saturating_add(received);
        self.has_received = living.has_received();
        if !had_sent_all && living.has_sent_all(life) {
            stream.end_sending()?;
        }
        outcome
    }

    /// Of a life of more than sends and receives of fixed sizes: its place in it.
    pub(super) fn living(&self) -> Option<&Living> {
        self.living.as_deref()
    }

    pub(super) fn living_mut(&mut self) -> Option<&mut Living> {
        self.living.as_deref_mut()
    }

    pub(super) fn take_living(&mut self) -> Option<Box<Living>> {
        self.living.take()
    }

    /// Whether it pauses by itself at this time.
    pub(super) fn is_paused(&self, now_ns: u64) -> bool {
        self.living.as_ref().is_some_and(|living| living.is_paused(now_ns))
    }
}

/// A number that no other end has. Where the system has none, the time serves.
fn random_word() -> u64 {
    random().map_or_else(|_| monotonic_ns(), u64::from_ne_bytes)
}
