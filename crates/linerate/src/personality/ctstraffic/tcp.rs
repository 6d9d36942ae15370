//! A client or a server over TCP, from its options to its exit code.

use linerate_engine::ctstraffic::{TcpEnd, TcpEvent, TcpPlan, TcpRun, run_tcp};
use linerate_engine::event::Cancel;
use linerate_measure::dialect::ctstraffic::EndTotals;
use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::banner::RunAddresses;
use linerate_personality::ctstraffic::{Refusal, exit};

use super::files::Files;
use super::resolve::{client_addresses, listening, with_port};
use super::tcp_plan::{Hosts, plan};
use super::tcp_printer::TcpPrinter;
use super::{not_started, record};

/// Runs it; its exit code.
pub(super) fn run(options: &Options, words: &[String], cancel: &Cancel) -> Result<u8, Refusal> {
    let hosts = match options.is_server() {
        true => Hosts::Server(listening(&options.hosts, options.port())?),
        false => Hosts::Client(client_addresses(&options.hosts)?),
    };
    let plan = plan(options, &hosts)?;
    let files = Files::open(options)?;
    let mut record = match record::begin(options, plan.workload(), words, cancel) {
        Ok(record) => record,
        Err(sentence) => return Ok(not_started(&sentence)),
    };
    let mut printer = match &hosts {
        Hosts::Server(listening) => {
            TcpPrinter::begin(options, files, RunAddresses::Server(listening))
        }
        Hosts::Client(addresses) => {
            let targets = addresses.targets.iter().map(|target| with_port(*target, options.port()));
            let (targets, binds): (Vec<_>, _) = (targets.collect(), &addresses.binds);
            TcpPrinter::begin(options, files, RunAddresses::Client { targets: &targets, binds })
        }
    };
    record::start(&mut record);
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
    let run = match run_tcp(&plan, &mut tell, cancel) {
        Ok(run) => run,
        Err(error) => {
            record::fail(record, exit::NOT_STARTED, &error.to_string());
            return Ok(not_started(&error.to_string()));
        }
    };
    if cancel.requested() {
        printer.console.stop();
    }
    let code = exit::exit_code(run.totals.failed(), is_finished(&plan, &run));
    printer.conclude(&run, code);
    record::finish(record, run.report.clone(), end_totals(&run), code, cancel);
    Ok(code)
}

fn end_totals(run: &TcpRun) -> EndTotals {
    EndTotals {
        completed: run.totals.completed,
        network_errors: run.totals.network_errors,
        data_errors: run.totals.data_errors,
        sent_bytes: run.sent_bytes,
        received_bytes: run.received_bytes,
        frames: None,
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
