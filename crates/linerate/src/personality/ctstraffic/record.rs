//! The run document of a run: the nearest native plan, and what came out.

use linerate_engine::event::Cancel;
use linerate_measure::dialect::EndExtension;
use linerate_measure::{Dialect, EndReport, Outcome, Plan, Role, Workload};
use linerate_personality::ctstraffic::options::Options;

use super::{Failure, NAME, RunEnd};
use crate::personality::recorder::{Recorder, command_line};
use crate::personality::run_document::RunRecord;
use crate::start_time::utc_now_ns;

/// The record of a run that begins.
///
/// # Errors
/// What the environment asks for can't be written.
pub(super) fn begin(
    options: &Options,
    workload: Workload,
    words: &[String],
    cancel: &Cancel,
) -> Result<RunRecord, String> {
    let role = if options.is_server() { Role::Server } else { Role::Client };
    let typed = command_line(NAME, words);
    let recorder = Recorder::of_environment(Dialect::Ctstraffic, role, typed, cancel)?;
    let hosts = if options.is_server() { &options.hosts.listen } else { &options.hosts.targets };
    let host = hosts.first().cloned().unwrap_or_default();
    Ok(recorder.begin(Plan::new(host, options.port(), workload)))
}

/// The load begins, with what it is by now known to be.
pub(super) fn start(record: &mut RunRecord, workload: Workload) {
    if let Some(draft) = record.draft() {
        draft.plan.workload = workload;
    }
    record.start(utc_now_ns());
}

/// It came to an end: what this end counted, and its connections.
pub(super) fn finish(mut record: RunRecord, end: RunEnd, cancel: &Cancel) {
    let RunEnd { report, totals, exit_code } = end;
    if let Some(draft) = record.draft() {
        let extension = Some(EndExtension::Ctstraffic(totals));
        draft.record_report(EndReport { extension, ..report });
    }
    let (outcome, why) = match exit_code {
        _ if cancel.requested() => (Outcome::Interrupted, None),
        0 => (Outcome::Complete, None),
        _ if totals.completed == 0 => (Outcome::Failed, Some("no connection was completed")),
        _ if totals.network_errors + totals.data_errors > 0 => {
            (Outcome::Untrustworthy, Some("connections failed"))
        }
        _ => (Outcome::Untrustworthy, Some("not all connections were made that were asked for")),
    };
    record.finish(outcome, exit_code, why.map(str::to_owned));
}

/// It could not begin.
pub(super) fn fail(record: RunRecord, failure: &Failure) {
    record.finish(Outcome::Failed, failure.exit_code(), Some(failure.text().to_owned()));
}
