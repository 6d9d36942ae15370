//! The client: one test, conducted by the thread that asks for it.

mod dial;
mod session;
mod streams;

use super::{Event, Failure, Observer, Report, TestPlan, descriptors};
use crate::event::Cancel;

use session::Iperf3ClientTest;

/// Makes a test, and tells what happens as it happens.
///
/// # Errors
///
/// Why it failed, by the original's numbers. A test that fails under way, or is interrupted, tells
/// what it has before ([`Event::Ended`], without the server's figures).
pub fn run(
    plan: &TestPlan,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Report, Failure> {
    descriptors::check(&plan.parameters, plan.file.is_some())?;
    let (mut session, address) = Iperf3ClientTest::connect(plan, observer, cancel)?;
    let outcome = session.conduct(address);
    let report = match outcome {
        Ok(report) => Ok(report),
        Err(failure) => {
            session.give_up();
            if let Some(report) = session.report_so_far() {
                session.observer.handle(&Event::Ended(Box::new(report)));
            }
            Err(failure)
        }
    };
    session.close();
    report
}
