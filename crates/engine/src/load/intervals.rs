//! When a load's intervals end.

use crate::clock::utc_of;

/// The intervals of a load, one after the other. Each is as long as was asked for at least; or, where a dialect has
/// it so, is to end a whole number of lengths after the first began, however late others were.
#[derive(Debug)]
pub(crate) struct Intervals {
    /// `u64::MAX`: none are asked for.
    length_ns: u64,
    makes_up: bool,
    /// When the load began.
    began_ns: u64,
    /// The number of the one that goes on.
    index: u32,
    /// When it began.
    last_ns: u64,
    /// When it is to end.
    next_ns: u64,
}

/// An interval that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) index: u32,
    /// Since the load began.
    pub(crate) from_ns: u64,
    /// Likewise.
    pub(crate) to_ns: u64,
    /// When it ended (UTC, nanoseconds since 1970).
    pub(crate) utc_ns: i64,
}

impl Intervals {
    /// The load begins.
    pub(crate) fn begin(length_ns: u64, now_ns: u64) -> Self {
        Self {
            length_ns,
            makes_up: false,
            began_ns: now_ns,
            index: 0,
            last_ns: now_ns,
            next_ns: now_ns.saturating_add(length_ns),
        }
    }

    /// Likewise, where one that was late makes the next shorter.
    pub(crate) fn making_up(self) -> Self {
        Self { makes_up: true, ..self }
    }

    pub(crate) fn began_ns(&self) -> u64 {
        self.began_ns
    }

    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// How long one is, where any are asked for.
    pub(crate) fn length_ns(&self) -> Option<u64> {
        Some(self.length_ns).filter(|length_ns| *length_ns < u64::MAX)
    }

    /// How long the one that goes on does.
    pub(crate) fn elapsed_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.last_ns)
    }

    /// Whether the one that goes on has a rate to tell, if it is cut off now: of less than a twentieth of its length
    /// bytes alone are worth telling.
    pub(crate) fn is_long(&self, now_ns: u64) -> bool {
        self.elapsed_ns(now_ns) > self.length_ns / 20
    }

    /// Ends the one that goes on.
    pub(crate) fn cut(&mut self, now_ns: u64) -> Interval {
        let now_ns = now_ns.max(self.last_ns);
        let interval = Interval {
            index: self.index,
            from_ns: self.last_ns.saturating_sub(self.began_ns),
            to_ns: now_ns.saturating_sub(self.began_ns),
            utc_ns: utc_of(now_ns),
        };
        self.index = self.index.saturating_add(1);
        self.last_ns = now_ns;
        self.prolong(now_ns);
        interval
    }

    /// Has the one that goes on end when the next would have.
    pub(crate) fn prolong(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.next_ns).checked_div(self.length_ns).unwrap_or(0);
        if !self.makes_up {
            self.next_ns = now_ns.saturating_add(self.length_ns);
        } else if now_ns >= self.next_ns {
            let lengths = self.length_ns.saturating_mul(passed.saturating_add(1));
            self.next_ns = self.next_ns.saturating_add(lengths);
        }
    }

    /// The next one begins now.
    pub(crate) fn restart(&mut self, now_ns: u64) {
        self.last_ns = now_ns;
        self.next_ns = now_ns.saturating_add(self.length_ns);
    }

    /// The load ends at this time, or a moment later where its other end ends it. An interval that would be over just
    /// before is so a tenth of an interval after that end, unless the load has ended by then: the few bytes that move
    /// meanwhile are no interval of their own.
    pub(crate) fn wait_for_end(&mut self, end_ns: u64) {
        let Some(length_ns) = self.length_ns() else { return };
        let tenth_ns = length_ns / 10;
        if (end_ns.saturating_sub(tenth_ns)..=end_ns).contains(&self.next_ns) {
            self.next_ns = end_ns.saturating_add(tenth_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_is_over_with_the_load_waits_for_its_end() {
        let held = |next_ns: u64| {
            let mut intervals = Intervals { next_ns, ..Intervals::begin(1_000, 0) };
            intervals.wait_for_end(10_000);
            intervals.next_ns()
        };
        assert_eq!(held(9_000), 9_000);
        assert_eq!(held(10_000), 10_100);
        assert_eq!(held(9_900), 10_100);
        assert_eq!(held(9_899), 9_899);
        // One that the load outlasts is told at its time.
        assert_eq!(held(10_100), 10_100);
    }

    #[test]
    fn a_late_end_moves_no_other_where_that_is_made_up_for() {
        let mut intervals = Intervals::begin(1_000, 500).making_up();
        let mut ends = |now_ns| {
            let Interval { index, from_ns, to_ns, .. } = intervals.cut(now_ns);
            (index, from_ns, to_ns, intervals.next_ns())
        };
        assert_eq!(ends(1_507), (0, 0, 1_007, 2_500));
        assert_eq!(ends(4_501), (1, 1_007, 4_001, 5_500));
        // One that is cut off before its time.
        assert_eq!(ends(5_000), (2, 4_001, 4_500, 5_500));
        intervals.restart(5_000);
        assert_eq!(intervals.next_ns(), 6_000);
        let mut moved = Intervals::begin(1_000, 500);
        moved.cut(1_507);
        assert_eq!(moved.next_ns(), 2_507);
        let mut none = Intervals::begin(u64::MAX, 500);
        assert_eq!((none.length_ns(), none.next_ns()), (None, u64::MAX));
        none.cut(700);
        assert_eq!(none.next_ns(), u64::MAX);
    }
}
