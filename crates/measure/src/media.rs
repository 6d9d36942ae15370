//! Media streams: frames at a constant rate, each of several datagrams, and what became of them.
//!
//! The datagrams of a stream are numbered from 0 on, and every frame has as many. So a datagram's
//! number tells its frame and its place in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod delay;
mod losses;

pub use delay::DelayVariation;
use losses::LossRuns;

/// How long after its playout time a frame may still become complete and count as late. After that
/// it is dropped.
pub const LATE_NS: u64 = 1_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// What makes a stream of datagrams a media stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Media {
    /// Frames per second of each flow.
    pub frames_per_s: u32,
    /// How long a receiver holds frames back before it plays the first: a frame that is complete
    /// later than that is late.
    pub buffer_depth_ns: u64,
}

/// The frames of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Frames {
    /// Frames per second.
    pub per_s: u32,
    /// Datagrams of a frame.
    pub datagrams: u32,
    /// How long the receiver holds frames back before it plays the first.
    pub buffer_depth_ns: u64,
    /// When the first frame is due, after the load has begun: the flows take turns.
    pub first_ns: u64,
}

impl Frames {
    /// When a frame is due after the first one.
    pub fn due_ns(&self, frame: u64) -> u64 {
        let ns = u128::from(frame) * u128::from(SECOND_NS) / u128::from(self.per_s.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Frames that a receiver keeps account of at a time: those that it holds back, and those that
    /// may still come late.
    pub fn window(&self) -> u64 {
        let kept_ns = u128::from(self.buffer_depth_ns.saturating_add(LATE_NS));
        let frames = kept_ns * u128::from(self.per_s) / u128::from(SECOND_NS);
        u64::try_from(frames).unwrap_or(u64::MAX).saturating_add(2)
    }
}

/// Frames by what became of them. A sender knows `sent`, a receiver the others. Each frame that was
/// sent is one of the three in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrameCounts {
    /// Sent, at least in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Complete at their playout time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
    /// Complete up to a second after their playout time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Never complete, or later than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
}

impl FrameCounts {
    /// Both added up, field by field; a field that one of them lacks is the other's.
    pub fn plus(self, other: Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            sent: add(self.sent, other.sent),
            completed: add(self.completed, other.completed),
            late: add(self.late, other.late),
            dropped: add(self.dropped, other.dropped),
        }
    }
}

/// What a receiver knows of the frames of one flow.
///
/// 1. The first measured datagram that arrives sets the playout times: its frame's is the buffer
///    depth after this arrival, and each further frame's is a frame time after the one before. The
///    sender's clock has no part in it.
/// 2. A frame whose last datagram arrives at its playout time at the latest is completed; up to
///    [`LATE_NS`] after it, late. The others up to the newest that came are dropped.
/// 3. A second arrival of a datagram changes nothing.
/// 4. Without a warm-up, frames begin with number 0. After one, of which nothing need have arrived, they
///    begin with the frame of the first measured datagram that arrives: which frames before it were
///    measured isn't known.
///
/// Frames of the warm-up are left out. A frame is known to lack something when so many newer ones have
/// begun that it leaves the window, or at the end. Memory is fixed, and no arrival costs more than
/// going through the window once.
#[derive(Clone, Debug)]
pub struct FrameTracker {
    frames: Frames,
    /// Datagrams that arrived, for each frame of the window, at its number modulo the window.
    arrived: Box<[u32]>,
    /// A bit for each of them, likewise, [`FrameTracker::words`] words a frame.
    seen: Box<[u64]>,
    words: usize,
    has_warm_up: bool,
    /// The oldest frame of the window; `None` before the first measured datagram.
    oldest: Option<u64>,
    /// One more than the newest frame of which anything came.
    after_newest: u64,
    /// The frame that came first, and when it is played.
    first: (u64, u64),
    completed: u64,
    late: u64,
    dropped: u64,
    losses: LossRuns,
}

impl FrameTracker {
    /// A tracker of a flow of which nothing has come.
    pub fn new(frames: Frames) -> Self {
        let window = usize::try_from(frames.window()).unwrap_or(usize::MAX);
        let words = (frames.datagrams as usize).div_ceil(64).max(1);
        Self {
            frames: Frames { datagrams: frames.datagrams.max(1), ..frames },
            arrived: vec![0; window].into(),
            seen: vec![0; window.saturating_mul(words)].into(),
            words,
            has_warm_up: false,
            oldest: None,
            after_newest: 0,
            first: (0, 0),
            completed: 0,
            late: 0,
            dropped: 0,
            losses: LossRuns::default(),
        }
    }

    /// The flow begins with a warm-up, whether anything of it arrives or not.
    pub fn expect_warm_up(&mut self) {
        self.has_warm_up = true;
    }

