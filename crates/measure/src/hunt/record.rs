//! What of a hunt stands in a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bad, Goal, Outcome, Purpose, Seen, Trial, TrialVerdict};

/// A hunt in a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HuntRecord {
    /// What was sought.
    pub goal: Goal,
    /// The trials in their order.
    pub trials: Vec<TrialRecord>,
    /// What was found.
    pub outcome: Outcome,
    /// How many pairs made the trials together, each at the same rate. The verdicts are those of their sums; what a
    /// trial counted is this pair's. Absent: one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u32>,
    /// The trial whose samples and reports the result has: the last one that passed at the highest rate that passed,
    /// else the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_trial: Option<u32>,
}

/// A trial in a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRecord {
    /// 1 for the first of a hunt.
    pub number: u32,
    /// The rate that was asked, in the goal's unit.
    pub rate: u64,
    /// What it was for.
    pub purpose: Purpose,
    /// What it came to.
    pub verdict: TrialVerdict,
    /// When its load began (UTC, nanoseconds since 1970), by the clock of the end that wrote the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_utc_ns: Option<i64>,
    /// Measured time in which both ends counted.
    pub span_ns: u64,
    /// What the sender offered, in the goal's unit.
    pub offered: u64,
    /// What arrived while the sender sent, likewise.
    pub arrived: u64,
    /// What the verdict was made of.
    pub items: TrialItems,
    /// By how much of the rate a queue on the path grew; absent: too little was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_growth_ratio: Option<f64>,
    /// Of several pairs the number of the one that lost most, or whose requests, queue or sender were the worst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_pair: Option<u32>,
}

/// Datagrams or requests of a trial. What was on its way when the trial ended is in none of the counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialItems {
    /// Sent.
    pub sent: u64,
    /// Arrived, or answered.
    pub arrived: u64,
    /// Lost, or failed.
    pub lost: u64,
    /// Runs of lost items.
    pub loss_events: u64,
    /// The part of the lost datagrams that the receiver's own socket dropped, as its report tells at the trial's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_by_socket: Option<u64>,
    /// The part of the lost datagrams that a queue of the sender's own machine dropped, as its report tells at the
    /// trial's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Requests above each bound of latency, in the order of the limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow: Vec<u64>,
}

impl TrialRecord {
    /// The record of a trial.
    pub fn new(goal: &Goal, trial: &Trial, verdict: TrialVerdict, seen: &Seen) -> Self {
        let lost = seen.bad.first().copied().unwrap_or_default();
        let slow = seen.bad.iter().skip(1).map(|bad: &Bad| bad.items).collect();
        Self {
            number: trial.number,
            rate: trial.rate,
            purpose: trial.purpose,
            verdict,
            started_utc_ns: None,
            span_ns: seen.span_ns,
            offered: goal.rate_of(seen.sent_per_s),
            arrived: goal.rate_of(seen.arrived_per_s),
            items: TrialItems {
                sent: seen.sent_items,
                arrived: seen.arrived_items,
                lost: lost.items,
                loss_events: lost.events,
                dropped_by_socket: None,
                refused: None,
                slow,
            },
            queue_growth_ratio: seen.growth_ratio,
            worst_pair: None,
        }
    }
}
