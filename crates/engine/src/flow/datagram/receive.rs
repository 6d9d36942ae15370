//! Receiving datagrams in bulk.

use std::io;
use std::sync::Arc;

use linerate_measure::step::{Content, Transfer};
use linerate_wire::native::datagram::{HELLO, WELCOME};

use super::frames::FrameReceiver;
use super::{Arrivals, Heading, Mark};
use crate::clock::monotonic_ns;
use crate::flow::{BulkRules, Calls, Ending, Goal, Local, ReceiverRules, Stage, Turn};
use crate::pattern::Verifier;
use crate::phase::Phase;
use crate::tally::Tally;
use crate::transport::DatagramPath;

/// Receives datagrams until the conductor says that no more will come.
pub(crate) struct DatagramReceiver<H: Heading> {
    heading: H,
    unit_bytes: usize,
    arrivals: Box<H::Arrivals>,
    /// The verifier, and the position in the stream's pattern of the first datagram.
    verifier: Option<Verifier>,
    frames: Option<Box<FrameReceiver>>,
    rules: ReceiverRules,
    goal: Option<Arc<Goal>>,
    /// Whether there is a warm-up, as far as that is known.
    warms_up: bool,
    /// Whether the measured part has begun.
    measures: bool,
    /// What came with the call during which the measured part began; it counts in it.
    uncounted: Came,
}

/// What one call has brought.
#[derive(Default)]
struct Came {
    /// Whether anything came, if only to be left out.
    some: bool,
    /// Bytes of datagrams of the flow.
    bytes: usize,
    /// When; 0: nothing came.
    at_ns: u64,
}

impl<H: Heading> DatagramReceiver<H> {
    /// By linerate's own rules, by which the flow's time ends with the last datagram.
    pub(crate) fn new(path: &mut impl DatagramPath, heading: H, step: &Transfer) -> Self {
        let ends_with_bytes_since = Some(Phase::Hold);
        let receiver = ReceiverRules { ends_with_bytes_since, ..BulkRules::native().receiver };
        let rules = BulkRules { receiver, ..BulkRules::native().clone() };
        Self::with_rules(path, heading, step, &rules)
    }

    pub(crate) fn with_rules(
        path: &mut impl DatagramPath,
        heading: H,
        step: &Transfer,
        rules: &BulkRules,
    ) -> Self {
        path.begin_receiving();
        Self {
            heading,
            unit_bytes: (step.unit_bytes as usize).max(1),
            arrivals: Box::new(heading.arrivals()),
            verifier: match step.content {
                Content::Pattern { offset } => Some(Verifier::new(offset)),
                Content::Filler => None,
            },
            frames: step.frames.map(|frames| Box::new(FrameReceiver::new(frames))),
            rules: rules.receiver,
            goal: rules.goal.clone().filter(|goal| goal.is_set()),
            warms_up: false,
            measures: false,
            uncounted: Came::default(),
        }
    }

