//! Sending datagrams in bulk.

use std::io;

use linerate_measure::step::{Content, StepEnd, Transfer};

use super::frames::FrameSchedule;
use super::{Heading, Mark, flush};
use crate::buffers::Buffers;
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::goal::GoalShare;
use crate::flow::{BulkRules, Calls, DatagramEnding, Local, MediaEnding, Stage, Turn};
use crate::pacing::Pacer;
use crate::phase::Phase;
use crate::tally::Tally;
use crate::transport::{DatagramPath, most_of_one_call};
use crate::waiting::{DATAGRAM_BYTES_PER_YIELD, Yielding};

/// Sends datagrams until the step's end.
pub(crate) struct DatagramSender<H> {
    heading: H,
    /// What the next datagram says.
    mark: Mark,
    unit_bytes: usize,
    /// Datagrams that may leave at once.
    most: usize,
    left: u64,
    pacer: Option<Pacer>,
    /// Media: when frames are due.
    frames: Option<FrameSchedule>,
    /// Position in the pattern of the first datagram's first byte, where bytes are verified.
    position: Option<u64>,
    buffers: Buffers,
    goal: Option<GoalShare>,
    ending: DatagramEnding,
    /// Without a rate, where the step says so.
    yielding: Option<Yielding>,
}

impl<H: Heading> DatagramSender<H> {
    pub(crate) fn new(path: &mut impl DatagramPath, heading: H, step: &Transfer) -> Self {
        let unit_bytes = step.unit_bytes as usize;
        let pacer = step.pace.map(|pace| Pacer::new(pace, unit_bytes));
        let burst = match (&pacer, &step.frames) {
            (Some(pacer), _) => pacer.most_bytes() / unit_bytes,
            (None, Some(frames)) => frames.datagrams as usize,
            (None, None) => usize::MAX,
        };
        let most = burst.clamp(1, most_of_one_call(unit_bytes));
        let most = path.begin_sending(unit_bytes, most);
        let yields = step.yields && pacer.is_none() && step.frames.is_none();
        Self {
            heading,
            mark: Mark::default(),
            unit_bytes,
            most,
            left: match step.end {
                StepEnd::Count { count } => count,
                StepEnd::Bytes { bytes } => bytes.div_ceil(unit_bytes as u64),
                _ => u64::MAX,
            },
            pacer,
            frames: step.frames.map(FrameSchedule::new),
            position: match step.content {
                Content::Pattern { offset } => Some(offset),
                Content::Filler => None,
            },
            buffers: Buffers::default(),
            goal: None,
            ending: DatagramEnding { sent: Some(0), ..DatagramEnding::default() },
            yielding: yields.then(|| Yielding::new(DATAGRAM_BYTES_PER_YIELD)),
        }
    }

    /// Likewise, from buffers that a dialect has said more of.
    pub(crate) fn with_buffers(self, buffers: &Buffers) -> Self {
        Self { buffers: buffers.clone(), ..self }
    }

    /// Likewise, until the end that flows share, where a dialect has one.
    pub(crate) fn with_rules(self, rules: &BulkRules) -> Self {
        Self { goal: rules.goal.as_ref().map(GoalShare::new), ..self }
    }

    pub(crate) fn turn(
        &mut self,
        path: &mut impl DatagramPath,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        let mut batch = std::mem::take(&mut local.send_buffer);
        if batch.len() < self.most * self.unit_bytes {
            batch = self.fill(local);
        }
        let outcome = self.send_from(&mut batch, path, tally, local);
        local.send_buffer = batch;
        outcome
    }

    /// Datagrams one behind the other, as many as may leave at once.
    fn fill(&self, local: &Local) -> Vec<u8> {
        if self.buffers.are_plain() {
            return local.pattern.slice(0, self.unit_bytes).repeat(self.most);
        }
        self.buffers.filled(self.unit_bytes, self.most)
    }

