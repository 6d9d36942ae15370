//! What disturbed an end while it measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A conductor that wakes up later than this stood still.
pub const LATE_NS: u64 = 100_000_000;
/// Delays of a conductor's wake-ups that are longer than this add up.
pub const WAKEUP_DELAY_NS: u64 = 20_000_000;
/// A stream that nothing arrives of for so long has a gap.
pub const GAP_NS: u64 = 300_000_000;

/// What disturbed an end in the measured part. A figure that isn't known is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Disturbance {
    /// How late the thread that conducts the load woke up; what is later than [`LATE_NS`] adds up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Standstills>,
    /// How late it woke up each time that it was more than [`WAKEUP_DELAY_NS`] late, added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakeup_delay_ns: Option<u64>,
    /// How long nothing arrived in between: as the conductor sees it, its own lateness left
    /// out. What is longer than [`GAP_NS`] adds up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<Standstills>,
    /// Time for which the threads that carry the load were ready to run and had no processor (schedstat), added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    /// The thread among them that ran and waited the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busiest_thread: Option<ThreadDemand>,
    /// The CPU quota of this end's control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// What the queue of the network device towards the first flow's peer did with packets of this machine since the
    /// load began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_queue: Option<OwnQueue>,
    /// Server: the most other tests that it served at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_tests: Option<u32>,
}

/// Times of one kind that were too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standstills {
    /// The longest.
    pub longest_ns: u64,
    /// When it ended, since this end's load began.
    pub at_ns: u64,
    /// All that are too long, added up.
    pub total_ns: u64,
}

impl Standstills {
    /// Counts one that ended at `at_ns`; shorter ones than `counted_ns` are not part of the total.
    pub fn record(&mut self, length_ns: u64, at_ns: u64, counted_ns: u64) {
        if length_ns > self.longest_ns {
            (self.longest_ns, self.at_ns) = (length_ns, at_ns);
        }
        if length_ns >= counted_ns {
            self.total_ns = self.total_ns.saturating_add(length_ns);
        }
    }
}

/// What a thread would have used of a processor of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadDemand {
    /// Time for which it ran.
    pub run_s: f64,
    /// Time for which it was ready to run and had no processor.
    pub wait_s: f64,
}

/// Periods of a control group's CPU quota (cpu.stat).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quota {
    /// Periods in which something of the group ran.
    pub periods: u64,
    /// Part of them in which the quota was used up.
    pub throttled_periods: u64,
}

/// Counts of a network device's queueing disciplines (tc(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnQueue {
    /// Packets dropped.
    pub dropped: u64,
    /// Times that a packet was held back to keep to a rate.
    pub overlimits: u64,
}

impl OwnQueue {
    /// The counts since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            dropped: self.dropped.saturating_sub(earlier.dropped),
            overlimits: self.overlimits.saturating_sub(earlier.overlimits),
        }
    }
}

impl Quota {
    /// The periods since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled_periods: self.throttled_periods.saturating_sub(earlier.throttled_periods),
        }
    }
}

impl ThreadDemand {
    /// What came since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            run_s: (self.run_s - earlier.run_s).max(0.0),
            wait_s: (self.wait_s - earlier.wait_s).max(0.0),
        }
    }

    /// Both together.
    pub fn all_s(self) -> f64 {
        self.run_s + self.wait_s
    }

    /// Both together as a share of a measured time, 1 at most: the readings may lie a little outside of it. `None`:
    /// nothing was measured.
    pub fn ratio(self, measured_ns: u64) -> Option<f64> {
        self.part_of(self.all_s(), measured_ns)
    }

    /// The share of a measured time that it waited, likewise.
    pub fn wait_ratio(self, measured_ns: u64) -> Option<f64> {
        self.part_of(self.wait_s, measured_ns)
    }

    fn part_of(self, part_s: f64, measured_ns: u64) -> Option<f64> {
        let ratio = part_s / self.all_s().max(measured_ns as f64 / 1e9);
        (ratio.is_finite() && measured_ns > 0).then_some(ratio)
    }
}
