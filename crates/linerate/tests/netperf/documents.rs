//! The run documents that tests leave, against what was printed.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_measure::dialect::netperf::EndTotals;
use linerate_measure::dialect::{EndExtension, FlowExtension};
use linerate_measure::record::Record;
use linerate_measure::run::Outcome;
use linerate_measure::{Dialect, EndReport, Kind, Role, Run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::server_process::{Ended, Netserver, command, ended, value};

/// The document at a path. It is the format's, with no field that readers don't know.
fn read(path: &Path) -> Run {
    let text = fs::read_to_string(path).unwrap();
    let run: Run = serde_json::from_str(&text).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(&run).unwrap(), written);
    assert_eq!((run.dialect, run.written_by), (Dialect::Netperf, Role::Client));
    assert!(!run.environment.client.kernel.is_empty());
    run
}

/// Runs netperf; what it said, and its document.
fn documented(server: Option<&Netserver>, options: &str) -> (Ended, Run) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.json");
    let ended = ended(at(server, options).env("LINERATE_RUN_DOCUMENT", &path));
    (ended, read(&path))
}

fn at(server: Option<&Netserver>, options: &str) -> Command {
    let host = server.map(|server| format!("-H 127.0.0.1 -p {} ", server.port));
    command("", &(host.unwrap_or_default() + options))
}

fn report(run: &Run, role: Role) -> &EndReport {
    run.reports.iter().find(|report| report.role == role).unwrap()
}

fn totals(report: &EndReport) -> &EndTotals {
    let Some(EndExtension::Netperf(totals)) = &report.extension else { panic!("{report:?}") };
    totals
}

/// Bytes that the samples and the report of the client say it sent, or received.
fn sampled(run: &Run, sent: bool) -> u64 {
    let of = |sample: &linerate_measure::Sample| if sent { sample.sent } else { sample.received };
    run.samples.iter().filter_map(of).map(|traffic| traffic.bytes).sum()
}

/// Standard error without what a busy machine makes doubtful.
fn undoubted(stderr: &str) -> String {
    stderr.lines().filter(|line| !line.starts_with("netperf: DOUBTFUL: ")).collect()
}

const FIGURES: &str = "THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,\
                       REMOTE_BYTES_RECVD,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,LOCAL_SD";

