//! Frames of a media stream: when they are sent, and what of them arrives.

use linerate_measure::media::{DelayVariation, FrameCounts, FrameTracker, Frames};

use super::Mark;
use crate::clock::MILLISECOND_NS;
use crate::flow::{Ending, MediaEnding};
use crate::latencies::Latencies;
use crate::phase::{Phase, Reached};
use crate::tally::Tally;

/// So long after the load's end a late sender still sends frames that were due before.
const CATCH_UP_NS: u64 = 100 * MILLISECOND_NS;

/// Says when the datagrams of frames may leave.
///
/// 1. Frame `k` is due `k` frame times after the first one, whose time counts from the load's
///    beginning.
/// 2. All datagrams of a frame leave one behind the other. Late frames leave at once; none is left
///    out.
/// 3. Frames that are due before the load's end belong to it, the others don't.
pub(super) struct FrameSchedule {
    frames: Frames,
    /// The number of the next frame to begin.
    next: u64,
    /// Datagrams of the frame before it that haven't left.
    left: u32,
    sent: u64,
}

impl FrameSchedule {
    pub(super) fn new(frames: Frames) -> Self {
        Self { frames, next: 0, left: 0, sent: 0 }
    }

    /// Whether datagrams of a frame are left.
    pub(super) fn is_in_frame(&self) -> bool {
        self.left > 0
    }

    /// Datagrams that may leave with one call.
    pub(super) fn left(&self) -> usize {
        self.left as usize
    }

    /// Whether anything is to be sent that the load's end has overtaken.
    pub(super) fn catches_up(&self, reached: Reached, now_ns: u64) -> bool {
        let is_over = now_ns >= reached.ends_ns.saturating_add(CATCH_UP_NS);
        reached.phase == Phase::Stop && !is_over && (self.left > 0 || !self.is_past(reached))
    }

    fn is_past(&self, reached: Reached) -> bool {
        self.due_ns(reached) >= reached.ends_ns
    }

    fn due_ns(&self, reached: Reached) -> u64 {
        let first_ns = reached.opened_ns.saturating_add(self.frames.first_ns);
        first_ns.saturating_add(self.frames.due_ns(self.next))
    }

    /// When datagrams may leave, if not now. Begins the next frame where it is due.
    pub(super) fn wait_until(
        &mut self,
        reached: Reached,
        now_ns: u64,
        warm_up: bool,
        (tally, latencies): (&Tally, &mut Latencies),
    ) -> Option<u64> {
        if self.left > 0 {
            return None;
        }
        let due_ns = self.due_ns(reached);
        if self.is_past(reached) {
            // The conductor is about to end the load.
            return Some(due_ns.max(now_ns + MILLISECOND_NS));
        }
        if due_ns > now_ns {
            return Some(due_ns);
        }
        self.next += 1;
        self.left = self.frames.datagrams;
        if !warm_up {
            self.sent += 1;
            tally.extra().frames().sent.set(self.sent);
            latencies.record_send_delay(now_ns - due_ns);
        }
        None
    }

    pub(super) fn record_sent(&mut self, datagrams: u64) {
        self.left = self.left.saturating_sub(u32::try_from(datagrams).unwrap_or(u32::MAX));
    }

    pub(super) fn counts(&self) -> FrameCounts {
        FrameCounts { sent: Some(self.sent), ..FrameCounts::default() }
    }
}

/// What a receiver keeps account of.
pub(super) struct FrameReceiver {
    tracker: FrameTracker,
    delays: DelayVariation,
    malformed: u64,
}

impl FrameReceiver {
    pub(super) fn new(frames: Frames) -> Self {
        let (tracker, delays) = (FrameTracker::new(frames), DelayVariation::default());
        Self { tracker, delays, malformed: 0 }
    }

    /// The flow begins with a warm-up.
    pub(super) fn expect_warm_up(&mut self) {
        self.tracker.expect_warm_up();
    }

