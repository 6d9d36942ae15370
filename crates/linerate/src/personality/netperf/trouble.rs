//! What went wrong under load: told beside the result, or in its place where it leaves none.

use linerate_engine::netperf::{Outcome, TestPlan, TestTransport};

use crate::output::narrate;

/// Tells what the figures don't show.
pub(super) fn tell_troubles(outcome: &Outcome) {
    for note in &outcome.client.notes {
        narrate(&format!("netperf: {note}\n"));
    }
    let lost = outcome.local().transactions_lost();
    if lost > 0 {
        narrate(&format!("netperf: {lost} requests had no response in time and are not counted\n"));
    }
    for (kind, count) in &outcome.client.errors {
        narrate(&format!("netperf: failures of the kind {kind}: {count}\n"));
    }
}

/// Why what was counted is no result, if it is none: the one data connection broke, or of those that come and
/// go not one was made. Scripts know by the exit code alone that there is none, as with the original. Who
/// interrupts a test may break its connection, and has what was counted.
pub(super) fn void(plan: &TestPlan, outcome: &Outcome) -> Option<String> {
    if plan.transport != TestTransport::Tcp || outcome.interrupted {
        return None;
    }
    let kinds = outcome.client.errors.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let elapsed_s = outcome.client.elapsed_ns as f64 / 1e9;
    let local = outcome.local();
    if plan.kind.connects() {
        let why = if kinds.is_empty() { "none was begun".to_owned() } else { kinds };
        return (local.transactions() == 0).then(|| {
            format!("not one connection was made in {elapsed_s:.2} s ({why}): there is no result")
        });
    }
    let moved = if plan.kind.has_transactions() {
        format!("{} transactions were done", local.transactions())
    } else {
        format!("{} bytes were sent and {} received", local.bytes_sent(), local.bytes_received())
    };
    (!kinds.is_empty()).then(|| {
        format!(
            "the data connection broke ({kinds}) after {elapsed_s:.2} s, when {moved}: there is no \
             result"
        )
    })
}
