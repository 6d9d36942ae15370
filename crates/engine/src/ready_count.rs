//! How many of a load's flows have come how far.

use std::sync::atomic::{AtomicU32, Ordering};

/// Up to so many flows, each one's progress wakes the conductor.
const WAKE_EACH: u32 = 256;

/// How many of a load's flows are ready and how many have ended: each flow adds itself once to
/// either, so that the flows needn't be asked one by one.
#[derive(Debug)]
pub(crate) struct ReadyCount {
    total: AtomicU32,
    ready: AtomicU32,
    ended: AtomicU32,
}

impl ReadyCount {
    pub(crate) fn new(total: u32) -> Self {
        Self { total: total.into(), ready: AtomicU32::new(0), ended: AtomicU32::new(0) }
    }

    /// The load gets one more flow.
    pub(crate) fn add_flow(&self) {
        self.total.fetch_add(1, Ordering::AcqRel);
    }

    fn total(&self) -> u32 {
        self.total.load(Ordering::Acquire)
    }

    /// A flow can carry load, or never will; says whether the conductor should know at once.
    pub(crate) fn record_ready(&self) -> bool {
        self.is_news(&self.ready)
    }

    /// A flow has ended; likewise.
    pub(crate) fn record_ended(&self) -> bool {
        self.is_news(&self.ended)
    }

    fn is_news(&self, count: &AtomicU32) -> bool {
        let now = count.fetch_add(1, Ordering::AcqRel) + 1;
        let total = self.total();
        now == total || total <= WAKE_EACH
    }

    pub(crate) fn all_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) >= self.total()
    }

    pub(crate) fn ended(&self) -> u32 {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn all_ended(&self) -> bool {
        self.ended() >= self.total()
    }
}
