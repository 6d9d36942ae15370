//! Searches for the highest rate at which a path, or a server, keeps limits: the drop hunt.
//!
//! A hunt is made of *trials*: short loads at one rate each. Two machines do the work, and neither
//! knows how a rate is offered:
//!
//! * [`Judge`] watches one trial and ends it as soon as its verdict is certain.
//! * [`Hunt`] chooses the rate of the next trial from the verdicts, until it has an [`Outcome`].
//!
//! [`Bisection`] is the search of the Crucible iperf benchmark, step for step. [`Hunt`] runs it
//! where the goal's method is [`Method::Bisection`].
//!
//! An *item* is what a rate counts: a datagram of a stream, or a request. Rates are whole numbers
//! in the unit that the user named, bits of payload or requests per second.

mod bisection;
mod estimate;
mod joint;
mod judge;
mod observe;
mod ratio;
mod record;
mod reported;
mod search;
mod share;
mod words;

pub use bisection::{Bisection, BisectionStep, keeps_loss};
pub use estimate::{HuntTime, estimate};
pub use joint::JointJudge;
pub use judge::{Judge, Seen};
pub use observe::{observations, observe, observe_answers, totals};
pub use ratio::{Bad, Decision, RatioTest};
pub use record::{HuntRecord, TrialRecord};
pub use reported::Reported;
pub use search::Hunt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is sought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// How rates are chosen and judged.
    #[serde(default)]
    pub method: Method,
    /// What rates count.
    pub unit: RateUnit,
    /// The lowest rate of the search.
    pub low: u64,
    /// The highest rate of the search. Equal to `low`: this one rate is judged.
    pub high: u64,
    /// [`Method::Bisection`]: it goes over whole multiples of this.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub step: u64,
    /// How much of the rate one item takes: bits of payload of a datagram, or 1 for requests.
    pub per_item: u64,
    /// What a rate must keep.
    pub limits: Limits,
    /// The measured time of a trial that has a fixed one, and the longest of the others.
    pub trial_ns: u64,
}

/// How rates are chosen and judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Trials end as soon as they are decided; both ends of the last bracket are tested again.
    #[default]
    Sequential,
    /// The binary search of the Crucible iperf benchmark: trials of full length, each once.
    Bisection,
}

/// What rates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// Bits of payload per second.
    BitsPerSecond,
    /// Requests per second.
    RequestsPerSecond,
}

/// What a rate must keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The greatest share of items that may be lost, or fail: 0 to 1.
    pub loss_ratio: f64,
    /// Requests: how many may take longer than what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<LatencyLimit>,
}

/// A percentile of latency that must not be above a bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyLimit {
    /// The percentile, above 0 and below 100.
    pub percentile: f64,
    /// The bound.
    pub bound_ns: u64,
}

impl LatencyLimit {
    /// The share of requests that may take longer than the bound.
    pub fn ratio(self) -> f64 {
        1.0 - self.percentile / 100.0
    }
}

fn one() -> u64 {
    1
}

fn is_one(step: &u64) -> bool {
    *step == 1
}

impl Goal {
    /// Whether only one rate is judged.
    pub fn is_one_rate(&self) -> bool {
        self.low == self.high
    }

    /// Items per second at a rate.
    pub fn items_per_s(&self, rate: u64) -> f64 {
        rate as f64 / self.per_item.max(1) as f64
    }

    /// The rate of so many items per second.
    pub fn rate_of(&self, items_per_s: f64) -> u64 {
        (items_per_s * self.per_item as f64).round() as u64
    }

    /// Whether a trial is judged by what it came to at its end: requests, whose latencies are known then.
    pub fn is_judged_at_end(&self) -> bool {
        self.unit == RateUnit::RequestsPerSecond
    }

    /// The limits as shares of items: losses first, then each latency.
    pub fn ratios(&self) -> Vec<f64> {
        let latencies = self.limits.latencies.iter().map(|limit| limit.ratio());
        std::iter::once(self.limits.loss_ratio).chain(latencies).collect()
    }
}

/// A load at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// 1 for the first of a hunt.
    pub number: u32,
    /// The rate, in the goal's unit.
    pub rate: u64,
    /// What it is for.
    pub purpose: Purpose,
    /// The longest measured time.
    pub longest_ns: u64,
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To choose the next rate: ends as soon as it is decided.
    Search,
    /// To confirm a rate that has passed, or to judge one rate: needs ten times the evidence.
    Confirm,
    /// To be compared with the limit after its full time.
    Fixed,
}

