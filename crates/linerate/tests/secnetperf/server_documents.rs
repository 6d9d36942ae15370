//! The run documents that servers leave, beside those of their clients.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use linerate_measure::{FlowReport, Kind, Outcome, Role, Run, Sample, Transport};

use super::documents::{assert_near, documented, read, totals};
use super::fixture::{LIMIT, Server};

/// The names in a directory.
fn names(directory: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The document that appears beside these.
fn next(directory: &Path, known: &BTreeSet<PathBuf>) -> Run {
    let end = Instant::now() + LIMIT;
    loop {
        let is_document = |path: &&PathBuf| path.to_string_lossy().ends_with(".server.json");
        let now = names(directory);
        if let Some(path) = now.difference(known).find(is_document) {
            let run = read(path);
            assert!(path.ends_with(format!("{}.server.json", run.run_id)));
            assert_eq!(run.written_by, Role::Server);
            return run;
        }
        assert!(Instant::now() < end, "no document in {directory:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn bytes(run: &Run, of: fn(&FlowReport) -> Option<u64>) -> Option<u64> {
    run.reports[0].flows.iter().filter_map(of).reduce(|a, b| a + b)
}

fn sent(flow: &FlowReport) -> Option<u64> {
    flow.sent.map(|sent| sent.bytes)
}

fn received(flow: &FlowReport) -> Option<u64> {
    flow.received.map(|received| received.bytes)
}

/// A server's samples have all that its report has.
fn assert_samples_add_up(run: &Run) {
    assert_eq!((run.samples[0].role, run.samples[0].from_ns), (Role::Server, 0));
    let sum =
        |of: fn(&Sample) -> Option<u64>| run.samples.iter().filter_map(of).reduce(|a, b| a + b);
    assert_eq!(sum(|sample| sample.sent.map(|sent| sent.bytes)), bytes(run, sent));
    assert_eq!(sum(|sample| sample.received.map(|got| got.bytes)), bytes(run, received));
}

#[test]
fn a_server_leaves_a_document_of_each_clients_test() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::documenting("", directory.path());
    for (carriage, transport) in [("", Transport::Quic), ("-tcp:1", Transport::Tls)] {
        let both = |words: &str| {
            let known = names(directory.path());
            let (ended, client) = documented(&server.words(&format!("{carriage} {words}")));
            assert_eq!(ended.exit_code, 0, "{}", ended.stdout);
            let run = next(directory.path(), &known);
            assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Complete, 0));
            assert_eq!(run.plan.workload.transport, transport);
            // Those that are under way at the end of a run may count at the server alone.
            let connections = [&run, &client].map(|run| totals(run).connections.unwrap());
            let under_way = if words.contains("-rconn:1") { 2 } else { 0 };
            assert!(
                connections[0].abs_diff(connections[1]) <= under_way,
                "{connections:?} {words}"
            );
            assert_eq!(run.plan.workload.direction(), client.plan.workload.direction(), "{words}");
            assert_eq!(run.reports.len(), 1);
            assert!(run.plan.workload.flows <= 4, "{:?}", run.plan.workload);
            assert_samples_add_up(&run);
            (run, client)
        };
        let (run, client) = both("-up:1mb");
        assert_eq!(bytes(&run, received), Some(1_000_000));
        assert_eq!(bytes(&run, received), bytes(&client, sent));
        let (run, client) = both("-down:1mb -conns:3");
        assert_eq!(bytes(&run, sent), Some(3_000_000));
        assert_eq!(bytes(&run, sent), bytes(&client, received));
        let (run, _) = both("-up:1500ms");
        assert!(bytes(&run, received) > Some(1_000_000) && run.samples.len() >= 2);
        let (run, _) = both("-down:500ms");
        assert!(bytes(&run, sent) > Some(1_000_000));
        let (run, client) = both("-up:512 -down:4000 -rstream:1 -run:1s");
        assert!(matches!(run.plan.workload.kind, Kind::Rr { .. }), "{:?}", run.plan.workload);
        // The last is cut off by the client's end.
        let streams = |run| totals(run).streams.unwrap() as f64;
        assert_near("streams", streams(&run), streams(&client) + 1.0, 0.02);
        // Over QUIC such connections are closed before the server has seen them stand.
        if transport == Transport::Tls {
            let (run, _) = both("-conns:2 -rconn:1 -run:1s");
            assert!(matches!(run.plan.workload.kind, Kind::Connect { .. }));
        }
    }
}

#[test]
fn a_server_that_is_stopped_leaves_what_was_counted() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::documenting("", directory.path());
    let words = server.words("-down:60s");
    let client = super::fixture::command(&words).stdout(std::process::Stdio::null()).spawn();
    let mut client = client.unwrap();
    thread::sleep(Duration::from_secs(1));
    server.stop();
    client.wait().unwrap();
    let run = next(directory.path(), &BTreeSet::new());
    assert_eq!(run.status.outcome, Outcome::Interrupted);
    assert!(bytes(&run, sent) > Some(0), "{:?}", run.reports);
}
