//! The phase of a load, set by the thread that conducts it and looked at before every operation.

use std::sync::atomic::{AtomicU8, Ordering};

/// Where a load stands. Later phases are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Those that begin an exchange or a transfer wait; those that answer or receive are ready.
    Hold = 0,
    /// Load that isn't counted.
    WarmUp = 1,
    /// Load that is counted.
    Measure = 2,
    /// Those that began end now; the others go on until their peers have ended.
    Stop = 3,
    /// Everybody ends: what was sent has arrived or never will.
    Drained = 4,
    /// Everybody ends at once, whatever is on its way.
    Abort = 5,
}

/// A phase that one thread sets and many look at.
#[derive(Debug)]
pub(crate) struct SharedPhase(AtomicU8);

impl SharedPhase {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(Phase::Hold as u8))
    }

    #[inline]
    pub(crate) fn current(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Hold,
            1 => Phase::WarmUp,
            2 => Phase::Measure,
            3 => Phase::Stop,
            4 => Phase::Drained,
            _ => Phase::Abort,
        }
    }

    /// Moves on; never back.
    pub(crate) fn advance_to(&self, phase: Phase) {
        self.0.fetch_max(phase as u8, Ordering::Release);
    }
}
