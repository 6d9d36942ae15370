//! A measurement's client: dials, asks, opens the flows, conducts its end of the load, and makes
//! one document of what both ends counted.

mod conduct;
mod dial;
mod greeting;
mod opener;
mod received;
mod record;
mod session;

use linerate_measure::{Plan, Run};

use crate::access::Access;
use crate::event::{Cancel, Sink};
use record::Record;
pub use record::random_run_id;

/// Measures. Whatever happens, the answer is a document: a failure, too, is a [`Run`], and its
/// status says what went wrong and with which exit code a program should end.
///
/// Events go to `sink` as they happen; `cancel` ends the load early, with the partial result.
pub fn run(plan: &Plan, access: &Access, sink: &Sink, cancel: &Cancel) -> Run {
    let mut record = Record::new(plan);
    let outcome = session::measure(plan, access, sink, cancel, &mut record);
    record.into_run(outcome, sink, cancel)
}
