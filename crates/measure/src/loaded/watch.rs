//! Whether a phase is steady, as its intervals come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::INTERVAL_NS;
use super::workloads::Part;
use crate::plan::{Direction, Workload};
use crate::sample::{Role, Sample};
use crate::steady::{WarmUp, find_warm_up, half_width};

/// The fewest intervals that end a phase: 5 s, as the draft's moving average.
const LEAST_INTERVALS: usize = 50;
/// The newest intervals that are looked at, a minute: the time that the search for a warm-up takes grows with their
/// square.
const MOST_INTERVALS: usize = 600;
/// A series is steady where half the 95 % interval of its mean is at most such a share of it: two standard errors of
/// 5 %, the draft's tolerance for the deviation of its moving averages.
const TOLERANCE: f64 = 0.1;

/// How much the figures of a phase may be trusted to be those of a longer one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Neither goodput nor latency was steady.
    Low,
    /// One of them was.
    Medium,
    /// Both were.
    High,
}

impl Confidence {
    /// The word in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// How steady a phase was: half the 95 % interval of each mean over the intervals, as a share of it. Absent: the series
/// rises, falls or is too short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSteadiness {
    /// Of the goodput; of two directions the less steady one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_varied_by: Option<f64>,
    /// Of the mean latency of the requests over connections of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_varied_by: Option<f64>,
}

impl LoadSteadiness {
    /// How far the figures hold.
    pub fn confidence(self) -> Confidence {
        let is_steady = |varied: Option<f64>| varied.is_some_and(|share| share <= TOLERANCE);
        match (is_steady(self.goodput_varied_by), is_steady(self.latency_varied_by)) {
            (true, true) => Confidence::High,
            (false, false) => Confidence::Low,
            _ => Confidence::Medium,
        }
    }
}

/// Takes the samples of a phase's parts.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    up_bytes: Vec<f64>,
    down_bytes: Vec<f64>,
    latencies_ns: Vec<f64>,
    /// Which way the load goes.
    ways: Vec<Direction>,
}

impl Watch {
    /// Takes a sample of a part of the phase, which does this.
    pub fn handle_sample(&mut self, part: Part, workload: &Workload, sample: &Sample) {
        let length_ns = sample.to_ns.saturating_sub(sample.from_ns);
        // The last interval is cut off where the load ends.
        if sample.warm_up || length_ns < INTERVAL_NS / 2 {
            return;
        }
        match (part, sample.role) {
            (Part::Load, role) => {
                self.ways = workload.directions();
                // A sample without traffic is an interval in which nothing arrived.
                let bytes = sample.received.map_or(0, |received| received.bytes);
                let per_s = bytes as f64 / (length_ns as f64 / 1e9);
                for way in self.ways.iter().filter(|way| way.receiver() == role) {
                    match way {
                        Direction::Down => self.down_bytes.push(per_s),
                        Direction::Up | Direction::Both => self.up_bytes.push(per_s),
                    }
                }
            }
            (Part::Sparse, Role::Client) => self.latencies_ns.extend(sample.latency_mean_ns),
            _ => {}
        }
    }

    /// How steady the phase has been so far.
    pub fn steadiness(&self) -> LoadSteadiness {
        let of_way = |way: &Direction| match way {
            Direction::Down => varied_by(&self.down_bytes),
            Direction::Up | Direction::Both => varied_by(&self.up_bytes),
        };
        let of_ways: Option<Vec<f64>> = self.ways.iter().map(of_way).collect();
        LoadSteadiness {
            goodput_varied_by: of_ways.and_then(|all| all.into_iter().reduce(f64::max)),
            latency_varied_by: varied_by(&self.latencies_ns),
        }
    }

    /// Whether the phase has told what it can tell.
    pub fn is_done(&self) -> bool {
        self.steadiness().confidence() == Confidence::High
    }
}

/// Half the 95 % interval of a series' mean, as a share of it; `None`: it is too short, or rises or falls.
fn varied_by(values: &[f64]) -> Option<f64> {
    if values.len() < LEAST_INTERVALS {
        return None;
    }
    let values = values.get(values.len().saturating_sub(MOST_INTERVALS)..)?;
    let turned: Vec<f64> = values.iter().map(|value| -value).collect();
    // What rises is found as it is, and what falls when it is turned over.
    let mut from = 0;
    for series in [values, &turned] {
        match find_warm_up(series)? {
            WarmUp::Intervals(cut) => from = from.max(cut),
            WarmUp::NotSteady => return None,
        }
    }
    let values = values.get(from..)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    half_width(values).filter(|_| mean > 0.0).map(|half| half / mean)
}
