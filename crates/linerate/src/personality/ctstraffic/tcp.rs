//! A client or a server over TCP, from its options to its exit code.

use std::net::SocketAddr;

use linerate_engine::ctstraffic::{TcpEnd, TcpEvent, TcpPlan, TcpRun, run_tcp};
use linerate_engine::event::Cancel;
use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::banner::RunAddresses;
use linerate_personality::ctstraffic::{Refusal, exit};

use super::files::Files;
use super::resolve::{client_addresses, listening};
use super::tcp_plan::{Hosts, plan};
use super::tcp_printer::TcpPrinter;
use super::{NAME, tcp_record};
use crate::output::narrate;

/// Runs it; its exit code.
pub(super) fn run(options: &Options, words: &[String], cancel: &Cancel) -> Result<u8, Refusal> {
    let hosts = match options.is_server() {
        true => Hosts::Server(listening(&options.hosts, options.port())?),
        false => Hosts::Client(client_addresses(&options.hosts)?),
    };
    let plan = plan(options, &hosts)?;
    let files = Files::open(options)?;
    let mut record = match tcp_record::begin(options, &plan, words, cancel) {
        Ok(record) => record,
        Err(sentence) => return Ok(not_started(&sentence)),
    };
    let mut printer = match &hosts {
        Hosts::Server(listening) => {
            TcpPrinter::begin(options, files, RunAddresses::Server(listening))
        }
        Hosts::Client(addresses) => {
            let with_port = |address| SocketAddr::new(address, options.port());
            let targets: Vec<_> = addresses.targets.iter().copied().map(with_port).collect();
            let binds = &addresses.binds;
            TcpPrinter::begin(options, files, RunAddresses::Client { targets: &targets, binds })
        }
    };
    tcp_record::start(&mut record);
    let aborts = options.run.aborts_on_error;
    let mut tell = |event: TcpEvent| {
        if cancel.requested() {
            printer.stop();
        }
        printer.tell(&event);
        tcp_record::tell(&mut record, &event);
        if aborts && matches!(&event, TcpEvent::Finished(end) if end.fault.is_some()) {
            std::process::abort();
        }
    };
    let run = match run_tcp(&plan, &mut tell, cancel) {
        Ok(run) => run,
        Err(error) => {
            tcp_record::fail(record, exit::NOT_STARTED, &error.to_string());
            return Ok(not_started(&error.to_string()));
        }
    };
    if cancel.requested() {
        printer.stop();
    }
    let code = exit::exit_code(run.totals.failed(), is_finished(&plan, &run));
    printer.conclude(&run, code);
    tcp_record::finish(record, &run, code, cancel);
    Ok(code)
}

/// Says why it could not begin; the exit code.
fn not_started(why: &str) -> u8 {
    narrate(&format!("{NAME}: {why}\n"));
    exit::NOT_STARTED
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