    fn send_from(
        &mut self,
        batch: &mut [u8],
        path: &mut impl DatagramPath,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        let mut calls = Calls::of_turn(local);
        while calls.take(local) {
            self.take_back(path, tally);
            let phase = local.phase();
            if phase == Phase::Hold {
                return Ok(Stage::Goes(Turn::Held));
            }
            if !self.goes_on(phase, path, local) {
                return Ok(self.finish(path, tally, local));
            }
            let now_ns = monotonic_ns();
            if tally.first_ns.value() == 0 {
                tally.first_ns.set(now_ns);
            }
            if let Some(until_ns) = self.wait_until(now_ns, tally, local) {
                return Ok(Stage::Goes(Turn::Pause { until_ns }));
            }
            let wanted = self.wanted(local);
            if wanted == 0 {
                // Flows that share a goal end with the load.
                return Ok(Stage::Goes(Turn::Held));
            }
            let datagrams = batch.get_mut(..wanted * self.unit_bytes).unwrap_or_default();
            self.write_headers(datagrams, now_ns, local);
            match path.send(datagrams, self.unit_bytes) {
                Ok(sent) => self.record_sent(sent, now_ns, tally, local),
                Err(error) => return self.handle_failure(path, error, wanted, now_ns, tally),
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    /// Whether anything more is to be sent in this phase. A frame lies in the warm-up as a whole, or
    /// not at all.
    #[inline]
    fn goes_on(&mut self, phase: Phase, path: &mut impl DatagramPath, local: &mut Local) -> bool {
        let catches_up = |frames: &FrameSchedule, local: &mut Local| {
            frames.catches_up(local.reached(), monotonic_ns())
        };
        match phase {
            Phase::WarmUp | Phase::Measure if self.left > 0 => {
                if self.frames.as_ref().is_some_and(FrameSchedule::is_in_frame) {
                    return true;
                }
                self.note_warm_up(phase == Phase::WarmUp, path);
                true
            }
            Phase::Stop => self.frames.as_ref().is_some_and(|frames| catches_up(frames, local)),
            _ => false,
        }
    }

    /// When the next datagrams may leave, if not now.
    #[inline]
    fn wait_until(&mut self, now_ns: u64, tally: &Tally, local: &mut Local) -> Option<u64> {
        match (&mut self.pacer, &mut self.frames) {
            (Some(pacer), _) => pacer.wait_until(now_ns),
            (None, Some(frames)) => {
                let reached = local.reached();
                let counted = (tally, &mut local.latencies);
                frames.wait_until(reached, now_ns, self.mark.warm_up, counted)
            }
            (None, None) => None,
        }
    }

    #[inline]
    fn note_warm_up(&mut self, warms_up: bool, path: &mut impl DatagramPath) {
        if self.mark.warm_up && !warms_up {
            path.end_sent_warm_up();
            self.pacer.iter_mut().for_each(Pacer::end_warm_up);
        }
        self.mark.warm_up = warms_up;
    }

    /// How many datagrams leave with the next call.
    #[inline]
    fn wanted(&mut self, local: &Local) -> usize {
        let allowed = self.pacer.as_ref().map_or(usize::MAX, Pacer::allowed_units);
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let of_frame = self.frames.as_ref().map_or(usize::MAX, FrameSchedule::left);
        let most = self.most.min(left).min(allowed).min(of_frame);
        match &mut self.goal {
            Some(share) => share.claim_units(most, self.unit_bytes, local),
            None => most,
        }
    }

    fn write_headers(&self, datagrams: &mut [u8], now_ns: u64, local: &Local) {
        if self.buffers.dirt.send_bytes > 0 {
            let each = datagrams.chunks_exact_mut(self.unit_bytes);
            each.for_each(|datagram| self.buffers.dirt.before_send(datagram));
        }
        if H::BYTES == 0 && self.position.is_none() {
            return;
        }
        let mut mark = Mark { sent_ns: now_ns, ..self.mark };
        for datagram in datagrams.chunks_exact_mut(self.unit_bytes) {
            if let Some(position) = self.position {
                let at = position + mark.seq * self.unit_bytes as u64;
                datagram.copy_from_slice(local.pattern.slice(at, self.unit_bytes));
            }
            self.heading.write(datagram, mark);
            mark.seq += 1;
        }
    }

    /// All was handed over, and what waited has left.
    fn finish(&mut self, path: &mut impl DatagramPath, tally: &Tally, local: &mut Local) -> Stage {
        let flushed = flush(path);
        self.take_back(path, tally);
        if matches!(flushed, Stage::Over) {
            tally.last_ns.set(Pacer::end_ns(self.pacer.as_mut(), local.reached()));
        }
        flushed
    }

    /// What the path took and was refused then never was on its way.
    fn take_back(&mut self, path: &mut impl DatagramPath, tally: &Tally) {
        let refused = path.take_refused();
        if refused == 0 {
            return;
        }
        let sent = tally.datagrams.sent.value();
        tally.datagrams.sent.set(sent.saturating_sub(refused));
        tally.extra().refused_datagrams.add(refused);
        if !self.mark.warm_up {
            self.ending.take_back(refused, self.unit_bytes);
        }
    }

    fn record_sent(&mut self, datagrams: usize, now_ns: u64, tally: &Tally, local: &Local) {
        let (count, bytes) = (datagrams as u64, datagrams * self.unit_bytes);
        self.mark.seq += count;
        self.left -= count;
        tally.record_sent(bytes);
        tally.datagrams.sent.add(count);
        if !self.mark.warm_up {
            self.ending.record_sent(count, self.unit_bytes);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.record_sent(now_ns, bytes);
        }
        if let Some(frames) = &mut self.frames {
            frames.record_sent(count);
        }
        if let Some(share) = &mut self.goal {
            share.record_sent(bytes, local);
        }
        if let Some(yielding) = &mut self.yielding {
            yielding.record_sent(bytes);
        }
    }

    /// The stack refused: these datagrams never were on the path. Their numbers are used again, but for those of a
    /// frame, which is not whole without them.
    fn handle_failure(
        &mut self,
        path: &mut impl DatagramPath,
        error: io::Error,
        datagrams: usize,
        now_ns: u64,
        tally: &Tally,
    ) -> io::Result<Stage> {
        if let Some(most) = path.adapt(&error, self.most) {
            self.most = most;
            return Ok(Stage::Goes(Turn::Again));
        }
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
            return Err(error);
        }
        // A train is dropped as a whole; of several datagrams the first one was refused.
        let refused = if path.offload().0 { datagrams } else { 1 };
        tally.extra().refused_datagrams.add(refused as u64);
        if !self.mark.warm_up {
            self.ending.refused += refused as u64;
        }
        if let Some(frames) = &mut self.frames {
            let refused = refused as u64;
            self.mark.seq += refused;
            self.left = self.left.saturating_sub(refused);
            frames.record_sent(refused);
        }
        if error.raw_os_error() != Some(libc::ENOBUFS) {
            return Err(error);
        }
        // What was dropped here has had its time at the rate.
        let refused_bytes = refused * self.unit_bytes;
        let is_paced =
            self.pacer.as_mut().is_some_and(|pacer| pacer.record_refused(now_ns, refused_bytes));
        Ok(Stage::Goes(match is_paced || self.frames.is_some() {
            true => Turn::Again,
            false => Turn::Pause { until_ns: now_ns + MILLISECOND_NS / 10 },
        }))
    }

    pub(crate) fn leave(self, path: &impl DatagramPath, ending: &mut DatagramEnding) {
        let media = self
            .frames
            .as_ref()
            .map(|schedule| Box::new(MediaEnding { frames: schedule.counts(), loss_bursts: None }));
        *ending = DatagramEnding { gso: Some(path.offload().0), media, ..self.ending };
    }
}