    pub(crate) fn turn(
        &mut self,
        path: &mut impl DatagramPath,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        let mut calls = Calls::of_turn(local);
        if self.rules.holds(local.phase()) {
            return Ok(Stage::Goes(Turn::Held));
        }
        self.look_for_end_of_warm_up(local);
        let uncounted = std::mem::take(&mut self.uncounted);
        self.record_call(&uncounted, tally, local);
        while calls.take(local) {
            if self.rules.are_over(local.phase()) {
                return Ok(self.end(tally));
            }
            let mut buffer = std::mem::take(&mut local.receive_buffer);
            let received = self.receive(path, local, &mut buffer);
            local.receive_buffer = buffer;
            let phase = local.phase();
            let came = match received {
                // The peer has closed the path in order: no more will come.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(self.end(tally));
                }
                Err(error)
                    if phase >= Phase::Drained && error.kind() == io::ErrorKind::WouldBlock =>
                {
                    return Ok(self.end(tally));
                }
                received => received?,
            };
            if phase >= Phase::Drained && !came.some {
                // All that had come by then is received.
                return Ok(self.end(tally));
            }
            if calls.have_crossed(local) {
                self.uncounted = came;
                return Ok(Stage::Goes(Turn::Again));
            }
            self.record_call(&came, tally, local);
        }
        Ok(Stage::Goes(Turn::Again))
    }

    /// Takes what has come. Where the measured part begins during the call, the datagrams are of it.
    #[inline]
    fn receive(
        &mut self,
        path: &mut impl DatagramPath,
        local: &mut Local,
        buffer: &mut [u8],
    ) -> io::Result<Came> {
        let mut came = Came::default();
        let mut counts = true;
        path.receive(self.unit_bytes, buffer, |bytes| {
            if came.at_ns == 0 {
                came.at_ns = monotonic_ns();
                counts = !self.rules.are_over(local.phase());
                self.look_for_end_of_warm_up(local);
            }
            came.some |= !bytes.is_empty();
            if counts {
                came.bytes += self.record_segments(bytes, came.at_ns, local);
            }
        })?;
        Ok(came)
    }

    #[inline]
    fn look_for_end_of_warm_up(&mut self, local: &mut Local) {
        if self.measures {
            return;
        }
        if !self.warms_up && local.reached().has_warm_up() {
            self.warms_up = true;
            self.arrivals.expect_warm_up();
            self.frames.iter_mut().for_each(|frames| frames.expect_warm_up());
        }
        if local.is_measuring() {
            self.measures = true;
            self.arrivals.end_warm_up();
        }
    }

    /// Records what the kernel handed over as one: datagrams of the flow's size, one behind the
    /// other. Numbers that follow each other are recorded as a run. Returns how many bytes they have.
    fn record_segments(&mut self, bytes: &[u8], now_ns: u64, local: &mut Local) -> usize {
        let Local { pattern, latencies, .. } = local;
        let mut run: Option<(Mark, u32)> = None;
        let (mut accepted, mut accepted_bytes) = (0, 0);
        for datagram in bytes.chunks(self.unit_bytes) {
            let Some(header) = self.accept(datagram) else { continue };
            accepted += 1;
            accepted_bytes += datagram.len();
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
        accepted_bytes
    }

    #[inline]
    fn record_call(&self, came: &Came, tally: &Tally, local: &mut Local) {
        if came.bytes == 0 {
            return;
        }
        if tally.first_ns.value() == 0 {
            tally.first_ns.set(came.at_ns);
        }
        if self.rules.end_with_bytes(local.phase()) {
            tally.last_ns.set(came.at_ns);
        }
        self.arrivals.publish(came.bytes, self.unit_bytes, tally);
        if let Some(goal) = &self.goal
            && local.is_measuring()
            && goal.record(came.bytes as u64)
        {
            local.ring_conductor();
        }
        if let Some(frames) = &self.frames {
            frames.publish(tally);
        }
    }

    /// The header of a datagram of this flow; `None` for other datagrams, such as the end of the
    /// handshake or a foreign one.
    #[inline]
    fn accept(&self, datagram: &[u8]) -> Option<Mark> {
        let mark = self.heading.read(datagram)?;
        let fits = H::ANY_LENGTH || datagram.len() == self.unit_bytes;
        (fits && self.arrivals.accepts(mark)).then_some(mark)
    }

    #[inline]
    fn record_run(&mut self, run: Option<(Mark, u32)>, now_ns: u64) {
        if let Some((first, count)) = run {
            self.arrivals.record_run(first, count, now_ns);
        }
    }

    fn end(&self, tally: &Tally) -> Stage {
        if self.rules.ends_with_bytes_since.is_none() {
            tally.last_ns.set(monotonic_ns());
        }
        Stage::Over
    }

    pub(crate) fn leave(self, path: &impl DatagramPath, ending: &mut Ending) {
        ending.verification = self.verifier.map(|verifier| Box::new(verifier.found()));
        (*self.arrivals).leave(ending);
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
