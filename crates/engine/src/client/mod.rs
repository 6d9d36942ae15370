//! A measurement's client: dials, asks, opens the flows, conducts its end of the load, and makes
//! one document of what both ends counted.

mod clocks;
mod conduct;
mod dial;
mod greeting;
mod lease;
mod opener;
mod received;
mod record;
mod session;
mod start;

use linerate_measure::{Plan, Run};

use crate::access::Access;
use crate::event::{Cancel, Sink};
pub use lease::{Lease, LeaseToken, run_within};
use record::Record;
pub use record::random_run_id;
use session::Place;
pub use start::LaterStart;

/// Measures. Whatever happens, the answer is a document: a failure, too, is a [`Run`], and its
/// status says what went wrong and with which exit code a program should end.
///
/// Events go to `sink` as they happen; `cancel` ends the load early, with the partial result.
pub fn run(plan: &Plan, access: &Access, sink: &Sink, cancel: &Cancel) -> Run {
    run_from(plan, access, Place::default(), None, sink, cancel)
}

/// Measures as [`run`] does, with a load that begins at a time which is named when all flows stand. The plan's own
/// start doesn't count.
pub fn run_when_told(
    plan: &Plan,
    access: &Access,
    start: &LaterStart,
    sink: &Sink,
    cancel: &Cancel,
) -> Run {
    run_from(plan, access, Place::default(), Some(start), sink, cancel)
}

fn run_from(
    plan: &Plan,
    access: &Access,
    place: Place<'_>,
    start: Option<&LaterStart>,
    sink: &Sink,
    cancel: &Cancel,
) -> Run {
    let mut record = Record::new(plan);
    let outcome = session::measure(plan, access, start, sink, cancel, (&mut record, place));
    record.into_run(outcome, sink, cancel)
}
