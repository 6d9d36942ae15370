//! `self`: this machine measured against itself, over loopback.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::thread;

use linerate_engine::access::Access;
use linerate_engine::error::Error;
use linerate_engine::event::{Cancel, Sink};
use linerate_engine::{HandedSockets, ServeOptions, Server};
use linerate_measure::plan::{DEFAULT_PORT, Local};
use linerate_measure::run::exit;
use linerate_measure::{Direction, End, Outcome, Plan, Run, Transport, Workload};

use super::report::PageFile;
use super::{Failure, dry_run, keep, open_store, print};
use crate::args::SelfArgs;
use crate::known_servers::trust_only;
use crate::output::{JsonPrinter, OwnMachineTable, Printer, Style};

/// The standard set, by name. UDP is sent as fast as it goes, so what a receiver on the same
/// processors can't take is lost, and shown.
pub(super) fn standard_set() -> [(&'static str, Workload); 8] {
    [
        ("TCP up", Workload::stream(Direction::Up, Transport::Tcp)),
        ("TCP down", Workload::stream(Direction::Down, Transport::Tcp)),
        ("TLS up", Workload::stream(Direction::Up, Transport::Tls)),
        ("QUIC up", Workload::stream(Direction::Up, Transport::Quic)),
        ("TCP rr", Workload::rr(Transport::Tcp)),
        ("UDP rr", Workload::rr(Transport::Udp)),
        ("QUIC rr", Workload::rr(Transport::Quic)),
        ("UDP stream", Workload::stream(Direction::Up, Transport::Udp)),
    ]
}

/// Starts a server with a key for this once, measures the standard set against it, prints a table
/// or an array of runs.
pub(super) fn measure_own_machine(args: &SelfArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let plans = plans_of(args)?;
    if args.dry_run {
        let plans: Vec<Plan> = plans.into_iter().map(|(_, plan)| plan).collect();
        return dry_run::print_steps(&plans, None, cancel);
    }
    let server = Server::bind(loopback_options()?, Sink::none())?;
    let (port, fingerprint) = (server.address().port(), server.fingerprint().to_owned());
    let stop_server = Cancel::default();
    thread::scope(|scope| {
        let serving = thread::Builder::new()
            .spawn_scoped(scope, || server.serve(&stop_server))
            .map_err(|error| Failure::from(Error::no_thread(&error)))?;
        let measured = measure_set(args, &plans, port, &fingerprint, cancel);
        stop_server.request();
        let exit_code = measured?;
        match serving.join() {
            Ok(served) => served.map(|()| exit_code).map_err(Failure::from),
            Err(_) => Err(Failure::here("the server's thread failed by a defect")),
        }
    })
}

fn measure_set(
    args: &SelfArgs,
    plans: &[(&'static str, Plan)],
    port: u16,
    fingerprint: &str,
    cancel: &Cancel,
) -> Result<u8, Failure> {
    let mut json = JsonPrinter::new(plans.len());
    let mut table = OwnMachineTable::new(Style::of(&io::stdout()));
    if !args.json {
        print(&table.render_head())?;
    }
    let keeper = open_store(args.store.as_deref(), cancel)?;
    let mut page = PageFile::open(args.report.as_deref(), cancel)?;
    let mut unkept = None;
    let mut exit_code = exit::VALID;
    for (name, plan) in plans {
        let plan = Plan { port, ..plan.clone() };
        let run = measure_one(&plan, fingerprint, cancel);
        exit_code = exit_code.max(run.status.exit_code);
        keep(keeper.as_ref(), &run, "linerate self", &mut unkept);
        page.push(&run);
        print(&if args.json { json.render_run(&run, 0) } else { table.render_row(name, &run) })?;
        if run.status.outcome == Outcome::Interrupted {
            break;
        }
    }
    print(&if args.json { json.render_end() } else { table.render_end(args.quiet) })?;
    page.write()?;
    unkept.map_or(Ok(exit_code), Err)
}

fn measure_one(plan: &Plan, fingerprint: &str, cancel: &Cancel) -> Run {
    let trust = trust_only(fingerprint.to_owned());
    let access = Access { trust, authority: None, doubt: None, shared_key: None };
    linerate_engine::run(plan, &access, &Sink::none(), cancel)
}

fn plans_of(args: &SelfArgs) -> Result<Vec<(&'static str, Plan)>, Failure> {
    let mut plans = Vec::new();
    for (name, workload) in standard_set() {
        let end = End::Time { duration_ns: args.time };
        let plan = Plan {
            schema: Plan::SCHEMA.to_owned(),
            host: Ipv4Addr::LOCALHOST.to_string(),
            // The port of the server of this once is known when it listens.
            port: DEFAULT_PORT,
            family: None,
            workload: Workload { end, ..workload },
            local: Local::default(),
            exclusive: false,
            start_at_utc_ns: None,
            title: Some(name.to_owned()),
            tags: Default::default(),
        };
        plan.check().map_err(|error| Failure::usage(error.to_string()))?;
        plans.push((name, plan));
    }
    Ok(plans)
}

fn loopback_options() -> Result<ServeOptions, Failure> {
    Ok(ServeOptions {
        bind: Some(IpAddr::V4(Ipv4Addr::LOCALHOST).into()),
        port: 0,
        handed: HandedSockets::default(),
        cpus: Vec::new(),
        bind_device: None,
        max_tests: 1,
        max_rate_bps: None,
        max_time_ns: None,
        one_off: false,
        idle_timeout_ns: None,
        busy_poll: false,
        shared_key: None,
        identity: linerate_engine::make_identity()?,
    })
}
