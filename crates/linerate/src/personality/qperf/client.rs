//! The client: it prints what happens as it happens.

use std::process;

use linerate_engine::event::Cancel;
use linerate_engine::qperf::{ClientEvent, Lost, Report, run_client};
use linerate_personality::qperf::options::Options;
use linerate_personality::qperf::output::{
    Style, render_connecting, render_established, render_first_byte, render_received,
    render_received_total, render_reset, render_start,
};

use super::record::{self, interval};
use super::{Failure, NAME, complain, complain_of_dropped, plan};
use crate::output::narrate;
use crate::personality::run_document::RunRecord;
use crate::personality::stdout::say;

/// Runs a client of this host.
pub(super) fn run(
    options: &Options,
    host: &str,
    words: &[String],
    cancel: &Cancel,
) -> Result<(), Failure> {
    let mut record = record::begin_client(options, host, words, cancel).map_err(Failure::new)?;
    match measure(options, host, &mut record, cancel) {
        Ok((report, failure)) => {
            record::finish_client(record, report, failure.as_ref(), cancel);
            failure.map_or(Ok(()), Err)
        }
        Err(failure) => {
            record::fail_client(record, &failure);
            Err(failure)
        }
    }
}

/// What a run came to, and why it has not what it should.
fn measure(
    options: &Options,
    host: &str,
    record: &mut RunRecord,
    cancel: &Cancel,
) -> Result<(Report, Option<Failure>), Failure> {
    let plan = plan::client(options, host)?;
    say(&render_start(options, process::id()));
    say(&render_connecting(plan.remote));
    let style = Style::of(options);
    let report = run_client(&plan, &mut |event| tell(event, style, record), cancel)?;
    if report.first_byte_ns.is_some() && !options.ends_with_first_byte {
        say(&render_received_total(report.total));
    }
    if report.dropped_events > 0 {
        complain_of_dropped(report.dropped_events);
    }
    report.file_faults.iter().for_each(|why| complain(why));
    let failure = lost(&report, &plan.remote.to_string());
    Ok((report, failure))
}

/// Why a run has not what it should.
fn lost(report: &Report, server: &str) -> Option<Failure> {
    let lost = report.lost.as_ref()?;
    let (Lost::Connection(why) | Lost::Stream(why)) = lost;
    Some(Failure::new(match lost {
        _ if report.first_byte_ns.is_none() => format!("no data came from {server}: {why}"),
        Lost::Connection(_) => format!("the connection to {server} was lost: {why}"),
        Lost::Stream(_) => format!("the download from {server} ended early: {why}"),
    }))
}

fn tell(event: ClientEvent, style: Style, record: &mut RunRecord) {
    match event {
        ClientEvent::Refused => {
            narrate(&format!("{NAME}: the server's port is closed; trying for 30 s\n"));
        }
        ClientEvent::Established { elapsed_ns } => say(&render_established(elapsed_ns)),
        ClientEvent::FirstByte { elapsed_ns } => {
            record::start(record);
            say(&render_first_byte(elapsed_ns));
        }
        ClientEvent::Interval(over) => {
            record::record_received(record, &over);
            say(&render_received(style, &interval(&over)));
        }
        ClientEvent::Reset { code } => narrate(&render_reset(code)),
    }
}
