//! Flows that are added up instead of being listed one by one.
//!
//! A report of a hundred thousand flows would be larger than what it reports on. Everything that a
//! summary and a verdict need of a flow can be added up, so nothing is lost but the single flow.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FlowReport;
use crate::plan::{Direction, End, Kind, Workload};
use crate::sample::{DatagramCounts, Traffic};

/// Kinds of early end that are told apart; the flows of all further ones are counted together.
const KINDS_TOLD_APART: usize = 64;
/// What those further ones are counted under.
const OTHER_KINDS: &str = "other";

/// The flows that a report doesn't list one by one, added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unlisted {
    /// Those whose bytes (rr: whose requests) go from client to server.
    #[serde(skip_serializing_if = "FlowSum::is_empty")]
    pub up: FlowSum,
    /// Those whose bytes go from server to client.
    #[serde(skip_serializing_if = "FlowSum::is_empty")]
    pub down: FlowSum,
}

impl Unlisted {
    /// Those of one direction; of [`Direction::Both`], none has any.
    pub fn of(&self, direction: Direction) -> &FlowSum {
        if direction == Direction::Down { &self.down } else { &self.up }
    }

    /// The same, to add to.
    pub fn of_mut(&mut self, direction: Direction) -> &mut FlowSum {
        if direction == Direction::Down { &mut self.down } else { &mut self.up }
    }

    /// Number of flows, both directions together.
    pub fn flows(&self) -> u64 {
        self.up.flows.saturating_add(self.down.flows)
    }
}

/// Flows of one direction, added up. What no flow had is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowSum {
    /// Number of flows.
    pub flows: u64,
    /// Sent by this end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Traffic>,
    /// Received by this end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Traffic>,
    /// The time that the flows cover together.
    pub span: Span,
    /// Transactions completed (rr, client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    /// Transactions given up (UDP rr, client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions_lost: Option<u64>,
    /// Transactions that were due by the schedule and never begun (client).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions_unsent: Option<u64>,
    /// Datagrams (UDP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramCounts>,
    /// Sum of the flows' interarrival jitters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_sum_ns: Option<f64>,
    /// Flows that have a jitter.
    pub jitter_flows: u64,
    /// TCP segments sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// Bytes checked and found right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_bytes: Option<u64>,
    /// Bytes found wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_bytes: Option<u64>,
    /// The flow of the lowest number that had wrong bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_wrong: Option<FirstWrong>,
    /// Flows that moved nothing: received no byte (rr: completed no transaction).
    pub silent_flows: u64,
    /// Flows that received bytes none of which was checked.
    pub unchecked_flows: u64,
    /// How the flows shared what there was.
    pub shares: Shares,
    /// Flows that didn't end as planned, by how they ended. At most 64 kinds are told apart.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}

/// Where wrong bytes began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirstWrong {
    /// The flow.
    pub flow: u32,
    /// Offset in it of the first wrong byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Length of the run of wrong bytes that starts there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extent_bytes: Option<u64>,
}

/// The time that flows cover: from the earliest start to the latest end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Span {
    /// The earliest start, since the load began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
    /// The latest end, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
}

impl Span {
    /// Makes it cover another one too.
    pub fn cover(&mut self, other: Span) {
        self.from_ns = self.from_ns.into_iter().chain(other.from_ns).min();
        self.to_ns = self.to_ns.into_iter().chain(other.to_ns).max();
    }

    /// Its length; `None` where it lacks an end.
    pub fn length_ns(self) -> Option<u64> {
        self.to_ns?.checked_sub(self.from_ns?)
    }
}

/// What Jain's fairness index needs of the flows' shares: bytes received or transactions completed
/// where a load ends by time, the same per second where it ends by amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Shares {
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub sum_of_squares: f64,
    /// Flows that moved something in no time: their shares are unknown.
    pub unknown: u64,
}

impl FlowSum {
    /// Whether it has no flows.
    pub fn is_empty(&self) -> bool {
        self.flows == 0
    }

