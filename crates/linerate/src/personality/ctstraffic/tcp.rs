//! A client or a server over TCP, from its options to its exit code.

use linerate_engine::ctstraffic::{TcpEnd, TcpEvent, TcpPlan, TcpRun, run_tcp};
use linerate_engine::event::Cancel;
use linerate_measure::Workload;
use linerate_measure::dialect::ctstraffic::EndTotals;
use linerate_personality::ctstraffic::exit;
use linerate_personality::ctstraffic::options::Options;

use super::files::Files;
use super::resolve::Found;
use super::tcp_plan::plan;
use super::tcp_printer::TcpPrinter;
use super::{Failure, RunEnd, record};
use crate::personality::run_document::RunRecord;

/// The nearest native workload.
pub(super) fn workload(options: &Options) -> Workload {
    plan(options, &Found::default()).workload()
}

/// Runs it.
pub(super) fn run(
    options: &Options,
    found: &Found,
    record: &mut RunRecord,
    cancel: &Cancel,
) -> Result<RunEnd, Failure> {
    let plan = plan(options, found);
    let files = Files::open(options)?;
    let mut printer = TcpPrinter::begin(options, files, found.run_addresses(options));
    record::start(record, plan.workload());
    let aborts = options.run.aborts_on_error;
    let mut tell = |event: TcpEvent| {
        if cancel.requested() {
            printer.console.stop();
        }
        printer.tell(&event);
        if let TcpEvent::Sample(sample) = &event {
            record.record_sample(sample);
        }
        if aborts && matches!(&event, TcpEvent::Finished(end) if end.fault.is_some()) {
            std::process::abort();
        }
    };
    let run = run_tcp(&plan, &mut tell, cancel)?;
    if cancel.requested() {
        printer.console.stop();
    }
    let exit_code = exit::exit_code(run.totals.failed(), is_finished(&plan, &run));
    printer.conclude(&run, exit_code);
    let totals = end_totals(&run);
    Ok(RunEnd { report: run.report, totals, exit_code })
}

fn end_totals(run: &TcpRun) -> EndTotals {
    EndTotals {
        completed: run.totals.completed,
        network_errors: run.totals.network_errors,
        data_errors: run.totals.data_errors,
        sent_bytes: run.sent_bytes,
        received_bytes: run.received_bytes,
        frames: None,
        socket_drops: None,
        queue_drops: None,
        acknowledged_bytes: Some(run.acknowledged_bytes),
    }
}

/// Whether all connections were made that were asked for; at least one, where no number was.
fn is_finished(plan: &TcpPlan, run: &TcpRun) -> bool {
    let asked = match &plan.end {
        TcpEnd::Client { connections, iterations, .. } => {
            iterations.map(|count| count.saturating_mul((*connections).into()))
        }
        TcpEnd::Server { limit, .. } => *limit,
    };
    match asked {
        Some(count) => run.totals.ended() >= count,
        None => run.totals.completed > 0,
    }
}
