//! What the delays of datagrams tell of the queues on their way.

use crate::one_way::{Quartiles, Transit};

/// A queue of less is none: threads and timers make as much.
const LEAST_QUEUE_NS: f64 = 1e6;
/// Half of the delays lie within this share of a queue that is always full. Jitter has 0.4 and more.
const STEADY: f64 = 0.3;
/// A queue that grows does so from each quarter to the next, by this share of all its growth at least.
const LEAST_STEP: f64 = 0.1;
/// It grows by this against the middle half of the delays of a quarter, which jitter makes as long.
const GROWTH: f64 = 1.0;
/// Clocks may drift apart by this share of the time.
const DRIFT: f64 = 2e-4;

/// How long datagrams were on their way above the least, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    /// The median of the last quarter of the datagrams.
    pub(super) level_ns: f64,
    /// How far apart the middle half of that quarter was.
    spread_ns: f64,
    /// By how much the medians grew from the first quarter to the last; 0 where they didn't grow each time.
    pub(super) growth_ns: f64,
    /// The middle halves of all quarters, the mean.
    mean_spread_ns: f64,
    /// By how much clocks may have drifted apart.
    drift_ns: f64,
}

impl Delays {
    /// Those of a flow that was on its way for that long; `None` where the receiver didn't tell them by time.
    pub(super) fn new(transit: &Transit, time_ns: u64) -> Option<Self> {
        let quarters = transit.quarters?;
        let spread = |one: &Quartiles| one.high_ns.saturating_sub(one.low_ns) as f64;
        let [first, .., last] = &quarters;
        let growth_ns = last.median_ns.saturating_sub(first.median_ns) as f64;
        let grows = quarters.windows(2).all(|pair| match pair {
            [before, after] => {
                let step_ns = after.median_ns as f64 - before.median_ns as f64;
                step_ns >= LEAST_STEP * growth_ns
            }
            _ => false,
        });
        Some(Self {
            level_ns: last.median_ns as f64,
            spread_ns: spread(last),
            growth_ns: if grows { growth_ns } else { 0.0 },
            mean_spread_ns: quarters.iter().map(spread).sum::<f64>() / quarters.len() as f64,
            drift_ns: DRIFT * time_ns as f64,
        })
    }

    /// Whether a queue stood full, by `times` the thresholds.
    pub(super) fn has_full_queue(&self, times: f64) -> bool {
        self.level_ns >= times * LEAST_QUEUE_NS && self.spread_ns * times <= STEADY * self.level_ns
    }

    /// Whether a queue grew all the time, by `times` the thresholds.
    pub(super) fn has_growing_queue(&self, times: f64) -> bool {
        let least_ns = LEAST_QUEUE_NS + self.drift_ns;
        self.growth_ns >= times * least_ns.max(GROWTH * self.mean_spread_ns)
    }

    /// Whether there is no queue, by far.
    pub(super) fn is_clearly_without_queue(&self) -> bool {
        !self.has_full_queue(0.5) && !self.has_growing_queue(0.5)
    }
}