    /// A datagram of the flow has come.
    #[inline]
    pub(super) fn record(&mut self, mark: &Mark, now_ns: u64, latencies: &mut Latencies) {
        self.tracker.record(mark.seq, now_ns, mark.warm_up);
        let delay_ns = self.delays.record(mark.sent_ns, now_ns);
        if !mark.warm_up {
            latencies.record_delay_variation(delay_ns);
        }
    }

    /// Something has come that is no datagram of the flow.
    #[cold]
    pub(super) fn record_malformed(&mut self, datagrams: usize) {
        self.malformed += datagrams as u64;
    }

    /// Publishes what the frames came to so far.
    pub(super) fn publish(&self, tally: &Tally) {
        let FrameCounts { completed, late, dropped, .. } = self.tracker.counts();
        let frames = tally.extra().frames();
        frames.completed.set(completed.unwrap_or(0));
        frames.late.set(late.unwrap_or(0));
        frames.dropped.set(dropped.unwrap_or(0));
    }

    pub(super) fn leave(mut self, ending: &mut Ending) {
        self.tracker.finish();
        let (frames, loss_bursts) = (self.tracker.counts(), Some(self.tracker.loss_bursts()));
        ending.datagrams.media = Some(Box::new(MediaEnding { frames, loss_bursts }));
        if self.malformed > 0 {
            *ending.errors.entry("malformed").or_insert(0) += self.malformed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENED_NS: u64 = 1_000_000_000;
    const FRAME_NS: u64 = 20_000_000;

    fn reached(phase: Phase, ends_ns: u64) -> Reached {
        Reached { phase, opened_ns: OPENED_NS, measuring_ns: OPENED_NS, ends_ns }
    }

    /// A schedule of 50 frames a second with 3 datagrams each, the first 5 ms after the beginning.
    fn schedule() -> FrameSchedule {
        let (per_s, datagrams) = (50, 3);
        FrameSchedule::new(Frames { per_s, datagrams, buffer_depth_ns: 0, first_ns: 5_000_000 })
    }

    fn wait(schedule: &mut FrameSchedule, reached: Reached, now_ns: u64) -> Option<u64> {
        let (tally, mut latencies) = (Tally::default(), Latencies::default());
        schedule.wait_until(reached, now_ns, false, (&tally, &mut latencies))
    }

    #[test]
    fn late_frames_leave_at_once_and_none_is_left_out() {
        let measuring = reached(Phase::Measure, u64::MAX);
        let mut schedule = schedule();
        let first_ns = OPENED_NS + 5_000_000;
        assert_eq!(wait(&mut schedule, measuring, OPENED_NS), Some(first_ns));
        let late_ns = first_ns + 2 * FRAME_NS;
        for _ in 0..3 {
            assert_eq!(wait(&mut schedule, measuring, late_ns), None);
            assert_eq!(schedule.left(), 3);
            schedule.record_sent(2);
            assert!(schedule.is_in_frame());
            schedule.record_sent(1);
        }
        assert_eq!(wait(&mut schedule, measuring, late_ns), Some(first_ns + 3 * FRAME_NS));
        assert_eq!(schedule.counts().sent, Some(3));
    }

    #[test]
    fn frames_due_before_the_end_belong_to_the_load() {
        let ends_ns = OPENED_NS + 2 * FRAME_NS;
        let stopped = reached(Phase::Stop, ends_ns);
        let mut schedule = schedule();
        for _ in 0..2 {
            assert!(schedule.catches_up(stopped, ends_ns));
            assert_eq!(wait(&mut schedule, stopped, ends_ns), None);
            assert!(schedule.catches_up(stopped, ends_ns));
            schedule.record_sent(3);
        }
        assert!(!schedule.catches_up(stopped, ends_ns));
        assert!(wait(&mut schedule, reached(Phase::Measure, ends_ns), ends_ns) > Some(ends_ns));
        assert_eq!(schedule.counts().sent, Some(2));
        let mut blocked = self::schedule();
        assert_eq!(wait(&mut blocked, stopped, ends_ns), None);
        assert!(!blocked.catches_up(stopped, ends_ns + CATCH_UP_NS));
    }
}
