//! How much a load is to carry, where its flows of one direction share that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::Local;

/// What all flows of one direction together have left to carry. Only a load that has such an end pays for it.
#[derive(Debug)]
pub(crate) struct Goal {
    left_bytes: Option<AtomicI64>,
    /// What was claimed and has not been sent yet: one flow may find that nothing is left while
    /// another's socket still refuses the end of its block.
    unsent_bytes: AtomicI64,
    /// Whether nothing is left to claim, or has to come.
    exhausted: AtomicBool,
}

impl Goal {
    /// So many bytes; `None`: as many as come.
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        let left = bytes.map(|bytes| AtomicI64::new(i64::try_from(bytes).unwrap_or(i64::MAX)));
        let (unsent_bytes, exhausted) = (AtomicI64::new(0), AtomicBool::new(false));
        Self { left_bytes: left, unsent_bytes, exhausted }
    }

    /// Whether there is an end to be reached.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.left_bytes.is_some()
    }

    /// Takes a unit of what is left to send; says whether anything was.
    #[inline]
    fn claim(&self, bytes: u64) -> bool {
        let Some(left) = &self.left_bytes else { return true };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        // First, so that no thread finds nothing left and nothing unsent in between.
        self.unsent_bytes.fetch_add(bytes, Ordering::SeqCst);
        let before = left.fetch_sub(bytes, Ordering::SeqCst);
        if before <= 0 {
            // Nothing was sent: so that asking again and again never wraps around.
            left.fetch_add(bytes, Ordering::SeqCst);
            self.unsent_bytes.fetch_sub(bytes, Ordering::SeqCst);
            self.exhaust();
        }
        before > 0
    }

    /// So much of what was claimed has been sent, or never will be; says whether it was the last.
    #[inline]
    fn settle(&self, bytes: u64) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.unsent_bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.is_reached()
    }

    /// Counts received bytes; says whether they were the last.
    #[inline]
    pub(crate) fn record(&self, bytes: u64) -> bool {
        let Some(left) = &self.left_bytes else { return false };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let before = left.fetch_sub(bytes, Ordering::Relaxed);
        let last = before > 0 && before <= bytes;
        if last {
            self.exhaust();
        }
        last
    }

    /// Nothing is left to claim, or there is no more to send.
    fn exhaust(&self) {
        self.exhausted.store(true, Ordering::SeqCst);
    }

    /// Whether nothing is left, and what was claimed has been sent.
    pub(crate) fn is_reached(&self) -> bool {
        self.exhausted.load(Ordering::SeqCst) && self.unsent_bytes.load(Ordering::SeqCst) <= 0
    }
}

/// What a sender has claimed of its goal.
pub(super) struct GoalShare {
    goal: Arc<Goal>,
    /// Claimed and not sent yet.
    claimed_bytes: u64,
}

impl GoalShare {
    pub(super) fn new(goal: &Arc<Goal>) -> Self {
        Self { goal: Arc::clone(goal), claimed_bytes: 0 }
    }

    /// Claims a unit; says whether it may be sent. In the warm-up nothing counts, and all may be.
    #[inline]
    pub(super) fn claim(&mut self, bytes: usize, local: &Local) -> bool {
        if !local.is_measuring() || !self.goal.is_set() {
            return true;
        }
        let granted = self.goal.claim(bytes as u64);
        if granted {
            self.claimed_bytes += bytes as u64;
        } else {
            local.ring_conductor();
        }
        granted
    }

    /// Sent so much, of what was claimed where anything was.
    #[inline]
    pub(super) fn record_sent(&mut self, bytes: usize, local: &Local) {
        let settled_bytes = self.claimed_bytes.min(bytes as u64);
        if settled_bytes > 0 {
            self.settle(settled_bytes, local);
        }
    }

    /// There is nothing more to send, whatever was claimed.
    pub(super) fn exhaust(&mut self, local: &Local) {
        self.goal.exhaust();
        self.settle(self.claimed_bytes, local);
    }

    /// Claims so many units at most beside those that were claimed and not sent; says how many may be sent.
    #[inline]
    pub(super) fn claim_units(&mut self, most: usize, unit_bytes: usize, local: &Local) -> usize {
        if !local.is_measuring() || !self.goal.is_set() {
            return most;
        }
        let claimed = |share: &Self| share.claimed_bytes / unit_bytes.max(1) as u64;
        while claimed(self) < most as u64 && self.claim(unit_bytes, local) {}
        usize::try_from(claimed(self)).unwrap_or(usize::MAX).min(most)
    }

    #[inline]
    fn settle(&mut self, bytes: u64, local: &Local) {
        self.claimed_bytes -= bytes;
        if self.goal.settle(bytes) {
            local.ring_conductor();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_claimed_until_nothing_is_left() {
        let goal = Goal::new(Some(25));
        assert_eq!((0..5).filter(|_| goal.claim(10)).count(), 3);
        assert!(!goal.is_reached());
        assert_eq!([10, 15, 5].map(|bytes| goal.settle(bytes)), [false, false, true]);
        assert!((0..100).all(|_| Goal::new(None).claim(u64::MAX)));
    }

    #[test]
    fn the_last_bytes_received_are_told_once() {
        let goal = Goal::new(Some(25));
        let told: Vec<bool> = [10, 10, 10, 10].into_iter().map(|n| goal.record(n)).collect();
        assert_eq!(told, [false, false, true, false]);
    }
}
