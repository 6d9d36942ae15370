//! How much a test is to carry (`-n`, `-k`), which its streams share.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// What all streams together have left to carry. Only a test that has such an end pays for it.
#[derive(Debug)]
pub(in super::super) struct Goal {
    left_bytes: Option<AtomicI64>,
    reached: AtomicBool,
}

impl Goal {
    /// So many bytes; `None`: as many as come.
    pub(in super::super) fn new(bytes: Option<u64>) -> Self {
        let left = bytes.map(|bytes| AtomicI64::new(i64::try_from(bytes).unwrap_or(i64::MAX)));
        Self { left_bytes: left, reached: AtomicBool::new(false) }
    }

    /// Takes a block of what is left to send; says whether anything was.
    #[inline]
    pub(super) fn claim(&self, bytes: u64) -> bool {
        let Some(left) = &self.left_bytes else { return true };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let before = left.fetch_sub(bytes, Ordering::Relaxed);
        if before <= 0 {
            // Nothing was sent: so that asking again and again never wraps around.
            left.fetch_add(bytes, Ordering::Relaxed);
            self.reach();
        }
        before > 0
    }

    /// Counts received bytes; says whether they were the last.
    #[inline]
    pub(super) fn record(&self, bytes: u64) -> bool {
        let Some(left) = &self.left_bytes else { return false };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let before = left.fetch_sub(bytes, Ordering::Relaxed);
        let last = before > 0 && before <= bytes;
        if last {
            self.reach();
        }
        last
    }

    /// Nothing is left, or there is no more to send.
    pub(super) fn reach(&self) {
        self.reached.store(true, Ordering::Relaxed);
    }

    /// Whether nothing is left.
    pub(in super::super) fn is_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_claimed_until_nothing_is_left() {
        let goal = Goal::new(Some(25));
        assert_eq!((0..5).filter(|_| goal.claim(10)).count(), 3);
        assert!(goal.is_reached());
        assert!((0..100).all(|_| Goal::new(None).claim(u64::MAX)));
    }

    #[test]
    fn the_last_bytes_received_are_told_once() {
        let goal = Goal::new(Some(25));
        let told: Vec<bool> = [10, 10, 10, 10].into_iter().map(|n| goal.record(n)).collect();
        assert_eq!(told, [false, false, true, false]);
    }
}
