//! Bulk bytes over a stream, in one direction.

use std::io;
use std::sync::Arc;

use linerate_measure::step::{Content, StepEnd, Transfer};

use super::goal::GoalShare;
use super::{BulkRules, Calls, Goal, Local, ReceiverRules, Stage, Turn};
use crate::clock::monotonic_ns;
use crate::pacing::Pacer;
use crate::pattern::Verifier;
use crate::phase::Phase;
use crate::tally::Tally;
use crate::transport::ByteStream;
use crate::waiting::Yielding;

/// Sends until the step's end.
pub(crate) struct Sender {
    unit_bytes: usize,
    /// What is left, or of a goal that flows share what was claimed.
    bytes_left: u64,
    calls_left: u64,
    calls_per_turn: u32,
    pacer: Option<Pacer>,
    /// Position in the pattern; `None`: the same bytes every time, hot in the cache.
    position: Option<u64>,
    /// `None`: it never yields.
    yielding: Option<Yielding>,
    goal: Option<Box<GoalShare>>,
    warms_up: bool,
}

impl Sender {
    pub(crate) fn new(step: &Transfer, rules: &BulkRules) -> Self {
        let pacer = step.pace.map(|pace| Pacer::new(pace, step.unit_bytes as usize));
        let most = pacer.as_ref().map_or(usize::MAX, Pacer::most_bytes);
        Self {
            unit_bytes: (step.unit_bytes as usize).min(most),
            bytes_left: match step.end {
                _ if rules.goal.is_some() => 0,
                StepEnd::Bytes { bytes } => bytes,
                _ => u64::MAX,
            },
            calls_left: match step.end {
                StepEnd::Count { count } => count,
                _ => u64::MAX,
            },
            calls_per_turn: rules.sender.calls_per_turn,
            pacer,
            position: match step.content {
                Content::Pattern { offset } => Some(offset),
                Content::Filler => None,
            },
            yielding: step.yields.then(|| Yielding::new(rules.sender.bytes_per_yield)),
            goal: rules.goal.as_ref().map(|goal| Box::new(GoalShare::new(goal))),
            warms_up: false,
        }
    }

