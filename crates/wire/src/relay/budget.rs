//! What may wait in the proxy in one direction: read at one end, not taken by the other.

/// The bytes that all streams of one direction may leave waiting together. Each stream has a share of
/// its own, so that streams whose other end reads nothing never stop the others.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    buffer_bytes: usize,
    most_piece_bytes: usize,
    share_bytes: usize,
    /// What all streams wait with, each counted with its share at least.
    committed_bytes: usize,
}

impl Budget {
    /// For so many streams at most, which read pieces of so many bytes at most. Half of the buffer are their shares.
    pub(super) fn new(buffer_bytes: usize, most_piece_bytes: usize, streams: usize) -> Self {
        let share_bytes = buffer_bytes / 2 / streams.max(1);
        let committed_bytes = share_bytes * streams;
        Self { buffer_bytes, most_piece_bytes, share_bytes, committed_bytes }
    }

    /// The longest piece that a stream may read that has nothing waiting.
    pub(super) fn piece_bytes(&self) -> usize {
        let free_bytes = self.buffer_bytes.saturating_sub(self.committed_bytes);
        (self.share_bytes + free_bytes).min(self.most_piece_bytes).max(1)
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
        let mut budget = Budget::new(64 << 10, 16 << 10, 32);
        let mut waiting = 0;
        for _ in 0..32 {
            let piece = budget.piece_bytes();
            assert!(piece >= 1 << 10, "{piece}");
            budget.record_change(0, piece);
            waiting += piece;
            assert!(waiting <= 64 << 10);
        }
        assert!(waiting > 48 << 10, "{waiting}");
        // One that ends leaves its share to others.
        budget.record_change(1 << 10, 0);
        assert_eq!(budget.piece_bytes(), 1 << 10);
    }

    #[test]
    fn no_piece_is_longer_than_the_longest() {
        for (buffer_bytes, most_piece_bytes, piece_bytes) in
            [(1 << 20, 16 << 10, 16 << 10), (1 << 20, 128 << 10, 128 << 10), (10, 16 << 10, 8)]
        {
            let budget = Budget::new(buffer_bytes, most_piece_bytes, 3);
            assert_eq!(budget.piece_bytes(), piece_bytes);
        }
    }
}
