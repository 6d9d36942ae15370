//! The client: from options to a plan of the engine, and its results to lines.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_engine::error::Error;
use linerate_engine::event::Cancel;
use linerate_engine::perf::{
    Addresses, Carriage, ClientEvent, ClientPlan, Ending, Report, Tells, cannot_go_on, run_client,
};
use linerate_personality::secnetperf::options::{
    ClientOptions, Refusal, SharedOptions, THREAD_LIMIT,
};
use linerate_personality::secnetperf::status;
use linerate_personality::target::is_address;

use super::document::{render_document, render_event};
use super::latency::{LatencyLine, render_distribution};
use super::plan::{placement, quic_options};
use super::printer::{render_ending, render_outcome, render_raw, render_totals, render_waits};
use super::resolve::resolve;
use super::{Speech, record, say};
use crate::key_log::key_log_of_environment;
use crate::output::narrate;
use crate::personality::run_document::RunRecord;

/// Latencies that are kept for each whole second of the run time.
const LATENCIES_PER_SECOND: u64 = 2_000_000;
/// The most that the original keeps, as it tells.
const TOLD_LATENCY_LIMIT: u64 = u32::MAX as u64 / 4;
/// The most that are kept here: 1 GB of them.
const LATENCY_LIMIT: u64 = u32::MAX as u64 / 16;

/// Runs a client; its status.
pub(super) fn run(
    options: &ClientOptions,
    shared: &SharedOptions,
    processors: u64,
    speech: &Speech,
    cancel: &Cancel,
    record: &mut RunRecord,
) -> Result<u8, Refusal> {
    let addresses = resolve(options);
    let unresolved = || Refusal::helping("Failed to resolve remote address!");
    let first = *addresses.first().ok_or_else(unresolved)?;
    let wants_latencies = options.prints_latency || speech.document || record.is_wanted();
    let mut plan = plan(first, options, shared, processors, speech);
    if !wants_latencies {
        plan.latency_limit = 0;
    }
    if let Some(path) = &plan.key_log {
        narrate(&format!("secnetperf: SSLKEYLOGFILE: secrets go to {}\n", path.display()));
    }
    speech.started();
    let mut teller = Teller { options, speech, record, endings: Vec::new() };
    record::start(teller.record, &mut plan);
    let report = reach(&mut plan, &addresses, &mut teller, cancel)?;
    record::record_report(teller.record, &report);
    for (kind, count) in &report.own.errors {
        narrate(&format!("secnetperf: {count} connections failed: {kind}\n"));
    }
    let totals = report.totals();
    let broken_off = totals.broken_off.unwrap_or(0);
    let is_cut = cancel.requested() || report.broken.is_some() || broken_off > 0;
    let time_us = counted_time_us(options, report.own.elapsed_ns, is_cut);
    let streams = totals.streams.unwrap_or(0);
    let line = LatencyLine::of(totals.latency_us, streams, time_us);
    if speech.document {
        say(&render_document(options, &report, line.as_ref(), &teller.endings, speech.lines));
    }
    if totals.connections == Some(0) {
        speech.say("Error: No Successful Connections!\n");
        return Ok(status::REFUSED);
    }
    speech.say(&render_totals(options, &totals, time_us));
    if options.prints_latency && keeps_latencies(options) {
        tell_latency(options, &report, line.as_ref(), speech);
    }
    match &report.broken {
        Some(why) => Err(refusal(cannot_go_on(why))),
        None if broken_off > 0 => {
            narrate(&render_break(broken_off, report.own.elapsed_ns));
            Ok(status::FAILED)
        }
        None => Ok(status::OK),
    }
}

/// Prints the line of latencies, and the distribution where it goes to a file.
fn tell_latency(
    options: &ClientOptions,
    report: &Report,
    line: Option<&LatencyLine>,
    speech: &Speech,
) {
    let Some(line) = line else {
        return speech.say("Error: No requests were completed\n");
    };
    speech.say(&line.render());
    let (kept, streams) = (line.latency.count, report.totals().streams.unwrap_or(0));
    if kept < streams {
        narrate(&format!(
            "secnetperf: the percentiles are of {kept} of {streams} requests: no more latencies are kept\n"
        ));
    }
    if let Some(path) = &options.extra_output_file {
        write_distribution(path, &report.latencies_us, speech);
    }
}

/// Runs the plan with the first of the target's addresses to which a connection stands.
fn reach(
    plan: &mut ClientPlan,
    addresses: &[SocketAddr],
    teller: &mut Teller<'_>,
    cancel: &Cancel,
) -> Result<Report, Refusal> {
    let mut left = addresses.iter().skip(1);
    loop {
        let next = left.next();
        plan.gives_up_unreached = next.is_some();
        let report = run_client(plan, &mut |event| teller.tell(event), cancel).map_err(refusal)?;
        let is_reached = report.totals().connections != Some(0);
        let Some(next) = next.filter(|_| !is_reached && !cancel.requested()) else {
            return Ok(report);
        };
        let kinds = report.own.errors.keys().cloned().collect::<Vec<_>>().join(", ");
        let remote = plan.addresses.remote;
        narrate(&format!("secnetperf: no connection to {remote} ({kinds}): trying {next}\n"));
        plan.addresses.remote = *next;
    }
}

/// Prints what happens as it happens, and keeps what goes to documents.
struct Teller<'a> {
    options: &'a ClientOptions,
    speech: &'a Speech,
    record: &'a mut RunRecord,
    /// Connections' ends, for the document of `--json`.
    endings: Vec<Ending>,
}

