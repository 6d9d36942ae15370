//! The run documents that a netserver leaves, one for each test, against what its client printed.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_measure::dialect::netperf::End;
use linerate_measure::record::Record;
use linerate_measure::schema::{self, unknown_fields::unknown_fields};
use linerate_measure::{Dialect, Kind, Outcome, Role, Run};
use tempfile::TempDir;

use super::server_process::{Netserver, value};

const DOCUMENT: &str = "LINERATE_RUN_DOCUMENT";
const RECORDS: &str = "LINERATE_RUN_RECORDS";
/// A document is there this long after its test at the latest.
const PATIENCE: Duration = Duration::from_secs(20);

/// A netserver that leaves documents in a directory of its own.
fn documenting(options: &str) -> (Netserver, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let variables = [(DOCUMENT, directory.path())];
    (Netserver::start_with("-4 -L 127.0.0.1", options, &variables), directory)
}

fn documents(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_str().unwrap().ends_with(".server.json")).collect()
}

/// Takes the one document that is in the directory, or comes into it.
fn take(directory: &Path) -> Run {
    let began = Instant::now();
    let path = loop {
        match &documents(directory)[..] {
            [path] => break path.clone(),
            [] => assert!(began.elapsed() < PATIENCE, "there is no document"),
            several => panic!("{several:?}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(unknown_fields(&schema::run(), &written), []);
    let run: Run = serde_json::from_value(written).unwrap();
    assert_eq!((run.dialect, run.written_by), (Dialect::Netperf, Role::Server));
    assert!(path.ends_with(format!("{}.server.json", run.run_id)), "{path:?}");
    assert!(!run.environment.server.as_ref().unwrap().kernel.is_empty());
    run
}

const FIGURES: &str = "REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD,REMOTE_SEND_CALLS,REMOTE_RECV_CALLS,REMOTE_CPU_UTIL,\
                       RSS_SIZE_END,RSR_SIZE_END,REMOTE_SEND_SIZE,REMOTE_RECV_SIZE,REMOTE_CONG_CONTROL";

#[test]
fn documents_of_a_server_agree_with_what_its_client_printed() {
    let (server, directory) = documenting("");
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
        let printed = server.netperf(&format!("-P 0 -t {test} -l 1 -C -- -k {FIGURES}")).stdout;
        let run = take(directory.path());
        assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Complete, 0), "{test}");
        let [report] = &run.reports[..] else { panic!("{test}: {:?}", run.reports) };
        let (end, settings) = (End::of(report), End::of(report).settings());
        assert_eq!(report.role, Role::Server);
        let count = |name: &str| value(&printed, name).parse::<i64>().unwrap();
        let same = |ours: u64, name: &str| assert_eq!(ours as i64, count(name), "{test}: {name}");
        same(end.bytes_sent(), "REMOTE_BYTES_SENT");
        same(end.bytes_received(), "REMOTE_BYTES_RECVD");
        same(end.send_calls(), "REMOTE_SEND_CALLS");
        same(end.receive_calls(), "REMOTE_RECV_CALLS");
        let size = |size: Option<u32>| size.map_or(-1, i64::from);
        assert_eq!(size(settings.send_buffer.at_end), count("RSS_SIZE_END"), "{test}");
        assert_eq!(size(settings.receive_buffer.at_end), count("RSR_SIZE_END"), "{test}");
        assert_eq!(size(settings.send_bytes), count("REMOTE_SEND_SIZE"), "{test}");
        assert_eq!(size(settings.receive_bytes), count("REMOTE_RECV_SIZE"), "{test}");
        let util_percent = end.cpu().unwrap().util_percent;
        assert!(
            (util_percent - value(&printed, "REMOTE_CPU_UTIL").parse::<f64>().unwrap()).abs()
                < 0.006
        );
        let named = match run.plan.workload.kind {
            Kind::Stream { .. } => "stream",
            Kind::Rr { .. } => "rr",
            Kind::Connect { .. } => "connect",
        };
        assert_eq!(named, kind, "{test}");
        assert!(run.environment.started_utc_ns.is_some() && !run.samples.is_empty(), "{test}");
        let sampled: u64 =
            run.samples.iter().filter_map(|s| s.received).map(|traffic| traffic.bytes).sum();
        let received = end.bytes_received();
        assert!(
            sampled <= received && sampled as f64 >= 0.9 * received as f64,
            "{test}: {sampled}"
        );
        assert!((0.8e9..2.5e9).contains(&(report.elapsed_ns as f64)), "{test}");
    }
}

#[test]
fn a_test_that_the_server_refuses_leaves_a_failure() {
    let (server, directory) = documenting("-Z sesame");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let ended = server.netperf(&format!("-Z sesame -l 1 -- -P ,{port}"));
    assert_ne!(ended.exit_code, 0);
    let run = take(directory.path());
    assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Failed, 1));
    assert!(run.status.message.as_ref().unwrap().contains("address already in use"), "{run:?}");
    assert!(run.reports.is_empty() && run.samples.is_empty());
    assert!(!serde_json::to_string(&run).unwrap().contains("sesame"));
}

/// Waits until the file has as many samples.
fn await_samples(path: &Path, count: usize) {
    let began = Instant::now();
    let samples = || fs::read_to_string(path).unwrap_or_default().matches("\"sample\"").count();
    while samples() < count {
        assert!(began.elapsed() < PATIENCE, "the test has no samples");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_test_that_is_cut_off_leaves_what_was_counted() {
    for (options, stops_server) in [
        ("-t TCP_STREAM", false),
        ("-t TCP_RR", false),
        ("-t UDP_STREAM", true),
        ("-t TCP_MAERTS", true),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let records = directory.path().join("records");
        let variables = [(DOCUMENT, directory.path()), (RECORDS, &*records)];
        let mut server = Netserver::start_with("-4 -L 127.0.0.1", "", &variables);
        let mut client = server.start_netperf(&format!("{options} -l 60"));
        await_samples(&records, 1);
        if stops_server {
            server.stop();
        }
        client.kill().unwrap();
        client.wait().unwrap();
        let run = take(directory.path());
        let status = &run.status;
        assert_eq!((status.outcome, status.exit_code), (Outcome::Interrupted, 1), "{options}");
        assert!(status.message.is_some(), "{options}");
        let end = End::of(&run.reports[0]);
        assert!(end.bytes_moved() > 0 && !run.samples.is_empty(), "{options}");
        server.stop();
        let lines = fs::read_to_string(&records).unwrap();
        let lines: Vec<Record> =
            lines.lines().map(|line| Record::parse(line).unwrap().unwrap()).collect();
        assert!(matches!(lines.first(), Some(Record::Started { .. })), "{options}");
        assert!(
            matches!(lines.last(), Some(Record::Finished { run: last, .. }) if **last == run),
            "{options}"
        );
    }
}

#[test]
fn a_server_whose_documents_have_no_place_does_not_start() {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["netserver", "-D", "-p", "0"])
        .env(DOCUMENT, "/no/such/directory/run.json")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("netserver: LINERATE_RUN_DOCUMENT: can't write "), "{told}");
}
