//! `crucible engine`: what runs on each host. A server or a client of the benchmark iperf becomes this program's
//! iperf3, or starts the original, on the processors that its parameters ask for. A client with a range of bit rates
//! hunts.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use linerate_engine::pin_to;
use linerate_measure::Run;
use linerate_measure::hunt::{Bisection, BisectionStep, keeps_loss};
use linerate_measure::record::Record;
use linerate_personality::crucible::command_line::EngineOptions;
use linerate_personality::crucible::iperf::{
    EngineParameters, Range, Word, choose_cpus, control_port, find_address, find_interface,
    read_options,
};
use linerate_personality::crucible::parameter::EngineRole;
use linerate_personality::crucible::quirk::{Name, Reading};

use super::super::run_document::{DOCUMENT, RECORDS};
use super::super::stdout::say;
use super::Failure;
use super::original::{Original, guarded};
use crate::cpus::Cpus;
use crate::output::narrate;

/// The interface that stands for the one of the default route.
const DEFAULT_ROUTE: &str = "default-route";

/// Becomes the engine; returns only where it can't, or when a hunt is over.
pub(super) fn perform(options: &EngineOptions) -> Result<u8, Failure> {
    let EngineOptions { role, id, settings, reading, iperf3, .. } = options;
    let read = read_options(settings, *role, *id, *reading)?;
    let original = iperf3.as_deref().map(Original::find).transpose()?;
    match role {
        EngineRole::Server => become_server(&read, *id, original.as_ref()),
        EngineRole::Client | EngineRole::All => become_client(&read, options, original.as_ref()),
    }
}

fn become_server(
    options: &EngineParameters,
    id: u32,
    original: Option<&Original>,
) -> Result<u8, Failure> {
    let interface = match options.ifname.as_deref() {
        Some(DEFAULT_ROUTE) => Some(default_interface(options.is_ipv6)?),
        Some(name) => Some(name.to_owned()),
        None => None,
    };
    if let Some(name) = &interface {
        let address = SocketAddr::new(address_of(name, options.is_ipv6)?, control_port(id));
        // The controller tells the client where its server is.
        let (version, fingerprint) = (Record::VERSION, String::new());
        say(&Record::Listening { version, address, fingerprint }.render());
    }
    pin(options, EngineRole::Server, interface.as_deref())?;
    if let Some(original) = original {
        return original.serve(&options.server_words(id), control_port(id));
    }
    let mut command = own_iperf3()?;
    // The text, which tells that the server listens, goes where it can't get between the records.
    let text = rustix::io::dup(std::io::stderr())
        .map_err(|error| Failure::new(format!("can't keep standard error: {error}")))?;
    command.args(options.server_words(id)).env(RECORDS, kept_stdout()?).stdout(text);
    Err(Failure::new(format!("can't become iperf3: {}", command.exec())))
}

fn become_client(
    options: &EngineParameters,
    asked: &EngineOptions,
    original: Option<&Original>,
) -> Result<u8, Failure> {
    let host = options.remotehost.as_ref().unwrap_or(&asked.address);
    if host.is_empty() {
        return Err(Failure::new(
            "the client has no server's address: give --address, the parameter remotehost, or to \
             the server the parameter ifname",
        ));
    }
    if options.cpu_pin.is_some() {
        let interface = interface_towards(host)?;
        pin(options, EngineRole::Client, Some(&interface))?;
    }
    let words = options.client_words(asked.server_id);
    let words: Vec<String> = words
        .into_iter()
        .map(|word| match word {
            Word::Text(text) => text,
            Word::Address => asked.address.clone(),
        })
        .collect();
    if let Some(range) = options.range {
        let run_at = |rate: &str| match original {
            Some(original) => {
                let at_rate = ["--bitrate".to_owned(), rate.to_owned()];
                original.measure(&[&words[..], &at_rate].concat())
            }
            None => test_at(&words, rate),
        };
        return hunt(range, run_at, options.max_loss_pct, asked.reading);
    }
    if let Some(original) = original {
        finish(Box::new(original.measure(&words)?));
        return Ok(0);
    }
    let mut command = own_iperf3()?;
    command.args(words).env(RECORDS, kept_stdout()?).stdout(Stdio::null());
    Err(Failure::new(format!("can't become iperf3: {}", command.exec())))
}

/// A descriptor for standard output that what this process becomes inherits, as the environment names it: records go
/// there, and text elsewhere.
fn kept_stdout() -> Result<String, Failure> {
    let kept = rustix::io::dup(std::io::stdout())
        .map_err(|error| Failure::new(format!("can't keep standard output: {error}")))?;
    Ok(format!("fd:{}", kept.into_raw_fd()))
}

/// This program's iperf3.
fn own_iperf3() -> Result<Command, Failure> {
    let program = env::current_exe()
        .map_err(|error| Failure::new(format!("can't tell this program's path: {error}")))?;
    let mut command = Command::new(program);
    command.arg("iperf3");
    Ok(command)
}

