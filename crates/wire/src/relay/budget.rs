//! What may wait in the proxy in one direction: read at one end, not taken by the other.

/// The most of one piece: what a stream may leave waiting when the other end takes no more.
pub(super) const PIECE_BYTES: usize = 16 << 10;

/// The bytes that all streams of one direction may leave waiting together. Each stream has a share of
/// its own, so that streams whose other end reads nothing never stop the others.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    buffer_bytes: usize,
    share_bytes: usize,
    /// What all streams wait with, each counted with its share at least.
    committed_bytes: usize,
}

impl Budget {
    /// For so many streams at most. Half of the buffer are their shares.
    pub(super) fn new(buffer_bytes: usize, streams: usize) -> Self {
        let share_bytes = buffer_bytes / 2 / streams.max(1);
        Self { buffer_bytes, share_bytes, committed_bytes: share_bytes * streams }
    }

    /// The longest piece that a stream may read that has nothing waiting.
    pub(super) fn piece_bytes(&self) -> usize {
        let free_bytes = self.buffer_bytes.saturating_sub(self.committed_bytes);
        (self.share_bytes + free_bytes).clamp(1, PIECE_BYTES)
    }

    /// What waits of one stream has changed.
    pub(super) fn record_change(&mut self, before_bytes: usize, now_bytes: usize) {
        self.committed_bytes += now_bytes.max(self.share_bytes);
        self.committed_bytes -= before_bytes.max(self.share_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_may_wait_with_its_share_when_all_others_wait_with_all_they_may() {
        let mut budget = Budget::new(64 << 10, 32);
        let mut waiting = 0;
        for _ in 0..32 {
            let piece = budget.piece_bytes();
            assert!(piece >= 1 << 10, "{piece}");
            budget.record_change(0, piece);
            waiting += piece;
            assert!(waiting <= 64 << 10);
        }
        assert!(waiting > 48 << 10, "{waiting}");
        // One that ends leaves its place to others.
        budget.record_change(1 << 10, 0);
        assert_eq!(budget.piece_bytes(), 1 << 10);
    }
}
