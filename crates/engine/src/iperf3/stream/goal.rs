//! How much a test is to carry (`-n`, `-k`), which its streams of one direction share.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// What all streams of one direction together have left to carry. Only a test that has such an end pays for it.
#[derive(Debug)]
pub(in super::super) struct Goal {
    left_bytes: Option<AtomicI64>,
    /// What was claimed and has not been sent yet: one stream may find that nothing is left while
    /// another's socket still refuses the end of its block.
    unsent_bytes: AtomicI64,
    /// Whether nothing is left to claim, or has to come.
    exhausted: AtomicBool,
}

impl Goal {
    /// So many bytes; `None`: as many as come.
    pub(in super::super) fn new(bytes: Option<u64>) -> Self {
        let left = bytes.map(|bytes| AtomicI64::new(i64::try_from(bytes).unwrap_or(i64::MAX)));
        let (unsent_bytes, exhausted) = (AtomicI64::new(0), AtomicBool::new(false));
        Self { left_bytes: left, unsent_bytes, exhausted }
    }

    /// Whether there is an end to be reached.
    #[inline]
    pub(super) fn is_set(&self) -> bool {
        self.left_bytes.is_some()
    }

    /// Takes a block of what is left to send; says whether anything was.
    #[inline]
    pub(super) fn claim(&self, bytes: u64) -> bool {
        let Some(left) = &self.left_bytes else { return true };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        // First, so that nobody finds nothing left and nothing unsent in between.
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
    pub(super) fn settle(&self, bytes: u64) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.unsent_bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.is_reached()
    }

    /// Counts received bytes; says whether they were the last.
    #[inline]
    pub(super) fn record(&self, bytes: u64) -> bool {
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
    pub(super) fn exhaust(&self) {
        self.exhausted.store(true, Ordering::SeqCst);
    }

    /// Whether nothing is left, and what was claimed has been sent.
    pub(in super::super) fn is_reached(&self) -> bool {
        self.exhausted.load(Ordering::SeqCst) && self.unsent_bytes.load(Ordering::SeqCst) <= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_claimed_until_nothing_is_left() {
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