/// What one interval of a trial has brought. Times are nanoseconds on one clock for both ends,
/// from any common start.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// What held the sender's transport up. Comes before what the interval has sent.
    Backpressure {
        /// The interval's start.
        from_ns: u64,
        /// Its end.
        to_ns: u64,
        /// Items that a queue of the sender's machine dropped.
        refused: u64,
        /// Whether the transport held more at the interval's end than it could send at once.
        is_full: bool,
        /// How long the transport has waited for its windows since its beginning, where it tells.
        window_wait_ns: Option<u64>,
    },
    /// The sender has sent.
    Sent {
        /// The interval's start.
        from_ns: u64,
        /// Its end.
        to_ns: u64,
        /// Items sent.
        items: u64,
    },
    /// The receiver of a stream, or the sender of requests, has counted what arrived.
    Arrived {
        /// The interval's start.
        from_ns: u64,
        /// Its end.
        to_ns: u64,
        /// Items that arrived.
        items: u64,
        /// What broke limits, in the order of [`Goal::ratios`]: what was lost first.
        bad: Vec<Bad>,
    },
    /// What a trial came to that has run to its end: the exact counts, in the place of those of its intervals.
    Totals {
        /// Items that arrived.
        items: u64,
        /// What broke limits, likewise.
        bad: Vec<Bad>,
    },
}

/// What a trial comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum TrialVerdict {
    /// The rate keeps the limits.
    Pass,
    /// It doesn't.
    Fail {
        /// Which one it breaks.
        why: Breach,
    },
    /// Requests: the trials at this rate don't tell yet on which side of a limit it is. The next one adds to them.
    Open,
    /// The sender didn't offer the rate, or too little was counted: the trial says nothing of the path.
    Invalid {
        /// How it fell short.
        why: Shortfall,
    },
}

/// Which limit a rate breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Breach {
    /// Too many items were lost or failed.
    Loss,
    /// Too many requests took longer than a bound.
    Latency,
    /// A queue on the path grew: less arrived than was sent.
    Queue,
    /// Nothing arrived.
    Nothing,
    /// The sender's transport took less than was due: the windows of the path or of the peer were full, or the queue
    /// of the sender's own interface.
    Backpressure,
}

/// Why a trial says nothing of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shortfall {
    /// Less than 98 % of what was due over the trial.
    Offered,
    /// Less than half, or more than one and a half times, of what was due in one interval.
    Uneven,
    /// Too little was counted to judge: the trial ended early, or samples are missing.
    Short,
    /// Several pairs: their loads began so far from each other that they didn't run together.
    Apart,
}

/// What a hunt does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run this trial and give its verdict back.
    Run(Trial),
    /// The hunt is over.
    Done(Outcome),
}

/// What a hunt has found. Rates are in the goal's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Outcome {
    /// The highest rate that keeps the limits, and the least rate above it that doesn't.
    Found {
        /// It keeps the limits.
        rate: u64,
        /// It doesn't.
        failing_rate: u64,
    },
    /// Every rate of the search keeps the limits.
    AtLeast {
        /// The highest.
        rate: u64,
    },
    /// No rate of the search keeps the limits.
    Below {
        /// The lowest.
        rate: u64,
    },
    /// The one rate that was judged keeps the limits.
    Keeps {
        /// The rate.
        rate: u64,
    },
    /// The one rate that was judged doesn't keep the limits.
    Breaks {
        /// The rate.
        rate: u64,
    },
    /// The path changes: rates pass at one time and fail at another.
    Unsteady {
        /// The highest rate below which all trials passed; 0: there is none.
        low: u64,
        /// The lowest rate above which all trials failed.
        high: u64,
    },
    /// The sender can't offer a rate that the search needs.
    SenderLimited {
        /// The rate.
        rate: u64,
        /// What it offered at most, of three trials.
        offered: u64,
    },
    /// Ten trials in a row were invalid: the sender stalled, or loads of several pairs began apart. Their machines are
    /// too busy.
    SenderStalls {
        /// The rate of the trials.
        rate: u64,
    },
    /// Too little was counted in three trials in a row: samples of an end are missing.
    TooFewSamples {
        /// The rate of the trials.
        rate: u64,
    },
    /// The hunt was cut off.
    Interrupted {
        /// The highest rate that has passed; absent: none has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        passed: Option<u64>,
        /// The lowest rate that has failed; absent: none has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<u64>,
    },
    /// The original's answer: the lower end of the last bracket, which may never have been tried.
    Bisected {
        /// The answer.
        rate: u64,
        /// Whether it was tried; otherwise it is the lower end of the search.
        tried: bool,
    },
}

impl Outcome {
    /// The rate that the hunt answers with, where it has one.
    pub fn rate(&self) -> Option<u64> {
        match *self {
            Self::Found { rate, .. } | Self::AtLeast { rate } | Self::Keeps { rate } => Some(rate),
            Self::Bisected { rate, tried } => tried.then_some(rate),
            _ => None,
        }
    }
}
