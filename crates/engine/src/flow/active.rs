//! Which of a shard's flows have a request on its way, where not all may at a time.

/// Requests that a flow sends one after the other before another flow gets its place. What
/// the kernel holds for a connection has long left the processor's caches when its turn comes, and
/// is fetched once for so many.
const REQUESTS_PER_TURN: u64 = 16;

/// The places that a shard has for active flows.
pub(crate) struct ActiveFlows {
    free: usize,
    requests_per_turn: u64,
}

impl ActiveFlows {
    /// Every flow has a place for as long as it likes.
    pub(crate) const ALL: Self = Self { free: usize::MAX, requests_per_turn: u64::MAX };

    /// Of so many flows, `most` are active at a time.
    pub(crate) fn new(most: usize, flows: usize) -> Self {
        if most >= flows {
            return Self::ALL;
        }
        Self { free: most, requests_per_turn: REQUESTS_PER_TURN }
    }

    pub(crate) fn free(&self) -> usize {
        self.free
    }

    /// Takes a place, where one is free; returns how many requests it is for.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u64> {
        self.free = self.free.checked_sub(1)?;
        Some(self.requests_per_turn)
    }

    #[inline]
    pub(crate) fn give_back(&mut self) {
        self.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_for_turns_of_sixteen_requests() {
        let mut active = ActiveFlows::new(2, 3);
        assert_eq!([active.take(), active.take(), active.take()], [Some(16), Some(16), None]);
        active.give_back();
        assert_eq!((active.free(), active.take()), (1, Some(16)));
    }

    #[test]
    fn flows_keep_their_places_if_there_is_one_for_each() {
        for mut active in [ActiveFlows::new(3, 3), ActiveFlows::new(4, 3), ActiveFlows::ALL] {
            assert_eq!([active.take(), active.take(), active.take()], [Some(u64::MAX); 3]);
        }
    }
}
