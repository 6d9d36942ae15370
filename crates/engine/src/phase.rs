//! The phase of a load, set by the thread that conducts it and looked at before every operation.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

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

/// How far a load has come, and when it came there, on the monotonic clock: a flow that looks late knows what belongs to
/// which phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached {
    pub(crate) phase: Phase,
    /// When load began; `u64::MAX`: not yet.
    pub(crate) opened_ns: u64,
    /// When the measured part began; `u64::MAX`: not yet.
    pub(crate) measuring_ns: u64,
    /// When the load ends, by its plan or because it was stopped; `u64::MAX`: unknown.
    /// Nothing that is due later belongs to it.
    pub(crate) ends_ns: u64,
}

impl Reached {
    /// Whether the load begins with a warm-up, as far as that is known.
    pub(crate) fn has_warm_up(&self) -> bool {
        let is_over = self.measuring_ns < u64::MAX && self.opened_ns < self.measuring_ns;
        self.phase == Phase::WarmUp || is_over
    }
}

/// A phase that one thread sets and many look at.
#[derive(Debug)]
pub(crate) struct SharedPhase {
    phase: AtomicU8,
    opened_ns: AtomicU64,
    measuring_ns: AtomicU64,
    ends_ns: AtomicU64,
}

impl SharedPhase {
    pub(crate) fn new() -> Self {
        Self {
            phase: AtomicU8::new(Phase::Hold as u8),
            opened_ns: AtomicU64::new(u64::MAX),
            measuring_ns: AtomicU64::new(u64::MAX),
            ends_ns: AtomicU64::new(u64::MAX),
        }
    }

    #[inline]
    pub(crate) fn current(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Hold,
            1 => Phase::WarmUp,
            2 => Phase::Measure,
            3 => Phase::Stop,
            4 => Phase::Drained,
            _ => Phase::Abort,
        }
    }

    /// The phase, and when those began that are told apart by their time.
    #[inline]
    pub(crate) fn reached(&self) -> Reached {
        let phase = self.current();
        // The times were stored before the phase.
        fence(Ordering::Acquire);
        Reached {
            phase,
            opened_ns: self.opened_ns.load(Ordering::Relaxed),
            measuring_ns: self.measuring_ns.load(Ordering::Relaxed),
            ends_ns: self.ends_ns.load(Ordering::Relaxed),
        }
    }

    /// The load will end then, unless it is stopped before.
    pub(crate) fn plan_end(&self, ends_ns: u64) {
        self.ends_ns.fetch_min(ends_ns, Ordering::Relaxed);
    }

    /// Moves on, at this time; never back.
    pub(crate) fn advance_to(&self, phase: Phase, now_ns: u64) {
        if phase >= Phase::WarmUp {
            self.opened_ns.fetch_min(now_ns, Ordering::Relaxed);
        }
        if phase >= Phase::Measure {
            self.measuring_ns.fetch_min(now_ns, Ordering::Relaxed);
        }
        if phase >= Phase::Stop {
            self.plan_end(now_ns);
        }
        self.phase.fetch_max(phase as u8, Ordering::Release);
    }
}