impl Teller<'_> {
    fn tell(&mut self, event: ClientEvent) {
        let Self { options, speech, .. } = self;
        match event {
            ClientEvent::Refused(why) => narrate(&format!("secnetperf: {why}\n")),
            ClientEvent::Sample(sample) => record::record_sample(self.record, *sample),
            event if speech.lines => say(&render_event(&event)),
            ClientEvent::StreamEnded(outcome) => {
                if prints_streams(options) {
                    speech.say(&render_outcome(&outcome, options.old_format));
                }
                if options.prints_raw {
                    speech.say(&render_raw(&outcome));
                }
            }
            ClientEvent::StreamWaited(waits) => speech.say(&render_waits(&waits)),
            ClientEvent::ConnectionEnded(ending) if speech.document => self.endings.push(*ending),
            ClientEvent::ConnectionEnded(ending) => speech.say(&render_ending(&ending)),
        }
    }
}

fn plan(
    remote: SocketAddr,
    options: &ClientOptions,
    shared: &SharedOptions,
    processors: u64,
    speech: &Speech,
) -> ClientPlan {
    let is_address = is_address(&options.target);
    let runs_for = shared.max_runtime.or_else(|| {
        (options.runtime_us > 0).then(|| Duration::from_micros(options.runtime_us.max(1000)))
    });
    let latency_limit = match options.runtime_us / 1_000_000 {
        0 if options.runtime_us > 0 => LATENCY_LIMIT,
        0 => u64::from(options.connections).saturating_mul(options.streams.into()),
        seconds => seconds.saturating_mul(LATENCIES_PER_SECOND),
    };
    if latency_limit > TOLD_LATENCY_LIMIT && options.prints_latency {
        speech.say(&format!(
            "Warning! Limiting request latency tracking to {TOLD_LATENCY_LIMIT} requests\n"
        ));
    }
    let tells_streams = prints_streams(options) || options.prints_raw;
    let threads = options.threads.or(shared.threads.count);
    let threads = threads.unwrap_or(processors as u32).min(THREAD_LIMIT);
    ClientPlan {
        addresses: Addresses {
            remote,
            local: local_addresses(options, threads),
            server_name: if is_address { String::new() } else { options.target.clone() },
            numbered_names: options.numbered_names,
        },
        carriage: if options.tcp {
            Carriage::Tcp
        } else {
            Carriage::Quic(quic_options(&shared.quic))
        },
        placement: placement(&shared.threads),
        threads,
        copies: options.copies,
        own_ports: options.own_ports,
        connections: options.connections,
        streams: options.streams,
        shape: options.shape,
        repeats_connections: options.repeats_connections,
        repeats_streams: options.repeats_streams,
        runs_for,
        gives_up_unreached: false,
        latency_limit: latency_limit.min(LATENCY_LIMIT) as usize,
        tells: Tells {
            streams: speech.lines || tells_streams && !speech.document,
            waits: options.prints_waits && (speech.lines || !speech.document),
            connections: speech.lines || options.prints_connections,
            interval_ns: None,
        },
        logs: shared.logs.clone(),
        key_log: key_log_of_environment().filter(|_| !options.tcp),
    }
}

/// What is said of a run that the server, or the path to it, broke off.
fn render_break(count: u64, measured_ns: u64) -> String {
    let seconds = measured_ns as f64 / 1e9;
    format!(
        "secnetperf: the server, or the path to it, broke off {count} connections before their requests were \
         done: the results are of the {seconds:.1} s until then\n"
    )
}

/// Where connections come from. Those over QUIC share a port; over TCP one has it alone.
fn local_addresses(options: &ClientOptions, threads: u32) -> Vec<SocketAddr> {
    let mut local = options.local.clone();
    let places = local.len().min(threads as usize);
    let alone = !options.repeats_connections && options.connections as usize <= places;
    if options.tcp && !alone && local.iter().any(|address| address.port() != 0) {
        narrate(
            "secnetperf: -bind has no port over TCP: the kernel chooses a port for each connection\n",
        );
        local.iter_mut().for_each(|address| address.set_port(0));
    }
    local
}

/// Whether each stream has its lines of throughput.
fn prints_streams(options: &ClientOptions) -> bool {
    options.prints_stream_throughput || options.old_format && options.prints_throughput
}

/// The original has no room for latencies when the run time is less than a second, and then says
/// nothing of them.
fn keeps_latencies(options: &ClientOptions) -> bool {
    options.runtime_us == 0 || options.runtime_us >= 1_000_000
}

/// The time that requests and handshakes per second are counted over: the run time that was asked for, as in the
/// original, or the measured one where none was or this end cut the run short.
fn counted_time_us(options: &ClientOptions, measured_ns: u64, is_cut: bool) -> u64 {
    match options.runtime_us {
        asked_us @ 1.. if !is_cut => asked_us,
        _ => (measured_ns / 1000).max(1),
    }
}

fn write_distribution(path: &str, latencies_us: &[u32], speech: &Speech) {
    match std::fs::File::create(path) {
        Ok(file) => {
            let mut file = std::io::BufWriter::new(file);
            let text = render_distribution(latencies_us);
            if let Err(error) = std::io::Write::write_all(&mut file, text.as_bytes()) {
                narrate(&format!("secnetperf: can't write '{path}': {error}\n"));
            }
        }
        Err(error) => {
            // The original's number is always 1 here.
            speech.say(&format!("Failed to open file '{path}' for write, error: 1\n"));
            narrate(&format!("secnetperf: can't write '{path}': {error}\n"));
        }
    }
}

/// An error of the engine in the original's terms.
pub(super) fn refusal(error: Error) -> Refusal {
    let status = match &error {
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            status::IN_USE
        }
        _ => status::FAILED,
    };
    Refusal { status, text: error.to_string(), points_to_help: true }
}
