//! Bulk bytes over a stream, in one direction.

use std::io;

use linerate_measure::step::{Content, StepEnd, Transfer};

use super::{Calls, Local, Stage, Turn};
use crate::clock::monotonic_ns;
use crate::pacing::Pacer;
use crate::pattern::Verifier;
use crate::phase::Phase;
use crate::tally::Tally;
use crate::transport::ByteStream;
use crate::waiting::Yielding;

/// After so many bytes a sender lets others on its processor have a turn. A receiver that shares
/// the processor then takes the bytes while the cache still has them. Left to itself, the kernel
/// at times lets the sender fill every buffer first, and then each byte costs twice as much
/// (measured: 0.2 or 0.4 CPU-s/GB by chance, 0.2 with the yield). On a processor of its own the
/// call comes back at once.
///
/// Many flows gain most (measured with 128 on one processor: a quarter less without the yield).
/// One alone is level where its receiver yields too, and loses a tenth where it doesn't.
const BYTES_PER_YIELD: usize = 2560 << 10;

/// Sends until the step's end.
pub(crate) struct Sender {
    unit_bytes: usize,
    bytes_left: u64,
    calls_left: u64,
    pacer: Option<Pacer>,
    /// Position in the pattern; `None`: the same bytes every time, hot in the cache.
    position: Option<u64>,
    /// `None`: it never yields.
    yielding: Option<Yielding>,
}

impl Sender {
    pub(crate) fn new(step: &Transfer) -> Self {
        let pacer = step.pace.map(Pacer::new);
        let most = pacer.as_ref().map_or(usize::MAX, Pacer::most_bytes);
        Self {
            unit_bytes: (step.unit_bytes as usize).min(most),
            bytes_left: match step.end {
                StepEnd::Bytes { bytes } => bytes,
                _ => u64::MAX,
            },
            calls_left: match step.end {
                StepEnd::Count { count } => count,
                _ => u64::MAX,
            },
            pacer,
            position: match step.content {
                Content::Pattern { offset } => Some(offset),
                Content::Filler => None,
            },
            yielding: step.yields.then(|| Yielding::new(BYTES_PER_YIELD)),
        }
    }

    pub(crate) fn turn<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        let mut calls = Calls::of_turn(local);
        while calls.take(local) {
            match local.phase() {
                Phase::Hold => return Ok(Stage::Goes(Turn::Held)),
                Phase::WarmUp | Phase::Measure => {}
                _ => return Ok(self.end(tally)),
            }
            if self.bytes_left == 0 || self.calls_left == 0 {
                return Ok(self.end(tally));
            }
            if tally.first_ns.value() == 0 {
                tally.first_ns.set(monotonic_ns());
            }
            if let Some(until_ns) = self.pause() {
                return Ok(Stage::Goes(Turn::Pause { until_ns }));
            }
            let length =
                self.unit_bytes.min(usize::try_from(self.bytes_left).unwrap_or(usize::MAX));
            let sent = stream.send(local.pattern.slice(self.position.unwrap_or(0), length))?;
            tally.record_sent(sent);
            self.record_sent(sent);
            if let Some(yielding) = &mut self.yielding {
                yielding.record_sent(sent);
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    fn pause(&mut self) -> Option<u64> {
        self.pacer.as_mut().and_then(|pacer| pacer.wait_until(monotonic_ns()))
    }

    #[inline]
    fn record_sent(&mut self, sent: usize) {
        self.bytes_left -= sent as u64;
        self.calls_left -= 1;
        if let Some(position) = &mut self.position {
            *position += sent as u64;
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.record_sent(monotonic_ns(), sent);
        }
    }

    fn end(&self, tally: &Tally) -> Stage {
        tally.last_ns.set(monotonic_ns());
        Stage::Over
    }
}

/// Receives until the peer has finished.
pub(crate) struct Receiver {
    verifier: Option<Verifier>,
    started: bool,
}

impl Receiver {
    pub(crate) fn new(step: &Transfer) -> Self {
        let verifier = match step.content {
            Content::Pattern { offset } => Some(Verifier::new(offset)),
            Content::Filler => None,
        };
        Self { verifier, started: false }
    }

    pub(crate) fn verifier(&self) -> Option<&Verifier> {
        self.verifier.as_ref()
    }

    pub(crate) fn turn<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        let mut calls = Calls::of_turn(local);
        while calls.take(local) {
            let Local { receive_buffer, pattern, .. } = local;
            let verifier = &mut self.verifier;
            let length = stream.receive_in_place(receive_buffer, &mut |bytes| {
                if let Some(verifier) = verifier {
                    verifier.record_bytes(pattern, bytes);
                }
            })?;
            if local.phase() >= Phase::Drained || length == 0 {
                tally.last_ns.set(monotonic_ns());
                return Ok(Stage::Over);
            }
            if !self.started {
                self.started = true;
                tally.first_ns.set(monotonic_ns());
            }
            tally.record_received(length);
        }
        Ok(Stage::Goes(Turn::Again))
    }
}
