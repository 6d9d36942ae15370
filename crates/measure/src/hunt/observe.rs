//! What samples and reports say of a trial.

use super::{Bad, Goal, Observation};
use crate::histogram::Histogram;
use crate::plan::{Direction, Kind, Workload};
use crate::run::Run;
use crate::sample::{Role, Sample};

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
        let sender = match workload.direction() {
            Some(Direction::Down) => Role::Server,
            _ => Role::Client,
        };
        let counts = sample.datagrams.unwrap_or_default();
        if sample.role == sender {
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
        let lost = counts.lost?;
        let bad = vec![Bad { items: lost, events: counts.loss_events.unwrap_or(1) }];
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
