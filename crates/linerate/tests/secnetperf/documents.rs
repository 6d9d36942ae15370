//! The run documents that clients leave, against what they print.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_measure::dialect::EndExtension;
use linerate_measure::dialect::perf::EndTotals;
use linerate_measure::{Dialect, FlowReport, Kind, Outcome, Run, Sample, Transport};
use rustix::process::{Pid, Signal, kill_process};

use super::fixture::{Ended, Server, command, wait};

/// The document at a path. It is the format's, with no field that readers don't know.
pub(crate) fn read(path: &Path) -> Run {
    let text = fs::read_to_string(path).unwrap();
    let run: Run = serde_json::from_str(&text).unwrap();
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(&run).unwrap(), written);
    assert_eq!(run.dialect, Dialect::Perf);
    assert_eq!(run.options.as_ref().unwrap().command_line[0], "secnetperf");
    run
}

pub(crate) fn documenting(words: &str, path: &Path) -> Command {
    let mut command = command(words);
    command.env("LINERATE_RUN_DOCUMENT", path).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Runs a client; what it said, and its document.
pub(crate) fn documented(words: &str) -> (Ended, Run) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.json");
    let ended = wait(documenting(words, &path).spawn().unwrap(), words);
    (ended, read(&path))
}

pub(crate) fn totals(run: &Run) -> EndTotals {
    match run.reports.first().and_then(|report| report.extension.clone()) {
        Some(EndExtension::Perf(totals)) => totals,
        other => panic!("{other:?}"),
    }
}

/// The number before this word in a line of results.
fn printed(ended: &Ended, word: &str) -> f64 {
    let mut words = ended.stdout.split_whitespace().peekable();
    let found = std::iter::from_fn(|| {
        let number = words.next()?;
        Some((number, words.peek().copied().unwrap_or_default()))
    })
    .find(|(_, next)| next.trim_end_matches(',') == word);
    let (number, _) = found.unwrap_or_else(|| panic!("no {word} in {}", ended.stdout));
    number.parse().unwrap()
}

pub(crate) fn assert_near(what: &str, ours: f64, theirs: f64, share: f64) {
    assert!((ours / theirs - 1.0).abs() < share, "{what}: {ours} is not {theirs}");
}

/// Samples follow each other without a gap, and have all that the client's report has.
fn assert_samples_add_up(run: &Run) {
    assert_eq!(run.samples[0].from_ns, 0);
    for (before, after) in run.samples.iter().zip(&run.samples[1..]) {
        assert_eq!((before.to_ns, before.index + 1), (after.from_ns, after.index));
    }
    let flows = &run.reports[0].flows;
    let all = |figure: fn(&FlowReport) -> Option<u64>| flows.iter().find_map(figure);
    let sum = |figure: fn(&Sample) -> Option<u64>| {
        run.samples.iter().filter_map(figure).reduce(|a, b| a + b)
    };
    let sent = (
        |sample: &Sample| sample.sent.map(|sent| sent.bytes),
        |flow: &FlowReport| flow.sent.map(|sent| sent.bytes),
    );
    assert_eq!(sum(sent.0), all(sent.1));
    let received = (
        |sample: &Sample| sample.received.map(|came| came.bytes),
        |flow: &FlowReport| flow.received.map(|came| came.bytes),
    );
    assert_eq!(sum(received.0), all(received.1));
    assert_eq!(sum(|sample| sample.transactions), all(|flow| flow.transactions));
}

