//! Doing what was asked: connect, test, print.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;

use linerate_engine::error::Error;
use linerate_engine::event::{Cancel, Event, Sink};
use linerate_engine::netperf::{
    Client, ControlPlan, Outcome, TestKind, TestPlan, TestTransport, interface, local_calibration,
    over_interface, run_alone,
};

use linerate_measure::plan::Family;
use linerate_measure::run::Outcome as Ending;

use linerate_personality::netperf::EXIT_USAGE;
use linerate_personality::netperf::command_line::Said;

use super::banner::{Ends, render_banner};
use super::confidence::render_warning;
use super::document::{self, record_figures};
use super::figures::Iterations;
use super::planning::{Control, Request, Work};
use super::random::{draw_host, fresh_uuid};
use super::reading::{Read, read};
use super::release::{VARIABLE, parse_short_messages};
use super::resolve::{choose_ends, resolve, resolve_all, unsupported};
use super::table::{render_result, render_segment_size};
use super::tcp_dump::{self, render_tcp_info};
use super::trouble::{tell_troubles, void};
use super::watch::Watch;
use super::{EXIT_FAILED, family_name};
use crate::output::narrate;
use crate::personality::run_document::RunRecord;
use crate::personality::{say, stdout};
use crate::signals::{stop_on_alarm, stop_on_signals};

/// Interim results that may wait for a slow reader; more are dropped.
const EVENTS_WAITING_MAX: usize = 1024;

/// Does what netperf's command line says; its exit code.
pub(in super::super) fn perform(name: &str, words: &[String]) -> u8 {
    let (mut control, work, notes) = match read(name, words) {
        Read::Work(control, work, notes) => (control, work, notes),
        Read::Said(Said { stdout, stderr, exit_code }) => {
            say(&stdout);
            narrate(&stderr);
            return exit_code;
        }
    };
    notes.iter().for_each(|note| narrate(note));
    let release = std::env::var_os(VARIABLE).unwrap_or_default();
    match parse_short_messages(&release.to_string_lossy()) {
        Ok(short_messages) => control.plan.short_messages = short_messages,
        Err(sentence) => {
            narrate(&format!("{name}: {sentence}\n"));
            return EXIT_USAGE;
        }
    }
    let cancel = Cancel::default();
    let mut record = None;
    if let Work::Test(request) = &work {
        match document::begin(&control, request, words, &cancel) {
            Ok(begun) => record = Some(begun),
            Err(sentence) => {
                narrate(&format!("{name}: {sentence}\n"));
                return EXIT_USAGE;
            }
        }
    }
    let done = perform_work(*control, work, &cancel, record.as_mut());
    if let Err(failure) = &done {
        say(&failure.stdout);
        if !failure.sentence.is_empty() {
            narrate(&format!("{name}: {}\n", failure.sentence));
        }
    }
    let (ending, exit_code, why) = match done {
        Ok(()) if cancel.requested() => (Ending::Interrupted, 0, None),
        Ok(()) => (Ending::Complete, 0, None),
        Err(failure) => (failure.ending, failure.exit_code, Some(failure.why())),
    };
    if let Some(record) = record {
        record.finish(ending, stdout::exit_code(exit_code, 1), why);
    }
    exit_code
}

/// Why there is no result.
#[derive(Debug)]
struct Failure {
    stdout: String,
    sentence: String,
    exit_code: u8,
    /// How the document calls it.
    ending: Ending,
}

impl Failure {
    fn told(stdout: String) -> Self {
        let (sentence, ending) = (String::new(), Ending::Failed);
        Self { stdout, sentence, exit_code: EXIT_FAILED, ending }
    }

    /// One text of both outputs.
    fn why(&self) -> String {
        let said = if self.sentence.is_empty() { &self.stdout } else { &self.sentence };
        said.trim_end().to_owned()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // The original returns -1 for whatever the server told.
        let exit_code = if matches!(error, Error::Peer(_)) { EXIT_FAILED } else { 1 };
        let interrupted = matches!(error, Error::Interrupted);
        let ending = if interrupted { Ending::Interrupted } else { Ending::Failed };
        Self { stdout: String::new(), sentence: error.to_string(), exit_code, ending }
    }
}