#[test]
fn documents_agree_with_what_was_printed() {
    let server = Netserver::start("");
    for (test, kind) in [
        ("TCP_STREAM", "stream"),
        ("TCP_MAERTS", "stream"),
        ("TCP_SENDFILE", "stream"),
        ("TCP_RR", "rr"),
        ("TCP_CRR", "connect"),
        ("TCP_CC", "connect"),
        ("UDP_STREAM", "stream"),
        ("UDP_RR", "rr"),
        ("OMNI", "stream"),
    ] {
        let (ended, run) =
            documented(Some(&server), &format!("-P 0 -t {test} -l 1 -c -C -- -k {FIGURES}"));
        assert_eq!((ended.exit_code, undoubted(&ended.stderr)), (0, String::new()), "{test}");
        assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Complete, 0), "{test}");
        let out = &ended.stdout;
        let printed = |name: &str| value(out, name).parse::<f64>().unwrap();
        let (client, netserver) = (report(&run, Role::Client), report(&run, Role::Server));
        let own = totals(client);
        assert_eq!(format!("{:.2}", own.throughput.unwrap()), value(out, "THROUGHPUT"), "{test}");
        assert_eq!(own.throughput_units.as_deref(), Some(&*value(out, "THROUGHPUT_UNITS")));
        let percent = |totals: &EndTotals| format!("{:.2}", totals.cpu_util_percent.unwrap());
        assert_eq!(percent(own), value(out, "LOCAL_CPU_UTIL"), "{test}");
        assert_eq!(percent(totals(netserver)), value(out, "REMOTE_CPU_UTIL"), "{test}");
        assert_eq!(format!("{:.3}", own.service_demand_us.unwrap()), value(out, "LOCAL_SD"));
        let elapsed_s = client.elapsed_ns as f64 / 1e9;
        assert!((elapsed_s - printed("ELAPSED_TIME")).abs() < 0.006, "{test}: {elapsed_s}");
        let named = match run.plan.workload.kind {
            Kind::Stream { send_bytes, .. } => ("stream", send_bytes > 0),
            Kind::Rr { request_bytes, .. } => ("rr", request_bytes == 1),
            Kind::Connect { request_bytes, .. } => {
                ("connect", request_bytes == u32::from(test == "TCP_CRR"))
            }
        };
        assert_eq!(named, (kind, true), "{test}");
        let flow = |report: &EndReport| report.flows.first().unwrap().clone();
        let (ours, theirs) = (flow(client), flow(netserver));
        for (name, traffic) in [
            ("LOCAL_BYTES_SENT", ours.sent),
            ("LOCAL_BYTES_RECVD", ours.received),
            ("REMOTE_BYTES_SENT", theirs.sent),
            ("REMOTE_BYTES_RECVD", theirs.received),
        ] {
            let bytes = traffic.map_or(0, |traffic| traffic.bytes);
            assert_eq!(bytes as f64, printed(name), "{test}: {name}");
        }
        // What moves in less than a twentieth of an interval at the end is in no sample.
        for (sent, name) in [(true, "LOCAL_BYTES_SENT"), (false, "LOCAL_BYTES_RECVD")] {
            let (sampled, printed) = (sampled(&run, sent) as f64, printed(name));
            assert!(sampled <= printed && sampled >= 0.9 * printed, "{test}: {sampled} {printed}");
        }
        assert!(run.environment.started_utc_ns.is_some(), "{test}");
        let rate = match kind {
            "stream" => run.summary.goodput_bps.unwrap() / 1e6,
            "rr" => run.summary.transactions_per_s.unwrap(),
            _ => run.summary.connections_per_s.unwrap(),
        };
        let apart = (rate / printed("THROUGHPUT") - 1.0).abs();
        assert!(apart < 0.05, "{test}: {rate} in the summary: {out}");
        assert!(matches!(ours.extension, Some(FlowExtension::Netperf(_))), "{test}");
        let words = run.options.unwrap().command_line;
        assert_eq!((words[0].as_str(), words[5].as_str()), ("netperf", "-P"), "{words:?}");
    }
}

