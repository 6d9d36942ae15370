//! Runs of lost datagrams.

/// Runs of datagrams with numbers beside each other that never came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRuns {
    count: u64,
    longest: u64,
    /// The run that isn't over.
    current: u64,
}

impl LossRuns {
    /// The next datagrams in order were lost.
    pub(super) fn record_lost(&mut self, datagrams: u64) {
        self.current = self.current.saturating_add(datagrams);
    }

    /// The next datagram in order has come.
    #[inline]
    pub(super) fn record_arrived(&mut self) {
        if self.current > 0 {
            self.count = self.count.saturating_add(1);
            self.longest = self.longest.max(self.current);
            self.current = 0;
        }
    }

    /// The next datagrams in order, a bit for each that came.
    pub(super) fn record_places(&mut self, seen: &[u64], datagrams: u32) {
        for (word, start) in seen.iter().zip((0..datagrams).step_by(64)) {
            for place in 0..(datagrams - start).min(64) {
                match word >> place & 1 {
                    1 => self.record_arrived(),
                    _ => self.record_lost(1),
                }
            }
        }
    }

    /// Nothing more comes: a run that isn't over ends.
    pub(super) fn finish(&mut self) {
        self.record_arrived();
    }

    /// Runs that are over.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Datagrams of the longest of them; 0 where there is none.
    pub(super) fn longest(&self) -> u64 {
        self.longest
    }
}