    /// Adds a flow. `span` is the time that *all* flows of its direction cover, those that are
    /// listed too.
    pub fn add(&mut self, workload: &Workload, flow: &FlowReport, span: Span) {
        self.flows = self.flows.saturating_add(1);
        self.sent = add(self.sent, flow.sent, Traffic::plus);
        self.received = add(self.received, flow.received, Traffic::plus);
        self.span.cover(Span { from_ns: flow.from_ns, to_ns: flow.to_ns });
        let sum = u64::saturating_add;
        self.transactions = add(self.transactions, flow.transactions, sum);
        self.transactions_lost = add(self.transactions_lost, flow.transactions_lost, sum);
        self.transactions_unsent = add(self.transactions_unsent, flow.transactions_unsent, sum);
        self.datagrams = add(self.datagrams, flow.datagrams, DatagramCounts::plus);
        self.jitter_sum_ns = add(self.jitter_sum_ns, flow.jitter_ns, |a, b| a + b);
        self.jitter_flows += u64::from(flow.jitter_ns.is_some());
        let again = flow
            .retransmitted_segments
            .or(flow.tcp.map(|tcp| u64::from(tcp.retransmitted_segments)));
        self.retransmitted_segments = add(self.retransmitted_segments, again, sum);
        self.add_verification(flow);
        self.silent_flows += u64::from(amount(workload, flow) == 0);
        self.shares.add(share(workload, flow, span));
        if let Some(error) = &flow.error {
            self.count_error(error);
        }
    }

    fn add_verification(&mut self, flow: &FlowReport) {
        let found = flow.verification.clone().unwrap_or_default();
        if flow.verification.is_some() {
            self.verified_bytes =
                add(self.verified_bytes, Some(found.verified_bytes), u64::saturating_add);
            self.wrong_bytes = add(self.wrong_bytes, Some(found.wrong_bytes), u64::saturating_add);
        }
        let arrived = flow.received.is_some_and(|received| received.bytes > 0);
        let unchecked = found.verified_bytes == 0 && found.wrong_bytes == 0;
        self.unchecked_flows += u64::from(arrived && unchecked);
        if found.wrong_bytes > 0 && self.first_wrong.is_none_or(|first| flow.flow < first.flow) {
            self.first_wrong = Some(FirstWrong {
                flow: flow.flow,
                offset: found.first_wrong_offset,
                extent_bytes: found.first_wrong_extent_bytes,
            });
        }
    }

    fn count_error(&mut self, error: &str) {
        let known = self.errors.len() < KINDS_TOLD_APART || self.errors.contains_key(error);
        let kind = if known { error } else { OTHER_KINDS };
        let count = self.errors.entry(kind.to_owned()).or_default();
        *count = count.saturating_add(1);
    }
}

impl Shares {
    fn add(&mut self, share: Option<f64>) {
        match share {
            Some(share) => {
                self.sum += share;
                self.sum_of_squares += share * share;
            }
            None => self.unknown += 1,
        }
    }

    /// Jain's fairness index of so many flows (see [`fairness`](crate::fairness)).
    pub fn jain_index(&self, flows: u64) -> Option<f64> {
        let known = self.unknown == 0 && flows >= 2 && self.sum > 0.0;
        let index = self.sum * self.sum / (flows as f64 * self.sum_of_squares);
        // The sums may be a peer's word: an index above 1 by more than rounding is none.
        (known && (0.0..=1.0 + 1e-9).contains(&index)).then_some(index)
    }
}

/// A flow's share. A load that ends by time gives all flows the same time. One that ends by amount
/// gives them the same amount, and the time each took for it tells them apart, unless they take turns: then
/// it tells whose turn was last.
fn share(workload: &Workload, flow: &FlowReport, span: Span) -> Option<f64> {
    let amount = amount(workload, flow) as f64;
    match workload.end {
        _ if amount == 0.0 => Some(0.0),
        End::Time { .. } => span.length_ns().filter(|length_ns| *length_ns > 0).map(|_| amount),
        _ if workload.active_flows().is_some() => Some(amount),
        End::Bytes { .. } | End::Count { .. } => {
            let to_ns = flow.to_ns.or(span.to_ns)?;
            let took_ns = to_ns.saturating_sub(span.from_ns?);
            (took_ns > 0).then(|| amount * 1e9 / took_ns as f64)
        }
    }
}

/// What the flow had of what there was.
fn amount(workload: &Workload, flow: &FlowReport) -> u64 {
    let amount = match workload.kind {
        Kind::Stream { .. } => flow.received.map(|received| received.bytes),
        _ => flow.transactions,
    };
    amount.unwrap_or(0)
}

fn add<T>(a: Option<T>, b: Option<T>, plus: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(plus(a, b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests;