/// The paths of texts that are empty and of addresses that say nothing.
fn empty_values(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if matches!(text.as_str(), "" | "0.0.0.0:0" | "[::]:0") => {
            found.push(format!("{path}: {text:?}"));
        }
        Value::Array(all) => {
            for (index, one) in all.iter().enumerate() {
                empty_values(one, &format!("{path}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, one) in fields {
                empty_values(one, &format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn unmeasured_figures_are_absent() {
    let server = Netserver::start("");
    for test in ["TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "TCP_CC", "UDP_STREAM", "UDP_RR"]
    {
        let addresses = "SOURCE_ADDR,SOURCE_PORT,SOURCE_FAMILY,DEST_ADDR";
        let (ended, run) =
            documented(Some(&server), &format!("-P 0 -t {test} -l 1 -- -k {addresses}"));
        let mut empty = Vec::new();
        empty_values(&serde_json::to_value(&run.reports).unwrap(), "", &mut empty);
        assert!(empty.is_empty(), "{test}: {empty:?}");
        let flow = |role| report(&run, role).flows.first().unwrap().clone();
        let (ours, theirs) = (flow(Role::Client), flow(Role::Server));
        let Some(FlowExtension::Netperf(counted)) = theirs.extension else { panic!("{theirs:?}") };
        let has_transactions = run.summary.transactions.is_some();
        assert_eq!(counted.transactions.is_some(), has_transactions, "{test}: {theirs:?}");
        let (ours, theirs) = (ours.socket.unwrap(), theirs.socket.unwrap());
        let connects = matches!(run.plan.workload.kind, Kind::Connect { .. });
        assert_eq!(theirs.peer, ours.local, "{test}");
        assert_eq!(ours.local.is_none(), connects, "{test}: {ours:?}");
        assert_eq!(ours.send_buffer_bytes.is_none(), connects, "{test}: {ours:?}");
        assert_ne!(theirs.send_buffer_bytes, Some(0), "{test}: {theirs:?}");
        // What is printed stays the original's.
        let printed = |name: &str| value(&ended.stdout, name);
        let source = (printed("SOURCE_ADDR"), printed("SOURCE_FAMILY"));
        let shown = if connects { "0.0.0.0" } else { "127.0.0.1" };
        assert_eq!(source, (shown.to_owned(), "2".to_owned()), "{test}");
        assert_eq!(printed("SOURCE_PORT") == "0", connects, "{test}");
    }
}

#[test]
fn datagrams_that_the_server_missed_are_lost() {
    let server = Netserver::start("");
    let figures = "LOCAL_SEND_CALLS,REMOTE_RECV_CALLS";
    let (ended, run) =
        documented(Some(&server), &format!("-P 0 -t UDP_STREAM -l 1 -- -m 1000 -k {figures}"));
    let told = run.summary.datagrams.unwrap();
    let printed = |name: &str| value(&ended.stdout, name).parse::<u64>().unwrap();
    assert_eq!(told.sent.unwrap(), printed("LOCAL_SEND_CALLS"));
    assert_eq!(told.received.unwrap(), printed("REMOTE_RECV_CALLS"));
    assert_eq!(told.lost.unwrap(), told.sent.unwrap() - told.received.unwrap());
}

#[test]
fn transactions_and_latencies_are_those_of_the_test() {
    let server = Netserver::start("");
    for test in ["TCP_RR", "UDP_RR", "TCP_CRR"] {
        let figures = "MEAN_LATENCY,P50_LATENCY,MAX_LATENCY";
        let (ended, run) =
            documented(Some(&server), &format!("-P 0 -t {test} -l -200 -- -k {figures}"));
        assert_eq!(run.summary.transactions, Some(200), "{test}");
        let sampled: u64 = run.samples.iter().filter_map(|sample| sample.transactions).sum();
        assert_eq!(sampled, 200, "{test}: {:?}", run.samples);
        let latency = run.summary.latency_ns.unwrap();
        let printed = |name: &str| value(&ended.stdout, name).parse::<f64>().unwrap();
        assert!((latency.mean / 1e3 / printed("MEAN_LATENCY") - 1.0).abs() < 0.01, "{test}");
        assert!((latency.max as f64 / 1e3 / printed("MAX_LATENCY") - 1.0).abs() < 0.01, "{test}");
    }
}

#[test]
fn intervals_are_those_of_interim_results() {
    let server = Netserver::start("");
    let (ended, run) = documented(Some(&server), "-P 0 -t TCP_STREAM -l 1 -D 0.2");
    let interim = ended.stdout.lines().filter(|line| line.starts_with("Interim result")).count();
    assert!(interim >= 4, "{}", ended.stdout);
    assert_eq!(run.samples.len(), interim);
    assert_eq!(run.plan.workload.interval_ns, 200_000_000);
    assert!(run.samples.is_sorted_by_key(|sample| (sample.index, sample.from_ns)));
}

#[test]
fn means_of_several_tests_stand_beside_the_last_ones_figures() {
    let server = Netserver::start("");
    let (ended, run) =
        documented(Some(&server), "-P 0 -t TCP_RR -l -100 -i 3,3 -I 99,5 -- -k THROUGHPUT");
    let own = totals(report(&run, Role::Client));
    assert_eq!(own.iterations, Some(3));
    assert!(own.confidence_width_percent.is_some());
    assert_eq!(format!("{:.2}", own.throughput.unwrap()), value(&ended.stdout, "THROUGHPUT"));
    assert_eq!(run.summary.transactions, Some(100));
    assert!(run.status.notes.iter().any(|note| note.contains("the last of 3 tests")));
}

#[test]
fn every_iteration_has_its_samples_and_reports() {
    let server = Netserver::start("");
    for test in ["TCP_RR -l -100", "TCP_STREAM -l 1", "UDP_STREAM -l 1"] {
        let options = format!("-P 0 -t {test} -i 3,3 -I 99,5 -- -k THROUGHPUT,ELAPSED_TIME");
        let (ended, run) = documented(Some(&server), &options);
        assert_eq!(run.earlier_iterations.len(), 2, "{test}");
        let last = (run.environment.started_utc_ns, &run.samples, &run.reports);
        let iterations = run
            .earlier_iterations
            .iter()
            .map(|earlier| (earlier.started_utc_ns, &earlier.samples, &earlier.reports))
            .chain([last]);
        let (mut began, mut lengths_s, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for (started_utc_ns, samples, reports) in iterations {
            assert!(!samples.is_empty() && samples[0].from_ns == 0, "{test}");
            let [client, netserver] = &reports[..] else { panic!("{test}: {reports:?}") };
            assert_eq!((client.role, netserver.role), (Role::Client, Role::Server));
            began.push(started_utc_ns.unwrap());
            lengths_s.push(client.elapsed_ns as f64 / 1e9);
            results.push(totals(client).throughput.unwrap());
        }
        assert!(began.is_sorted(), "{test}: {began:?}");
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let printed = |name: &str| value(&ended.stdout, name).parse::<f64>().unwrap();
        assert!((mean(&lengths_s) - printed("ELAPSED_TIME")).abs() < 0.006, "{test}");
        let own = totals(&run.reports[0]);
        assert_eq!(own.iteration_throughputs[..2], results[..2], "{test}");
        assert!((mean(&own.iteration_throughputs) - results[2]).abs() < 1e-6 * results[2]);
        assert!((printed("THROUGHPUT") - results[2]).abs() < 0.006, "{test}");
    }
}

#[test]
fn an_iteration_that_is_cut_off_leaves_those_before_it() {
    let server = Netserver::start("");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.json");
    let mut child = begun(&server, &path, "-t UDP_STREAM -l 1 -i 30,30 -D 0.1");
    std::thread::sleep(Duration::from_millis(1500));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let run = read(&path);
    assert_eq!(run.status.outcome, Outcome::Interrupted);
    let own = totals(report(&run, Role::Client));
    let made = own.iterations.unwrap() as usize;
    assert_eq!(run.earlier_iterations.len() + 1, made, "{own:?}");
    assert!(!run.samples.is_empty());
}

#[test]
fn output_is_the_same_with_a_document_and_without() {
    let server = Netserver::start("");
    let options = "-t TCP_STREAM -l -100000 -- -m 1000 -s 65536 -S 65536";
    let plain = server.netperf(options).stdout;
    let (ended, _) = documented(Some(&server), options);
    let shape = |text: &str| {
        text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>()
    };
    let lines = |text: &str| text.lines().take(6).map(shape).collect::<Vec<_>>();
    assert_eq!(lines(&ended.stdout), lines(&plain));
    assert_eq!(undoubted(&ended.stderr), "");
}

#[test]
fn a_test_that_has_no_server_leaves_a_failure() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (ended, run) = documented(None, &format!("-H 127.0.0.1 -p {closed} -t TCP_RR -l 1"));
    assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Failed, 255));
    assert_eq!(ended.exit_code, 255);
    assert_eq!(run.status.message.as_deref(), Some(ended.stdout.trim_end()));
    assert!(run.samples.is_empty() && run.reports.is_empty());
    assert_eq!(run.plan.port, closed);
}

#[test]
fn a_test_that_is_refused_leaves_a_failure_without_the_passphrase() {
    let server = Netserver::start("-Z open");
    for options in ["-Z wrongest -l 1", "-Zwrongest -l 1"] {
        let (ended, run) = documented(Some(&server), options);
        assert_eq!((run.status.outcome, ended.exit_code), (Outcome::Failed, 255), "{options}");
        let why = run.status.message.clone().unwrap();
        assert_eq!(ended.stderr, format!("netperf: {why}\n"));
        assert!(!serde_json::to_string(&run).unwrap().contains("wrongest"), "{options}");
    }
}

/// Starts a test with records, and waits for its first sample.
fn begun(server: &Netserver, path: &Path, options: &str) -> Child {
    let mut child = at(Some(server), options)
        .env("LINERATE_RUN_DOCUMENT", path)
        .env("LINERATE_RUN_RECORDS", path.with_extension("lines"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = path.with_extension("lines");
    let has_sample = || fs::read_to_string(&lines).is_ok_and(|text| text.contains("\"sample\""));
    while !has_sample() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its first sample");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn a_test_that_is_interrupted_leaves_what_was_counted() {
    let server = Netserver::start("");
    for options in ["-t TCP_STREAM -l 60", "-t TCP_RR -l 0", "-t TCP_MAERTS -l 60"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        let mut child = begun(&server, &path, &format!("{options} -D 0.1"));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{options}");
        let run = read(&path);
        let status = &run.status;
        assert_eq!((status.outcome, status.exit_code), (Outcome::Interrupted, 0), "{options}");
        let flow = report(&run, Role::Client).flows.first().unwrap().clone();
        let bytes = flow.sent.or(flow.received).unwrap().bytes;
        let sampled = sampled(&run, !options.contains("MAERTS"));
        assert!(0 < sampled && sampled <= bytes, "{options}: {sampled} of {bytes}");
        let records = fs::read_to_string(path.with_extension("lines")).unwrap();
        let records: Vec<Record> =
            records.lines().map(|line| Record::parse(line).unwrap().unwrap()).collect();
        assert!(matches!(records.first(), Some(Record::Started { .. })), "{options}");
        let Some(Record::Finished { run: last, .. }) = records.last() else {
            panic!("{records:?}")
        };
        assert_eq!(**last, run, "{options}");
    }
}

#[test]
fn a_test_whose_server_dies_leaves_a_failure_with_its_samples() {
    for options in ["-t TCP_STREAM -l 60", "-t TCP_RR -l 60", "-t TCP_MAERTS -l 60"] {
        let server = Netserver::start("");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        let mut child = begun(&server, &path, &format!("{options} -D 0.1"));
        drop(server);
        let code = child.wait().unwrap().code();
        assert_ne!(code, Some(0), "{options}");
        let run = read(&path);
        assert_eq!(Some(i32::from(run.status.exit_code)), code, "{options}");
        assert!(matches!(run.status.outcome, Outcome::Failed | Outcome::Untrustworthy));
        assert!(run.status.message.is_some_and(|why| !why.is_empty()), "{options}");
        assert!(!run.samples.is_empty(), "{options}");
    }
}

#[test]
fn a_document_has_the_exit_code_of_lost_output() {
    let server = Netserver::start("");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.json");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = at(Some(&server), "-l 1");
    command.env("LINERATE_RUN_DOCUMENT", &path).stdout(full).stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(1));
    let run = read(&path);
    assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Complete, 1));
}

#[test]
fn a_path_that_cant_be_written_ends_before_the_test() {
    let server = Netserver::start("");
    let mut command = at(Some(&server), "-l 1");
    let ended = ended(command.env("LINERATE_RUN_DOCUMENT", "/no/such/directory/run.json"));
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.starts_with("netperf: LINERATE_RUN_DOCUMENT: can't write "));
}
