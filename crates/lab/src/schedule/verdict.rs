//! Whether a cell can be trusted.

use linerate_measure::summary::Quantity;
use linerate_measure::units::render_duration_ns;
use linerate_measure::{Outcome, Run};

use super::event::Skew;
use crate::barrier::{Lateness, NOTED_LATENESS_NS, lateness, skew};
use crate::host::HostClock;

/// When a client's load began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skewed {
    /// By its host's clock.
    pub(super) started_ns: i64,
    /// That clock.
    pub(super) clock: HostClock,
}

/// Why a run is not to be trusted: by its own status, or because the sender didn't offer what was asked.
pub(super) fn doubts(run: &Run) -> Vec<String> {
    let mut doubts = Vec::new();
    if run.status.outcome == Outcome::Untrustworthy {
        doubts.push(run.status.message.clone().unwrap_or_else(|| "it was not trusted".to_owned()));
    }
    // A path holds TCP back, and nothing but its own host a sender of datagrams or a schedule.
    let datagrams = run.plan.workload.has_datagrams();
    let of_sender = run.status.unmet.iter().filter(|unmet| match unmet.what {
        Quantity::RateBps => datagrams,
        Quantity::Transactions => true,
        _ => false,
    });
    doubts.extend(of_sender.map(|unmet| format!("less was offered than asked: {}", unmet.note())));
    doubts
}

/// How late the clients began, with a note where that matters, and why the cell isn't to be trusted where it matters
/// much. Without a named start the first client's is taken.
pub(super) fn judge_skew(
    started: &[Skewed],
    start_ns: Option<i64>,
    interval_ns: Option<u64>,
    notes: &mut Vec<String>,
) -> (Option<Skew>, Option<String>) {
    let of = |start_ns: i64| -> Vec<Lateness> {
        started.iter().map(|one| lateness(start_ns, one.started_ns, one.clock)).collect()
    };
    let first_ns = of(0).iter().map(|lateness| lateness.late_ns).min();
    let Some(start_ns) = start_ns.or(first_ns) else { return (None, None) };
    let Some(skew) = skew(&of(start_ns)) else { return (None, None) };
    let early_ns = u64::try_from(skew.min_ns.saturating_neg()).unwrap_or(0);
    let late_ns = u64::try_from(skew.max_ns).unwrap_or(0);
    let mut doubts = Vec::new();
    for (off_ns, side) in [(early_ns, "before"), (late_ns, "after")] {
        let sentence =
            format!("a client began {} {side} the named time", render_duration_ns(off_ns));
        if interval_ns.is_some_and(|interval_ns| off_ns > interval_ns) {
            doubts.push(format!("{sentence}, more than an interval"));
        } else if off_ns > NOTED_LATENESS_NS.unsigned_abs() {
            notes.push(sentence);
        }
    }
    (Some(skew), (!doubts.is_empty()).then(|| doubts.join("; ")))
}