/// Searches the highest rate that loses no more than the limit, as the original does: each step is a whole test.
fn hunt(
    range: Range,
    run_at: impl Fn(&str) -> Result<Run, Failure>,
    limit_pct: f64,
    reading: Reading,
) -> Result<u8, Failure> {
    let mut search = Bisection::new(range.low, range.high);
    // The fastest test that passed, else the last one.
    let mut best: Option<(f64, Box<Run>)> = None;
    let mut last = None;
    let mut trace = Vec::new();
    let answer = loop {
        let rate = match search.poll_step() {
            BisectionStep::Run(rate) => rate,
            BisectionStep::Answer(answer) => break answer,
        };
        let run = run_at(&format!("{rate}{}", range.unit))?;
        let (lost, total) = losses(&run);
        let passes = keeps_loss(lost, total, limit_pct);
        let verdict = if passes { "PASS" } else { "FAIL" };
        trace.push(format!("{rate}{} {verdict} {lost}/{total}", range.unit));
        narrate(&format!("{verdict}: {rate}{}, {lost} of {total} lost\n", range.unit));
        let goodput_bps = run.summary.goodput_bps.unwrap_or_default();
        if passes && best.as_ref().is_none_or(|(fastest, _)| goodput_bps > *fastest) {
            best = Some((goodput_bps, Box::new(run)));
        } else if !passes {
            last = Some(Box::new(run));
        }
        search.handle_verdict(passes);
    };
    let trace = format!("hunt: {}; final answer {answer}{}", trace.join(", "), range.unit);
    let mut run = match (best, last) {
        (Some((_, run)), _) => run,
        (None, Some(run)) if reading.is_compat() => run,
        (None, Some(_)) => {
            let why = Name::FailingHunt.refuse(&format!("no rate passed ({trace})"));
            return Err(Failure::new(why));
        }
        (None, None) => {
            return Err(Failure::new(format!(
                "bitrate-range {}{unit}-{}{unit} has no rate between its ends: widen it",
                range.low,
                range.high,
                unit = range.unit
            )));
        }
    };
    run.status.notes.push(trace);
    finish(run);
    Ok(0)
}

/// Tells the controller what came out.
fn finish(run: Box<Run>) {
    let (version, run_id, dropped_records) = (Record::VERSION, run.run_id.clone(), 0);
    say(&Record::Finished { version, run_id, dropped_records, run }.render());
}

/// Datagrams that the receiver missed, and all that it should have had.
fn losses(run: &Run) -> (u64, u64) {
    let counts = run.summary.datagrams.unwrap_or_default();
    let lost = counts.lost.unwrap_or_default();
    (lost, counts.received.unwrap_or_default().saturating_add(lost))
}

/// A test at one bit rate, from begin to end.
fn test_at(words: &[String], rate: &str) -> Result<Run, Failure> {
    let document = TemporaryFile::new();
    let own = env::current_exe()
        .map_err(|error| Failure::new(format!("can't tell this program's path: {error}")))?;
    let status = guarded(own.as_os_str())?
        .arg("iperf3")
        .args(words)
        .args(["--bitrate", rate])
        .env(DOCUMENT, &document.0)
        .env_remove(RECORDS)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| Failure::new(format!("can't start iperf3: {error}")))?;
    let text = fs::read_to_string(&document.0).ok().filter(|_| status.success());
    let Some(text) = text else {
        return Err(Failure::new(format!("the test at {rate} failed: iperf3 ended with {status}")));
    };
    serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("the test at {rate} left no document: {error}")))
}

/// A file that is removed when it isn't needed any more.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new() -> Self {
        let name = format!("linerate-crucible-{}.json", std::process::id());
        Self(env::temp_dir().join(name))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A test that failed left none.
        let _gone = fs::remove_file(&self.0);
    }
}

/// Lets this process, and what it becomes, run on the processors that the parameters ask for.
fn pin(
    options: &EngineParameters,
    role: EngineRole,
    interface: Option<&str>,
) -> Result<(), Failure> {
    let Some(pin) = options.cpu_pin else { return Ok(()) };
    let Some(interface) = interface else {
        return Err(Failure::new("cpu-pin needs the server's interface: give ifname"));
    };
    let node = Cpus::Near(interface.to_owned()).resolve()?;
    pin_to(&choose_cpus(pin, role, &node)).map_err(Failure::new)
}

fn default_interface(is_ipv6: bool) -> Result<String, Failure> {
    let family = if is_ipv6 { "-6" } else { "-4" };
    let routes = ip(&[family, "-j", "route"])?;
    find_interface(&routes, true).ok_or_else(|| {
        Failure::new(
            "ifname is default-route, and this host has no default route: name the interface",
        )
    })
}

fn interface_towards(host: &str) -> Result<String, Failure> {
    let address = linerate_engine::resolve_host(host, 0, None)
        .map_err(|error| Failure::new(format!("can't resolve {host}: {error}")))?;
    let address = address.first().ok_or_else(|| Failure::new(format!("{host} has no address")))?;
    let route = ip(&["-j", "route", "get", &address.ip().to_string()])?;
    find_interface(&route, false)
        .ok_or_else(|| Failure::new(format!("no interface leads to {host}")))
}

fn address_of(interface: &str, is_ipv6: bool) -> Result<IpAddr, Failure> {
    let addresses = ip(&["-j", "address", "show", "dev", interface])?;
    let family = if is_ipv6 { "IPv6" } else { "IPv4" };
    find_address(&addresses, is_ipv6).and_then(|text| text.parse().ok()).ok_or_else(|| {
        Failure::new(format!(
            "the interface {interface} has no {family} address: give another ifname"
        ))
    })
}

/// What `ip` prints.
fn ip(words: &[&str]) -> Result<String, Failure> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let output = Command::new("ip").args(&words).output().map_err(|error| {
        Failure::new(format!("can't start ip, which tells addresses of interfaces: {error}"))
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(Failure::new(format!("ip says: {}", why.trim())))
        }
    }
}