    /// Records the arrival of datagram `seq` at `received_ns`, by this end's clock.
    #[inline]
    pub fn record(&mut self, seq: u64, received_ns: u64, warm_up: bool) {
        if warm_up {
            self.has_warm_up = true;
            return;
        }
        let datagrams = u64::from(self.frames.datagrams);
        let (frame, place) = (seq / datagrams, (seq % datagrams) as usize);
        let Some(oldest) = self.oldest else {
            return self.record_first(frame, place, received_ns);
        };
        if frame < oldest {
            return;
        }
        if frame - oldest >= self.arrived.len() as u64 {
            self.make_room(frame);
        }
        self.record_place(frame, place, received_ns);
    }

    /// Nothing more will come: frames that lack something are dropped.
    pub fn finish(&mut self) {
        let Some(oldest) = self.oldest else { return };
        for frame in oldest..self.after_newest.max(oldest) {
            self.retire(frame);
        }
        self.oldest = Some(self.after_newest.max(oldest));
        self.losses.finish();
    }

    /// The frames by what became of them so far.
    pub fn counts(&self) -> FrameCounts {
        FrameCounts {
            sent: None,
            completed: Some(self.completed),
            late: Some(self.late),
            dropped: Some(self.dropped),
        }
    }

    /// Runs of lost datagrams beside each other, and the datagrams of the longest.
    pub fn loss_bursts(&self) -> (u64, u64) {
        (self.losses.count(), self.losses.longest())
    }

    #[cold]
    fn record_first(&mut self, frame: u64, place: usize, received_ns: u64) {
        let oldest = if self.has_warm_up { frame } else { 0 };
        self.first = (frame, received_ns.saturating_add(self.frames.buffer_depth_ns));
        self.oldest = Some(oldest);
        self.after_newest = oldest;
        self.make_room(frame);
        self.record_place(frame, place, received_ns);
    }

    /// Records a datagram of a frame of the window.
    #[inline]
    fn record_place(&mut self, frame: u64, place: usize, received_ns: u64) {
        let at = self.place_of(frame);
        let (word, bit) = (at * self.words + place / 64, 1_u64 << (place % 64));
        if self.seen[word] & bit != 0 {
            return;
        }
        self.seen[word] |= bit;
        self.arrived[at] += 1;
        self.after_newest = self.after_newest.max(frame.saturating_add(1));
        if self.arrived[at] < self.frames.datagrams {
            return;
        }
        let playout_ns = self.playout_ns(frame);
        let count = match received_ns.saturating_sub(playout_ns) {
            0 => &mut self.completed,
            1..=LATE_NS => &mut self.late,
            _ => &mut self.dropped,
        };
        *count = count.saturating_add(1);
    }

    /// Retires as many frames as it takes for the window to reach up to `frame`.
    #[cold]
    fn make_room(&mut self, frame: u64) {
        let Some(mut oldest) = self.oldest else { return };
        let until = frame.saturating_sub(self.arrived.len() as u64 - 1);
        while oldest < until.min(self.after_newest) {
            self.retire(oldest);
            oldest += 1;
        }
        // Of all that stands between, nothing came.
        let absent = until.saturating_sub(oldest);
        self.dropped = self.dropped.saturating_add(absent);
        self.losses.record_lost(absent.saturating_mul(self.frames.datagrams.into()));
        self.oldest = Some(oldest + absent);
    }

    /// Takes a frame out of the window, whose place is free then.
    fn retire(&mut self, frame: u64) {
        let at = self.place_of(frame);
        let arrived = std::mem::take(&mut self.arrived[at]);
        if arrived == 0 {
            // Nothing of it was seen: no place need be looked at.
            self.dropped = self.dropped.saturating_add(1);
            return self.losses.record_lost(self.frames.datagrams.into());
        }
        let seen = &mut self.seen[at * self.words..(at + 1) * self.words];
        if arrived < self.frames.datagrams {
            self.dropped = self.dropped.saturating_add(1);
            self.losses.record_places(seen, self.frames.datagrams);
        } else {
            self.losses.record_arrived();
        }
        seen.fill(0);
    }

    fn place_of(&self, frame: u64) -> usize {
        (frame % self.arrived.len() as u64) as usize
    }

    /// When a frame is played.
    fn playout_ns(&self, frame: u64) -> u64 {
        let (first, at_ns) = self.first;
        match frame.checked_sub(first) {
            Some(after) => at_ns.saturating_add(self.frames.due_ns(after)),
            None => at_ns.saturating_sub(self.frames.due_ns(first - frame)),
        }
    }
}

#[cfg(test)]
mod tests;