fn perform_work(
    mut control: Control,
    work: Work,
    cancel: &Cancel,
    record: Option<&mut RunRecord>,
) -> Result<(), Failure> {
    let (local, address) = find_ends(&control)?;
    control.plan.local = local.map(|local| local.ip());
    control.plan.local_interface = local.map_or(0, interface);
    stop_on_signals(cancel)
        .and_then(|()| stop_on_alarm(cancel))
        .map_err(|error| Error::Host(format!("can't listen for signals: {error}")))?;
    let address = over_interface(address, control.plan.local_interface);
    let mut server = Server { address, client: None };
    if !control.alone {
        let client = Client::connect(&control.plan, cancel).map_err(|error| match error {
            Error::Unreachable(why) => {
                // Whether a server is there was never asked.
                let apart = local.is_some_and(|local| local.is_ipv4() != address.is_ipv4());
                let sentence = if apart { why } else { String::new() };
                Failure { sentence, ..Failure::told(unreachable(&control, address.ip())) }
            }
            error => error.into(),
        })?;
        server.client = Some(client);
    }
    match work {
        Work::Test(mut request) => {
            request.command_line = command_line();
            request.plan.reads_tcp_info = tcp_dump::is_wanted(request.shown.debug);
            begin(&mut request, &mut server)?;
            test(&mut server, &request, cancel, record)?;
        }
        Work::SegmentSize(mut request) => {
            begin(&mut request, &mut server)?;
            let outcome = server.run(&request.plan, &Sink::none(), cancel)?;
            let mss_bytes = outcome.local().mss_bytes().ok_or_else(|| {
                Error::Host("this system doesn't tell the segment size of a connection".to_owned())
            })?;
            say(&render_segment_size(&request, mss_bytes));
        }
        // Without a line's end, as the original does for the sake of scripts.
        Work::Uuid(told) => say(&told.map_or_else(fresh_uuid, Ok)?),
        Work::LocalCpu(verbosity) => {
            let told = local_calibration();
            say(&render_rate(told.rate, told.cpus, "local", verbosity));
        }
        Work::RemoteCpu(verbosity) => {
            if let Some(client) = &mut server.client {
                let told = client.calibrate(cancel)?;
                say(&render_rate(told.rate, told.cpus, "remote", verbosity));
            }
        }
    }
    if let Some(client) = server.client {
        client.close();
    }
    Ok(())
}