    pub(crate) fn turn<S: ByteStream>(
        &mut self,
        stream: &mut S,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        let mut calls = Calls::up_to(self.calls_per_turn, local);
        while calls.take(local) {
            match local.phase() {
                Phase::Hold => return Ok(Stage::Goes(Turn::Held)),
                Phase::WarmUp => self.warms_up = true,
                Phase::Measure => self.end_warm_up(),
                _ => return Ok(self.end(tally, local)),
            }
            if self.calls_left == 0 {
                return Ok(self.end(tally, local));
            }
            if self.bytes_left == 0 && !self.claim(local) {
                return Ok(self.end_of_bytes(tally, local));
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
            if sent == 0 {
                return Ok(self.exhaust(tally, local));
            }
            tally.record_sent(sent);
            self.record_sent(sent, local);
        }
        Ok(Stage::Goes(Turn::Again))
    }

    #[inline]
    fn end_warm_up(&mut self) {
        if self.warms_up {
            self.warms_up = false;
            self.pacer.iter_mut().for_each(Pacer::end_warm_up);
        }
    }

    /// Claims the next unit of a goal that flows share; says whether there is any.
    fn claim(&mut self, local: &Local) -> bool {
        let unit_bytes = self.unit_bytes;
        let granted = self.goal.as_mut().is_some_and(|share| share.claim(unit_bytes, local));
        if granted {
            self.bytes_left = unit_bytes as u64;
        }
        granted
    }

    /// All that was to be sent has been. Flows that share a goal end with the load.
    fn end_of_bytes(&mut self, tally: &Tally, local: &mut Local) -> Stage {
        match self.goal {
            Some(_) => Stage::Goes(Turn::Held),
            None => self.end(tally, local),
        }
    }

    /// What carries the bytes has no more to send.
    fn exhaust(&mut self, tally: &Tally, local: &mut Local) -> Stage {
        if let Some(share) = &mut self.goal {
            share.exhaust(local);
        }
        self.end_of_bytes(tally, local)
    }

    fn pause(&mut self) -> Option<u64> {
        self.pacer.as_mut().and_then(|pacer| pacer.wait_until(monotonic_ns()))
    }

    #[inline]
    fn record_sent(&mut self, sent: usize, local: &Local) {
        self.bytes_left -= sent as u64;
        self.calls_left -= 1;
        if let Some(position) = &mut self.position {
            *position += sent as u64;
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.record_sent(monotonic_ns(), sent);
        }
        if let Some(share) = &mut self.goal {
            share.record_sent(sent, local);
        }
        if let Some(yielding) = &mut self.yielding {
            yielding.record_sent(sent);
        }
    }

    fn end(&mut self, tally: &Tally, local: &mut Local) -> Stage {
        tally.last_ns.set(Pacer::end_ns(self.pacer.as_mut(), local.reached()));
        Stage::Over
    }
}

/// Receives until the peer has finished.
pub(crate) struct Receiver {
    verifier: Option<Verifier>,
    rules: ReceiverRules,
    goal: Option<Arc<Goal>>,
    started: bool,
    /// Came with the call during which the measured part began, and counts in it: a socket that blocks may have
    /// waited long.
    uncounted_bytes: usize,
}

impl Receiver {
    pub(crate) fn new(step: &Transfer, rules: &BulkRules) -> Self {
        let verifier = match step.content {
            Content::Pattern { offset } => Some(Verifier::new(offset)),
            Content::Filler => None,
        };
        let goal = rules.goal.clone().filter(|goal| goal.is_set());
        Self { verifier, rules: rules.receiver, goal, started: false, uncounted_bytes: 0 }
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
        if self.rules.holds(local.phase()) {
            return Ok(Stage::Goes(Turn::Held));
        }
        if self.uncounted_bytes > 0 {
            let length = std::mem::take(&mut self.uncounted_bytes);
            self.record_received(length, tally, local);
        }
        while calls.take(local) {
            let Local { receive_buffer, pattern, .. } = local;
            let verifier = &mut self.verifier;
            let received = stream.receive_in_place(receive_buffer, &mut |bytes| {
                if let Some(verifier) = verifier {
                    verifier.record_bytes(pattern, bytes);
                }
            });
            let phase = local.phase();
            let length = match received {
                // All that has come is received.
                Err(error)
                    if self.rules.drains
                        && phase >= Phase::Drained
                        && error.kind() == io::ErrorKind::WouldBlock =>
                {
                    0
                }
                received => received?,
            };
            if self.rules.are_over(phase) || length == 0 {
                return Ok(self.end(tally));
            }
            if self.verifier.is_none() && calls.have_crossed(local) {
                self.uncounted_bytes = length;
                return Ok(Stage::Goes(Turn::Again));
            }
            self.record_received(length, tally, local);
        }
        Ok(Stage::Goes(Turn::Again))
    }

    #[inline]
    fn record_received(&mut self, length: usize, tally: &Tally, local: &mut Local) {
        if !self.started {
            self.started = true;
            tally.first_ns.set(monotonic_ns());
        }
        tally.record_received(length);
        if self.rules.ends_with_bytes_since.is_some() && self.rules.end_with_bytes(local.phase()) {
            tally.last_ns.set(monotonic_ns());
        }
        if let Some(goal) = &self.goal
            && local.is_measuring()
            && goal.record(length as u64)
        {
            local.ring_conductor();
        }
    }

    fn end(&self, tally: &Tally) -> Stage {
        if self.rules.ends_with_bytes_since.is_none() {
            tally.last_ns.set(monotonic_ns());
        }
        Stage::Over
    }

    /// Whether the flow's time ends with what the receiver counts, whatever ends it.
    pub(crate) fn ends_its_own_time(&self) -> bool {
        self.rules.ends_with_bytes_since.is_some()
    }
}
