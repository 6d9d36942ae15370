//! What samples and reports say of a trial.

use super::{Bad, Goal, Observation};
use crate::histogram::Histogram;
use crate::plan::{Direction, Kind, Workload};
use crate::run::Run;
use crate::sample::{Role, Sample};

/// A transport that holds what takes longer than this to send at the rate has no room.
const FULL_S: f64 = 0.01;
/// Nor has one that holds this much: at a rate far above the path, a send buffer never holds [`FULL_S`] of it.
const FULL_BYTES: f64 = 131_072.0;
/// A socket's send buffer that is filled to this share has no room.
const FULL_RATIO: f64 = 0.5;

/// All that an end's sample says of a trial, in the order in which a judge takes it.
pub fn observations(workload: &Workload, sample: &Sample) -> impl Iterator<Item = Observation> {
    let seen = [
        observe_backpressure(workload, sample),
        observe(workload, sample),
        observe_answers(workload, sample),
    ];
    seen.into_iter().flatten()
}

/// What the sender's sample says of its transport; `None`: it is the receiver's.
fn observe_backpressure(workload: &Workload, sample: &Sample) -> Option<Observation> {
    if sample.role != sender_of(workload) {
        return None;
    }
    let flows = &sample.flows;
    let flow_bytes_per_s = match workload.kind {
        Kind::Rr { request_bytes, schedule: Some(schedule), .. } => {
            schedule.per_s * f64::from(request_bytes) / f64::from(workload.flows.max(1))
        }
        _ => workload.rate_per_flow_bps().map_or(0.0, |bps| bps as f64 / 8.0),
    };
    let most_bytes = (flow_bytes_per_s * FULL_S).min(FULL_BYTES);
    let full = flows.iter().filter(|flow| {
        let unsent = flow.tcp.and_then(|tcp| tcp.notsent_bytes);
        unsent.is_some_and(|bytes| f64::from(bytes) > most_bytes)
            || flow.send_buffer_ratio.is_some_and(|ratio| ratio >= FULL_RATIO)
    });
    let waits = flows.iter().filter_map(|flow| flow.quic.as_ref()?.waits);
    let waited =
        waits.map(|waits| waits.congestion_ns.saturating_add(waits.flow_control_ns.unwrap_or(0)));
    let (waited_ns, count) =
        waited.fold((0_u64, 0), |(sum, count), ns| (sum.saturating_add(ns), count + 1));
    // Of the warm-up only where the counters stand at its end is of use.
    let from_ns = if sample.warm_up { sample.to_ns } else { sample.from_ns };
    Some(Observation::Backpressure {
        from_ns,
        to_ns: sample.to_ns,
        refused: sample.datagrams.and_then(|counts| counts.refused).unwrap_or(0),
        is_full: !flows.is_empty() && 2 * full.count() >= flows.len(),
        window_wait_ns: waited_ns.checked_div(count),
    })
}

/// The end that sends what a rate counts.
fn sender_of(workload: &Workload) -> Role {
    match workload.direction() {
        Some(Direction::Down) => Role::Server,
        _ => Role::Client,
    }
}

/// What an end's sample says of a trial; `None`: nothing.
///
/// Times count from the beginning of that end's load. The ends begin at slightly different times; that moves a
/// backlog by a constant, and only its growth is looked at.
pub fn observe(workload: &Workload, sample: &Sample) -> Option<Observation> {
    if sample.warm_up {
        return None;
    }
    let (from_ns, to_ns) = (sample.from_ns, sample.to_ns);
    let Kind::Rr { request_bytes, .. } = workload.kind else {
        let counts = sample.datagrams.unwrap_or_default();
        if sample.role == sender_of(workload) {
            return Some(Observation::Sent { from_ns, to_ns, items: counts.sent.unwrap_or(0) });
        }
        let lost = counts.lost.unwrap_or(0);
        let events = counts.loss_events.unwrap_or(0);
        let bad = vec![Bad { items: lost, events }];
        return Some(Observation::Arrived {
            from_ns,
            to_ns,
            items: counts.received.unwrap_or(0),
            bad,
        });
    };
    // To the nearest: part of a request may be sent in one interval and the rest in the next.
    let request_bytes = u64::from(request_bytes.max(1));
    let sent = sample.sent.map_or(0, |sent| (sent.bytes + request_bytes / 2) / request_bytes);
    (sample.role == Role::Client).then_some(Observation::Sent { from_ns, to_ns, items: sent })
}

/// What the client's sample says of the answers to requests; `None`: nothing.
pub fn observe_answers(workload: &Workload, sample: &Sample) -> Option<Observation> {
    let is_of_client = sample.role == Role::Client && !sample.warm_up;
    let (from_ns, to_ns) = (sample.from_ns, sample.to_ns);
    let items = sample.transactions.unwrap_or(0);
    let answers = Observation::Arrived { from_ns, to_ns, items, bad: Vec::new() };
    (is_of_client && matches!(workload.kind, Kind::Rr { .. })).then_some(answers)
}

/// The exact counts of a trial that has run to its end; `None`: an end didn't report.
pub fn totals(goal: &Goal, run: &Run) -> Option<Observation> {
    if !matches!(run.plan.workload.kind, Kind::Rr { .. }) {
        let counts = run.summary.datagrams?;
        // What the sender's own queue dropped didn't arrive either.
        let refused = counts.refused.unwrap_or(0);
        let items = counts.lost?.saturating_add(refused);
        let events = counts.loss_events.unwrap_or(1).saturating_add(u64::from(refused > 0));
        let bad = vec![Bad { items, events }];
        return Some(Observation::Totals { items: counts.received?, bad });
    }
    let client = run.reports.iter().find(|report| report.role == Role::Client)?;
    let lost = run.summary.transactions_lost.unwrap_or(0);
    let latencies = match &client.latency_hdr {
        Some(text) => Histogram::from_base64(text).ok()?,
        None => Histogram::default(),
    };
    let slow = goal.limits.latencies.iter().map(|limit| {
        let above = latencies.counts().filter(|(latency_ns, _)| *latency_ns > limit.bound_ns);
        Bad::one_event(above.map(|(_, count)| count).sum())
    });
    let bad = std::iter::once(Bad::one_event(lost)).chain(slow).collect();
    Some(Observation::Totals { items: run.summary.transactions.unwrap_or(0), bad })
}