#[test]
fn documents_agree_with_what_was_printed() {
    let server = Server::start("");
    for (carriage, transport) in [("", Transport::Quic), ("-tcp:1", Transport::Tls)] {
        let run = |words: &str| {
            let (ended, run) = documented(&server.words(&format!("{carriage} {words}")));
            assert_eq!(ended.exit_code, 0, "{}", ended.stdout);
            assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Complete, 0));
            assert_eq!(run.plan.workload.transport, transport);
            assert!(run.environment.started_utc_ns.is_some());
            assert_samples_add_up(&run);
            assert!(run.reports[0].waiting.is_some() && run.reports[0].cpu.is_some());
            (ended, run)
        };
        for (words, is_up) in [("-up:1s -ptput:1", true), ("-down:1s -ptput:1", false)] {
            let (ended, run) = run(words);
            let own = totals(&run);
            let rates = if is_up { own.upload_rates_kbps } else { own.download_rates_kbps };
            assert_eq!(rates.unwrap() as f64, printed(&ended, "kbps."), "{words}");
            assert_near(words, run.summary.goodput_bps.unwrap() / 1e3, rates.unwrap() as f64, 0.2);
            assert!(matches!(run.plan.workload.kind, Kind::Stream { .. }), "{words}");
        }
        let words = "-up:512 -down:4000 -rstream:1 -run:1s -prate:1 -plat:1";
        let (ended, rps) = run(words);
        assert_near(words, rps.summary.transactions_per_s.unwrap(), printed(&ended, "RPS"), 0.1);
        assert_eq!(totals(&rps).streams, rps.summary.transactions);
        let latency = rps.summary.latency_ns.unwrap();
        assert_eq!(Some(latency.count), totals(&rps).streams);
        let exact = totals(&rps).latency_us.unwrap();
        let line = format!("0th: {}, 50th: {}, 90th: {},", exact.min, exact.p50, exact.p90);
        assert!(ended.stdout.contains(&line), "{line} {}", ended.stdout);
        assert!(matches!(
            rps.plan.workload.kind,
            Kind::Rr { request_bytes: 512, response_bytes: 4000, .. }
        ));
        let words = "-conns:4 -rconn:1 -run:1s -prate:1";
        let (ended, hps) = run(words);
        assert_near(words, hps.summary.connections_per_s.unwrap(), printed(&ended, "HPS"), 0.1);
        assert_eq!(totals(&hps).connections, hps.summary.transactions);
    }
}

#[test]
fn run_document_does_not_change_the_output() {
    let server = Server::start("");
    for words in ["-up:1000 -down:1000 -plat:1 -ptput:1", "-down:1000", "-up:10 -json"] {
        let words = server.words(words);
        let plain = super::fixture::run(&words);
        let (ended, _) = documented(&words);
        let shape = super::fixture::without_numbers;
        assert_eq!(shape(&ended.stdout), shape(&plain.stdout));
    }
}

#[test]
fn a_client_without_a_server_leaves_a_failure() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (ended, run) = documented(&format!("-target:127.0.0.1 -port:{closed} -tcp:1 -down:1s"));
    assert_eq!(ended.exit_code, 111);
    assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Failed, 111));
    assert_eq!(run.status.message.as_deref(), Some("no connection was established"));
    let (ended, run) = documented("-target:no.such.host.invalid -down:1s");
    assert_eq!(run.status.outcome, Outcome::Failed);
    assert_eq!(i32::from(run.status.exit_code), ended.exit_code);
    assert_eq!(run.status.message.as_deref(), Some("Failed to resolve remote address!"));
}

#[test]
fn an_interrupted_client_leaves_what_was_counted() {
    let server = Server::start("");
    for carriage in ["", "-tcp:1"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        let words = server.words(&format!("{carriage} -down:60s -ptput:1"));
        let child = documenting(&words, &path).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(wait(child, &words).exit_code, 130, "{carriage}");
        let run = read(&path);
        assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Interrupted, 130));
        assert!(run.summary.received_bytes.unwrap() > 0, "{carriage}");
    }
}

#[test]
fn a_client_whose_server_dies_leaves_an_untrustworthy_run() {
    for carriage in ["", "-tcp:1"] {
        let mut server = Server::start("");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        let words = server.words(&format!("{carriage} -down:5s -ptput:1"));
        let child = documenting(&words, &path).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        server.child.kill().unwrap();
        let ended = wait(child, &words);
        assert_ne!(ended.exit_code, 0, "{carriage}");
        let run = read(&path);
        assert_eq!(run.status.outcome, Outcome::Untrustworthy, "{carriage}: {:?}", run.status);
        assert_eq!(i32::from(run.status.exit_code), ended.exit_code, "{carriage}");
        assert!(totals(&run).broken_off.unwrap() > 0, "{carriage}");
        assert!(run.status.message.is_some_and(|why| why.contains("broke off")), "{carriage}");
    }
}

#[test]
fn a_document_has_the_exit_code_of_lost_output() {
    let server = Server::start("");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.json");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = documenting(&server.words("-exec:maxtput -up:1mb"), &path);
    assert_eq!(command.stdout(full).status().unwrap().code(), Some(5));
    let run = read(&path);
    assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Complete, 5));
}
