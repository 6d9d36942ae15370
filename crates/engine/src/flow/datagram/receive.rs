//! Receiving datagrams in bulk.

use std::io;

use linerate_measure::datagram::SequenceTracker;
use linerate_measure::step::{Content, Transfer};
use linerate_wire::native::datagram::{HELLO, WELCOME};

use super::frames::FrameReceiver;
use super::{Heading, Mark};
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Ending, Local, Stage, Turn};
use crate::pattern::Verifier;
use crate::phase::Phase;
use crate::tally::Tally;
use crate::transport::DatagramPath;

/// Receives datagrams until the conductor says that no more will come.
pub(crate) struct DatagramReceiver<H> {
    heading: H,
    unit_bytes: usize,
    tracker: Box<SequenceTracker>,
    /// The verifier, and the position in the stream's pattern of the first datagram.
    verifier: Option<Verifier>,
    frames: Option<Box<FrameReceiver>>,
}

impl<H: Heading> DatagramReceiver<H> {
    pub(crate) fn new(path: &mut impl DatagramPath, heading: H, step: &Transfer) -> Self {
        path.begin_receiving();
        Self {
            heading,
            unit_bytes: step.unit_bytes as usize,
            tracker: Box::default(),
            verifier: match step.content {
                Content::Pattern { offset } => Some(Verifier::new(offset)),
                Content::Filler => None,
            },
            frames: step.frames.map(|frames| Box::new(FrameReceiver::new(frames))),
        }
    }

    pub(crate) fn turn(
        &mut self,
        path: &mut impl DatagramPath,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            if local.phase() >= Phase::Drained {
                return Ok(Stage::Over);
            }
            let mut buffer = std::mem::take(&mut local.receive_buffer);
            let received = self.receive(path, tally, local, &mut buffer);
            local.receive_buffer = buffer;
            match received {
                // The peer has closed the path in order: no more will come.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(Stage::Over);
                }
                received => received?,
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    fn receive(
        &mut self,
        path: &mut impl DatagramPath,
        tally: &Tally,
        local: &mut Local,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let (mut now_ns, mut accepted) = (0, 0);
        path.receive(self.unit_bytes, buffer, |bytes| {
            if now_ns == 0 {
                now_ns = monotonic_ns();
            }
            accepted += self.record_segments(bytes, now_ns, local);
        })?;
        self.record_call(accepted, now_ns, tally);
        Ok(())
    }

    /// Records what the kernel handed over as one: datagrams of the flow's size, one behind the
    /// other. Numbers that follow each other are recorded as a run. Returns how many there were.
    fn record_segments(&mut self, bytes: &[u8], now_ns: u64, local: &mut Local) -> usize {
        let Local { pattern, latencies, .. } = local;
        let mut run: Option<(Mark, u32)> = None;
        let mut accepted = 0;
        for datagram in bytes.chunks(self.unit_bytes) {
            let Some(header) = self.accept(datagram) else { continue };
            accepted += 1;
            if let Some(verifier) = &mut self.verifier
                && !header.warm_up
            {
                // The number is the peer's word: any product is a position, at worst a wrong one.
                let start = header.seq.wrapping_mul(self.unit_bytes as u64);
                verifier.move_to(start.wrapping_add(H::BYTES as u64));
                verifier.record_bytes(pattern, &datagram[H::BYTES..]);
            }
            if let Some(frames) = &mut self.frames {
                frames.record(&header, now_ns, latencies);
            }
            match &mut run {
                Some((first, count)) if continues(first, *count, &header) => *count += 1,
                _ => {
                    self.record_run(run.replace((header, 1)), now_ns);
                }
            }
        }
        self.record_run(run, now_ns);
        if let Some(frames) = &mut self.frames
            && accepted < bytes.len().div_ceil(self.unit_bytes)
            && !is_of_handshake(bytes)
        {
            let rejected = bytes.len().div_ceil(self.unit_bytes) - accepted;
            // What comes alone is one datagram, of any length.
            frames.record_malformed(if accepted == 0 { 1 } else { rejected });
        }
        accepted
    }

    #[inline]
    fn record_call(&self, accepted: usize, now_ns: u64, tally: &Tally) {
        if accepted == 0 {
            return;
        }
        if tally.first_ns.value() == 0 {
            tally.first_ns.set(now_ns);
        }
        tally.last_ns.set(now_ns);
        // Duplicates don't count: a stream is complete when every datagram has come, not when as many
        // have.
        let arrived = self.tracker.arrived();
        let fresh = arrived - tally.datagrams_received.value();
        tally.record_received(usize::try_from(fresh).unwrap_or(0) * self.unit_bytes);
        tally.datagrams_received.set(arrived);
        tally.datagrams_expected.set(self.tracker.next_expected());
        if let Some(frames) = &self.frames {
            frames.publish(tally);
        }
    }

    /// The header of a datagram of this flow; `None` for other datagrams, such as the end of the
    /// handshake or a foreign one.
    #[inline]
    fn accept(&self, datagram: &[u8]) -> Option<Mark> {
        let mark = self.heading.read(datagram)?;
        (datagram.len() == self.unit_bytes).then_some(mark)
    }

    #[inline]
    fn record_run(&mut self, run: Option<(Mark, u32)>, now_ns: u64) {
        if let Some((first, count)) = run {
            self.tracker.record_run(first.seq, count, first.sent_ns, now_ns, first.warm_up);
        }
    }

    pub(crate) fn leave(self, path: &impl DatagramPath, ending: &mut Ending) {
        ending.verification = self.verifier.map(|verifier| Box::new(verifier.found()));
        ending.datagrams.arrivals = Some(self.tracker);
        ending.datagrams.gro = Some(path.offload().1);
        if let Some(frames) = self.frames {
            frames.leave(ending);
        }
    }
}

/// Whether it is what the peer may still send of the handshake that began the flow.
fn is_of_handshake(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|kind| (HELLO..=WELCOME).contains(kind))
}

#[inline]
fn continues(first: &Mark, count: u32, next: &Mark) -> bool {
    next.seq.wrapping_sub(first.seq) == u64::from(count)
        && next.sent_ns == first.sent_ns
        && next.warm_up == first.warm_up
}