/// All words that the program was run with, its own path among them.
fn command_line() -> String {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// The control connection's ends.
fn find_ends(control: &Control) -> Result<(Option<SocketAddr>, SocketAddr), Failure> {
    let find = |host: &str| {
        resolve_all(host, control.plan.family)
            .map_err(|error| Failure::told(unresolved(control, host, &error)))
    };
    let locals = control.local.as_deref().map(find).transpose()?.unwrap_or_default();
    let hosts = find(&control.plan.host)?;
    let ends = choose_ends(&locals, &hosts).ok_or_else(unsupported);
    ends.map_err(|error| Failure::told(unresolved(control, &control.plan.host, &error)))
}

/// Whom tests are made against.
struct Server {
    /// With the interface of a link-local address; the port says nothing.
    address: SocketAddr,
    /// Absent: no netserver is asked.
    client: Option<Client>,
}

impl Server {
    fn run(&mut self, plan: &TestPlan, sink: &Sink, cancel: &Cancel) -> Result<Outcome, Error> {
        match &mut self.client {
            Some(client) => client.run(plan, sink, cancel),
            None => run_alone(self.address, plan, sink, cancel),
        }
    }
}

/// Finds the data connection's addresses and prints the banner.
fn begin(request: &mut Request, server: &mut Server) -> Result<(), Failure> {
    let names = &request.names;
    // The control connection may go to another address of its host than the first one.
    let peer = server.client.as_ref().map_or(server.address, Client::peer);
    let find = |name: &str, beside: SocketAddr, shown: Option<Family>| {
        resolve(name, names.family, Some(Family::of(beside.ip()))).map_err(|error| {
            let (family, failure) = (family_number(shown), lookup_failure(&error));
            Failure::told(format!(
                "complete_addrinfo: could not resolve '{name}' port '0' af {family}\n\t{failure}\n"
            ))
        })
    };
    let shown = names.family.or(Some(Family::of(peer.ip())));
    let found = names.names_data_host.then(|| find(&names.remote, peer, shown)).transpose()?;
    let remote = found.unwrap_or(peer);
    let local = names.local.as_deref().map(|local| find(local, remote, names.family));
    let local = local.transpose()?;
    if server.client.is_none() {
        let remote = over_interface(remote, local.map_or(0, interface));
        server.address = over_interface(remote, interface(server.address));
    }
    let (local, remote) = (local.map(|local| local.ip()), remote.ip());
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let (local_bits, remote_bits) = (names.local_bits, names.remote_bits);
    let drawn = draw_host(remote, remote_bits)?;
    request.plan.remote.address = names.names_data_host.then_some(drawn);
    // A server that sends datagrams must be told where to.
    let told =
        request.plan.kind == TestKind::Receive && request.plan.transport == TestTransport::Udp;
    let own = server.client.as_ref().filter(|_| told).map(|client| client.local().ip());
    let own = own.filter(|own| own.is_ipv4() == remote.is_ipv4());
    let drawn = local.map(|address| draw_host(address, local_bits)).transpose()?;
    request.plan.local.address = drawn.or(own);
    if request.shown.headers {
        let ends = Ends { local: local.unwrap_or(any), remote };
        say(&render_banner(request, ends));
    }
    Ok(())
}

/// Tests as often as it takes, and prints the result.
fn test(
    server: &mut Server,
    request: &Request,
    cancel: &Cancel,
    record: Option<&mut RunRecord>,
) -> Result<(), Failure> {
    if request.shown.debug > 0 {
        narrate(&format!("netperf: {:#?}\n", request.plan));
    }
    let mut iterations = Iterations::new(request.subject());
    let mut watch = Watch::new(request, record);
    let plan = watch.plan(&request.plan);
    loop {
        let outcome = match iterate(server, &plan, &mut watch, cancel) {
            // After an interrupt, the earlier iterations are the result.
            Err(_) if cancel.requested() && !iterations.is_empty() => {
                watch.drop_iteration();
                break;
            }
            outcome => outcome?,
        };
        if let Some(tcp) = &outcome.tcp {
            narrate(&render_tcp_info(tcp));
        }
        tell_troubles(&outcome);
        if iterations.accepts(&outcome) {
            watch.record_outcome(request, &outcome);
        } else {
            watch.drop_iteration();
        }
        if let Some(sentence) = void(&request.plan, &outcome) {
            let ending = Ending::Untrustworthy;
            return Err(Failure { stdout: String::new(), sentence, exit_code: 1, ending });
        }
        let is_last = outcome.interrupted || cancel.requested();
        iterations.record(outcome);
        let agreement = iterations.agreement(&request.schedule);
        if is_last || !request.schedule.goes_on(&agreement) {
            break;
        }
    }
    let uuid = match &request.shown.uuid {
        Some(told) => told.clone(),
        None => fresh_uuid()?,
    };
    if let Some(figures) = iterations.figures(&request.schedule) {
        if let Some(record) = &mut watch.record {
            record_figures(record, &figures);
        }
        if request.selection.is_some() {
            // Scripts read selected figures line by line, and nothing but figures.
            narrate(&render_warning(&figures.agreement, &request.schedule));
        }
        say(&render_result(request, &figures, &uuid));
    }
    Ok(())
}

/// One test; interim results are printed as they come.
fn iterate(
    server: &mut Server,
    plan: &TestPlan,
    watch: &mut Watch<'_>,
    cancel: &Cancel,
) -> Result<Outcome, Error> {
    if plan.interval_ns.is_none() {
        return server.run(plan, &Sink::none(), cancel);
    }
    let (sink, events) = Sink::bounded(EVENTS_WAITING_MAX);
    watch.restart();
    thread::scope(|scope| {
        let tell = move || {
            for event in events {
                if let Event::Sample(sample) = event {
                    watch.see(&sample);
                }
            }
        };
        // Where the machine has no thread left, the test has none either, and says so.
        let _untold = thread::Builder::new().spawn_scoped(scope, tell);
        let outcome = server.run(plan, &sink, cancel);
        drop(sink);
        outcome
    })
}

/// The number that Linux has for a family, which the original shows in the place of its name at times.
fn family_number(family: Option<Family>) -> u8 {
    match family {
        None => 0,
        Some(Family::Ipv4) => 2,
        Some(Family::Ipv6) => 10,
    }
}

/// What the original says when a name isn't found: the C library's number and text.
fn lookup_failure(error: &io::Error) -> String {
    const KNOWN: [(i32, &str); 3] = [
        (-2, "Name or service not known"),
        (-3, "Temporary failure in name resolution"),
        (-9, "Address family for hostname not supported"),
    ];
    let told = error.to_string();
    let known = KNOWN.iter().find(|(_, text)| told.ends_with(text));
    known.map_or(told, |(number, text)| format!("getaddrinfo returned {number} {text}"))
}

fn unresolved(control: &Control, host: &str, error: &io::Error) -> String {
    format!(
        "resolve_host: could not resolve host '{host}' port '(null)' af {}\n\t{}\n\
         Netperf could not resolve {host} as a host name\n",
        family_name(control.told_family),
        lookup_failure(error)
    )
}

fn unreachable(control: &Control, address: IpAddr) -> String {
    let ControlPlan { host, port, local, local_port, .. } = &control.plan;
    let local_family = family_name(control.told_family);
    // The original looks up a host that is named before it reads on, and keeps the family found.
    let found = control.names_host.then(|| Family::of(address));
    let host_family = family_name(control.told_family.or(found));
    let any = if address.is_ipv4() { "0.0.0.0" } else { "::0" };
    let local = local.map_or_else(|| any.to_owned(), |local| local.to_string());
    format!(
        "establish control: are you sure there is a netserver listening on {host} at port {port}?\n\
         establish_control could not establish the control connection from {local} port \
         {local_port} address family {local_family} to {host} port {port} address family \
         {host_family}\n"
    )
}

/// The rate of processors, as `LOC_CPU` and `REM_CPU` print it: without a line's end.
fn render_rate(rate: f32, cpus: u32, end: &str, verbosity: u32) -> String {
    if verbosity > 1 {
        return format!("{rate}\nThere are {cpus} {end} cpus\n");
    }
    rate.to_string()
}
