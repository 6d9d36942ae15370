//! The steadiness of a run's main rate, from its samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{WarmUp, find_change, find_warm_up, half_width};
use crate::metric::{CONNECTIONS_PER_S, GOODPUT, TRANSACTIONS_PER_S};
use crate::plan::{Direction, End, Kind, Workload};
use crate::sample::{Role, Sample};

/// How steady one direction of a run was, by at least 40 measured intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// The rate: the name of a metric.
    pub name: String,
    /// The direction of a stream; absent of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The intervals that were looked at.
    pub intervals: usize,
    /// How long the rate rose at the beginning of the measured part; 0: it did not. Absent: it rose for more than two
    /// fifths of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_ns: Option<u64>,
    /// The rate of the rest, bits or things per second; of the whole where the warm-up is absent.
    pub rate: f64,
    /// How much that rate varied in this run: half the 95 % interval of its mean, as a share of it. Absent: too few
    /// intervals are independent of each other. It says nothing of how another run differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub varied_by: Option<f64>,
    /// Where the rate without the warm-up became another for good; absent: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<RateChange>,
}

/// A change of a rate for good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateChange {
    /// When, since the load of the end that counts began, on that end's clock.
    pub at_ns: u64,
    /// The rate before it, without the warm-up; bits or things per second.
    pub before: f64,
    /// The rate after it.
    pub after: f64,
}

/// How steady each direction was, where there are intervals enough.
pub fn steadiness(workload: &Workload, samples: &[Sample]) -> Vec<Steadiness> {
    let received = |sample: &Sample| sample.received.map(|one| one.bytes.saturating_mul(8));
    let samples = &without_drain(workload, samples);
    let streams = |directions: &[Direction]| {
        let of = |way: &Direction| {
            let receiver = if *way == Direction::Down { Role::Client } else { Role::Server };
            steady_rate(GOODPUT.name, Some(*way), samples, receiver, received)
        };
        directions.iter().filter_map(of).collect()
    };
    let done = |name: &str| {
        let one = steady_rate(name, None, samples, Role::Client, |sample| sample.transactions);
        one.into_iter().collect()
    };
    match (&workload.kind, workload.direction()) {
        (Kind::Stream { .. }, Some(Direction::Both)) => streams(&[Direction::Up, Direction::Down]),
        (Kind::Stream { .. }, direction) => streams(&[direction.unwrap_or(Direction::Up)]),
        (Kind::Rr { .. }, _) => done(TRANSACTIONS_PER_S.name),
        (Kind::Connect { .. }, _) => done(CONNECTIONS_PER_S.name),
    }
}

fn steady_rate(
    name: &str,
    direction: Option<Direction>,
    samples: &[&Sample],
    role: Role,
    count: impl Fn(&Sample) -> Option<u64>,
) -> Option<Steadiness> {
    let mut measured = measured_intervals(samples.iter().copied(), role);
    if let (Some(_), Some(ends_ns)) = (direction, sender_end_ns(samples, role)) {
        // What a receiver counts while it waits for what is on its way is no part of the rate.
        let is_drain = |sample: &&Sample| sample.to_ns > ends_ns && count(sample).unwrap_or(0) == 0;
        while measured.last().is_some_and(is_drain) {
            measured.pop();
        }
    }
    // Samples of an end that doesn't count this never have a count. A single one without has counted nothing.
    let counts: Vec<Option<u64>> = measured.iter().map(|sample| count(sample)).collect();
    if counts.iter().all(Option::is_none) {
        return None;
    }
    let counts: Vec<u64> = counts.into_iter().map(Option::unwrap_or_default).collect();
    let per_s = |counted: u64, ns: u64| counted as f64 / (ns.max(1) as f64 / 1e9);
    let rates: Vec<f64> = counts
        .iter()
        .zip(&measured)
        .map(|(counted, sample)| per_s(*counted, length_ns(sample)))
        .collect();
    let cut = match find_warm_up(&rates)? {
        WarmUp::Intervals(cut) => Some(cut),
        WarmUp::NotSteady => None,
    };
    let from = cut.unwrap_or(0);
    let sum = |values: &[u64]| values.iter().fold(0, |sum: u64, one| sum.saturating_add(*one));
    let rest = |values: &[u64]| sum(values.get(from..).unwrap_or_default());
    let lengths: Vec<u64> = measured.iter().map(|sample| length_ns(sample)).collect();
    let rate = per_s(rest(&counts), rest(&lengths));
    let change = cut.and_then(|cut| {
        let place = cut.saturating_add(find_change(rates.get(cut..)?)?);
        let sums = |part: std::ops::Range<usize>| {
            Some(per_s(sum(counts.get(part.clone())?), sum(lengths.get(part)?)))
        };
        Some(RateChange {
            at_ns: measured.get(place)?.from_ns,
            before: sums(cut..place)?,
            after: sums(place..rates.len())?,
        })
    });
    let varied = half_width(rates.get(from..).unwrap_or_default()).filter(|_| cut.is_some());
    Some(Steadiness {
        name: name.to_owned(),
        direction,
        intervals: rates.len(),
        warm_up_ns: cut.map(|cut| sum(lengths.get(..cut).unwrap_or_default())),
        rate,
        varied_by: varied.filter(|_| rate > 0.0).map(|half| half / rate),
        change,
    })
}

/// Samples of a load that ends by time, without the intervals that began after it: what queues still held arrived then.
fn without_drain<'a>(workload: &Workload, samples: &'a [Sample]) -> Vec<&'a Sample> {
    let began_ns = |role| {
        let measured = samples.iter().filter(|one| one.role == role && !one.warm_up);
        measured.map(|one| one.from_ns).min().unwrap_or(0)
    };
    let ends_ns = |role| match workload.end {
        End::Time { duration_ns: duration_ns @ 1.. } => began_ns(role).saturating_add(duration_ns),
        _ => u64::MAX,
    };
    let ends = [Role::Client, Role::Server].map(|role| (role, ends_ns(role)));
    let is_in_time = |one: &&Sample| {
        ends.iter().any(|(role, ends_ns)| one.role == *role && one.from_ns < *ends_ns)
    };
    samples.iter().filter(is_in_time).collect()
}

/// When the sender to this receiver has ended its last interval, on its own clock; `None`: it tells no intervals.
fn sender_end_ns(samples: &[&Sample], receiver: Role) -> Option<u64> {
    let of_sender = samples.iter().filter(|sample| sample.role != receiver && !sample.warm_up);
    of_sender.map(|sample| sample.to_ns).max()
}

/// The measured intervals of an end in order of time, without a last one that the load's end cut off.
pub(crate) fn measured_intervals<'a>(
    samples: impl IntoIterator<Item = &'a Sample>,
    role: Role,
) -> Vec<&'a Sample> {
    let mut measured: Vec<&Sample> =
        samples.into_iter().filter(|sample| sample.role == role && !sample.warm_up).collect();
    measured.sort_by_key(|sample| sample.to_ns);
    let mut sorted: Vec<u64> = measured.iter().map(|sample| length_ns(sample)).collect();
    sorted.sort_unstable();
    let usual_ns = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    measured.retain(|sample| length_ns(sample).saturating_mul(2) > usual_ns);
    measured
}

fn length_ns(sample: &Sample) -> u64 {
    sample.to_ns.saturating_sub(sample.from_ns)
}
