//! A sequential test of a share: is it below a limit, or above?

use serde::{Deserialize, Serialize};

/// The test tells a share of `limit` / `MARGIN` from one of `limit` x `MARGIN`.
pub(super) const MARGIN: f64 = 1.5;
/// The logarithm of (1 - 0.02) / 0.02: each wrong decision happens in 2 % of the trials at most
/// (Wald, Sequential Tests of Statistical Hypotheses, 1945).
pub(super) const CERTAIN: f64 = 3.891_820_298_110_627;
/// A share is above its limit after so many events at least...
const LEAST_EVENTS: u64 = 5;
/// ... in so many intervals at least: one hiccup of the path is no share.
const LEAST_INTERVALS: u32 = 3;

/// Items of an interval that broke a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bad {
    /// How many.
    pub items: u64,
    /// In how many runs: items that break a limit one after the other are one event, because they
    /// have one cause. Never more than `items`.
    pub events: u64,
}

impl Bad {
    /// Items of which it isn't known how they follow each other: those of an interval are one event.
    pub fn one_event(items: u64) -> Self {
        Self { items, events: u64::from(items > 0) }
    }

    /// Both added up.
    pub fn plus(self, other: Self) -> Self {
        Self {
            items: self.items.saturating_add(other.items),
            events: self.events.saturating_add(other.events),
        }
    }
}

/// What a test says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The share is below the limit.
    Below,
    /// The share is above the limit.
    Above,
    /// More must be seen.
    Open,
}

/// The sequential ratio test of one share. It counts *events*, runs of bad items, and takes the
/// mean length of a run as observed: arithmetic for independent losses is wrong where they come in
/// bursts.
#[derive(Clone, Debug)]
pub struct RatioTest {
    limit: f64,
    /// A run is taken to be so long at least where the share is to be below the limit.
    floor: f64,
    items: u64,
    bad: Bad,
    intervals: u32,
}

impl RatioTest {
    /// A test against a limit (0 to 1), whose "below" takes a run of bad items to be at least
    /// `floor` long.
    pub fn new(limit: f64, floor: f64) -> Self {
        Self { limit, floor, items: 0, bad: Bad::default(), intervals: 0 }
    }

    /// An interval had so many items, bad ones included.
    pub fn record(&mut self, items: u64, bad: Bad) {
        self.items = self.items.saturating_add(items);
        // A peer's count of events can't be above its count of items.
        let events = bad.events.min(bad.items);
        let events = if bad.items > 0 { events.max(1) } else { 0 };
        self.bad = self.bad.plus(Bad { items: bad.items, events });
        self.intervals += u32::from(bad.items > 0);
    }

    /// Takes exact counts in the place of those so far.
    pub fn replace(&mut self, items: u64, bad: Bad) {
        let events = bad.events.clamp(u64::from(bad.items > 0), bad.items);
        (self.items, self.bad) = (items, Bad { items: bad.items, events });
    }

    /// Items so far, and the bad ones among them.
    pub fn counts(&self) -> (u64, Bad) {
        (self.items, self.bad)
    }

    /// Items that it takes, if none is bad, to decide that the share is below the limit.
    pub fn needed_items(limit: f64, floor: f64) -> f64 {
        CERTAIN * floor / (limit * (MARGIN - 1.0 / MARGIN))
    }

    /// What the items so far say. No number of good items shows that a limit of 0 is kept.
    pub fn decide(&self) -> Decision {
        if self.limit >= 1.0 {
            return Decision::Below;
        }
        let mean = self.bad.items as f64 / self.bad.events.max(1) as f64;
        let seen = self.bad.events >= LEAST_EVENTS && self.intervals >= LEAST_INTERVALS;
        if self.limit <= 0.0 {
            // A few may only have been overtaken.
            return if seen { Decision::Above } else { Decision::Open };
        }
        if seen && self.log_ratio(mean.max(1.0)) > CERTAIN {
            return Decision::Above;
        }
        if self.log_ratio(mean.max(self.floor)) < -CERTAIN {
            return Decision::Below;
        }
        Decision::Open
    }

    /// Which side of the limit is more likely, where nothing is certain.
    pub fn guess(&self) -> Decision {
        let is_above = self.bad.items as f64 > self.limit * self.items as f64;
        if is_above { Decision::Above } else { Decision::Below }
    }

    /// How much more likely the events are with a share above the limit than with one below it:
    /// the logarithm, for events of a Poisson process, runs of so many items.
    fn log_ratio(&self, run: f64) -> f64 {
        let expected = self.items as f64 * self.limit / run;
        self.bad.events as f64 * (MARGIN * MARGIN).ln() - expected * (MARGIN - 1.0 / MARGIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_of(limit: f64, floor: f64, intervals: u32, items: u64, bad: Bad) -> Decision {
        let mut test = RatioTest::new(limit, floor);
        (0..intervals).for_each(|_| test.record(items, bad));
        test.decide()
    }

    #[test]
    fn no_loss_of_4700_is_below_a_thousandth_and_10_times_as_many_with_floor_10() {
        let none = Bad::default();
        assert!((4_600.0..4_700.0).contains(&RatioTest::needed_items(0.001, 1.0)));
        assert_eq!(test_of(0.001, 1.0, 1, 4_600, none), Decision::Open);
        assert_eq!(test_of(0.001, 1.0, 1, 4_700, none), Decision::Below);
        assert_eq!(test_of(0.001, 10.0, 1, 46_000, none), Decision::Open);
        assert_eq!(test_of(0.001, 10.0, 1, 47_000, none), Decision::Below);
    }

    #[test]
    fn one_burst_is_not_above_a_limit_and_five_in_three_intervals_are() {
        let burst = Bad { items: 500, events: 1 };
        assert_eq!(test_of(0.001, 1.0, 1, 1_000, burst), Decision::Open);
        assert_eq!(test_of(0.001, 1.0, 4, 1_000, burst), Decision::Open);
        assert_eq!(test_of(0.001, 1.0, 5, 1_000, burst), Decision::Above);
        let five_at_once = Bad { items: 500, events: 5 };
        assert_eq!(test_of(0.001, 1.0, 2, 1_000, five_at_once), Decision::Open);
        assert_eq!(test_of(0.001, 1.0, 3, 1_000, five_at_once), Decision::Above);
    }

    #[test]
    fn limit_0_is_broken_for_certain_by_some_events_and_never_kept() {
        assert_eq!(test_of(0.0, 1.0, 4, 1_000, Bad::one_event(1)), Decision::Open);
        assert_eq!(test_of(0.0, 1.0, 5, 1_000, Bad::one_event(1)), Decision::Above);
        assert_eq!(test_of(0.0, 1.0, 100, u64::MAX, Bad::default()), Decision::Open);
    }

    #[test]
    fn more_events_than_items_and_events_of_none_count_as_items() {
        let mut test = RatioTest::new(0.1, 1.0);
        test.record(10, Bad { items: 2, events: u64::MAX });
        test.record(10, Bad { items: 0, events: u64::MAX });
        test.record(10, Bad { items: 4, events: 0 });
        assert_eq!(test.counts(), (30, Bad { items: 6, events: 3 }));
    }
}
