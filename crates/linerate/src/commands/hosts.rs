//! `hosts`: what works on the hosts of a plan.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use linerate_engine::event::Cancel;
use linerate_lab::agent::Capability;
use linerate_lab::host::{FoundHost, HostReport, check, hosts_of_text};
use linerate_measure::plan::Notation;
use linerate_measure::run::exit;

use super::{Failure, await_file, print, read_text};
use crate::args::{HostsArgs, HostsCheckArgs, HostsCommand};
use crate::executable::binaries;
use crate::output::{Style, Table, narrate};

/// The longest plan, bytes.
const MAX_PLAN: u64 = 4 << 20;

/// So many digits of a SHA-256 tell binaries apart.
const DIGITS: usize = 12;

/// Does what the command line says; the exit code.
pub(super) fn attend_hosts(args: &HostsArgs, cancel: &Cancel) -> Result<u8, Failure> {
    match &args.command {
        HostsCommand::Check(args) => check_hosts(args, cancel),
    }
}

fn check_hosts(args: &HostsCheckArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let path = args.plan.clone();
    let text = await_file(cancel, move || read_plan(&path).map_err(Failure::here))?;
    let binaries = Arc::new(binaries(&args.binaries).map_err(Failure::here)?);
    let hosts = hosts_of_text(&text, Notation::of_path(&args.plan), &binaries);
    let hosts = hosts
        .map_err(|why| Failure::usage(format!("{}: {}", args.plan.display(), why.trim_end())))?;
    let reports =
        check(&hosts, || cancel.requested()).map_err(|error| Failure::here(error.to_string()))?;
    print(&render_reports(&reports))?;
    for report in &reports {
        if let Err(error) = &report.outcome {
            narrate(&format!("linerate: host {}: {error}\n", report.name));
        }
    }
    if cancel.requested() {
        return Ok(exit::INTERRUPTED);
    }
    let all_work = reports.iter().all(|report| report.outcome.is_ok());
    Ok(if all_work { exit::VALID } else { exit::UNREACHABLE })
}

fn read_plan(path: &Path) -> Result<String, String> {
    if path == Path::new("-") {
        return read_text(Ok(io::stdin().lock()), "standard input", MAX_PLAN);
    }
    read_text(File::open(path), &path.display().to_string(), MAX_PLAN)
}

/// A row for each host; `-` where something is missing or not known.
fn render_reports(reports: &[HostReport]) -> String {
    let mut table = Table::with_head(&[
        "host",
        "reached",
        "state",
        "version",
        "binary",
        "arch",
        "user",
        "clock",
        "within",
        "round trip",
        "may",
        "tools",
    ]);
    for report in reports {
        let mut row = vec![report.name.clone(), report.description.to_string()];
        match &report.outcome {
            Ok(found) => row.extend(cells_of(found)),
            Err(_) => {
                row.push("fails".to_owned());
                row.extend((0..9).map(|_| "-".to_owned()));
            }
        }
        table.push(row);
    }
    table.render(Style::Plain)
}

fn cells_of(found: &FoundHost) -> [String; 10] {
    let (hello, clock) = (&found.hello, found.clock);
    let us = |ns: u64| format!("{} us", ns.div_ceil(1000));
    let may = [
        (Capability::RealTime, "real time"),
        (Capability::NetAdmin, "network"),
        (Capability::LowPorts, "low ports"),
        (Capability::SysAdmin, "namespaces"),
    ];
    let may = may.iter().filter(|(capability, _)| hello.capabilities.contains(capability));
    [
        "works".to_owned(),
        hello.version.clone(),
        hello.sha256.chars().take(DIGITS).collect(),
        hello.arch.clone(),
        hello.uid.to_string(),
        format!("{:+} us", clock.offset.offset_ns / 1000),
        us(clock.offset.bound_ns),
        us(clock.round_trip_ns),
        or_dash(may.map(|(_, name)| (*name).to_owned()).collect()),
        or_dash(hello.tools.clone()),
    ]
}

fn or_dash(names: Vec<String>) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}
