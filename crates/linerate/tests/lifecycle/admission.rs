//! Admission of tests, as users see it.

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use crate::ends::{Client, Ended, Server, holds_within};

/// The client is turned away with exit code 5 and a sentence that has these words.
#[track_caller]
fn assert_busy(ended: &Ended, words: &[&str]) {
    let document = ended.document(5);
    assert_eq!(document.outcome(), "failed");
    for word in words {
        assert!(document.message().contains(word), "no {word:?} in: {}", document.message());
        assert!(ended.stderr.contains(word), "no {word:?} in: {}", ended.stderr);
    }
}

#[test]
fn as_many_tests_as_the_server_allows() {
    let server = Server::start("--max-tests 2");
    let running = ["stream", "rr"].map(|load| server.start_client(&format!("{load} --time 2s")));
    server.await_record("test_started");
    server.await_record("test_started");
    let began = Instant::now();
    assert_busy(&server.measure("rr --count 1"), &["2 tests run", "--max-tests", "--exclusive"]);
    assert!(began.elapsed() < Duration::from_secs(2));
    let refused = server.await_record("refused");
    assert!(refused["why"].as_str().unwrap().contains("2 tests run"), "{refused}");
    for client in running {
        client.finish().document(0);
    }
    server.measure("rr --count 1").document(0);
}

#[test]
fn tests_beyond_the_servers_limits_are_refused() {
    let server = Server::start("--max-rate 100M --max-time 2s");
    for (words, sentence) in [
        ("stream --time 1s", &["100 Mbit/s", "ask for a --rate"][..]),
        ("stream --time 1s --rate 101M", &["101 Mbit/s", "100 Mbit/s", "lower --rate"]),
        ("stream --time 1s --rate 51M --both", &["102 Mbit/s", "lower --rate"]),
        ("stream --time 1s --rate-per-flow 51M --flows 2", &["102 Mbit/s"]),
        ("stream --time 3s --rate 1M", &["3.00 s", "2.00 s", "--time"]),
        ("stream --time 1500ms --omit 1s --rate 1M", &["2.50 s", "2.00 s", "--time"]),
        ("rr --time 3s", &["3.00 s", "--time"]),
        ("rr --time 1s --response 16Mi --flows 8", &["100 Mbit/s", "--rate, up to 0.745 requests"]),
        ("rr --time 1s --size 1Ki --rate 10k", &["164 Mbit/s", "--rate, up to 6103 requests"]),
        ("rr --udp --count 10", &["100 Mbit/s", "ask for a --rate"]),
        ("connect --time 1s --response 1Mi", &["100 Mbit/s", "--rate, up to 11 connections"]),
        ("connect --quic --time 1s", &["100 Mbit/s", "ask for a --rate"]),
    ] {
        assert_busy(&server.measure(words), sentence);
    }
    server.measure("stream --time 300ms --rate 100M").document(0);
    server.measure("rr --time 300ms --size 1Ki --rate 6k").document(0);
    server.measure("connect --time 300ms --rate 200").document(0);
    let other = server.start_client("stream --time 2s --rate 60M");
    assert!(holds_within(Duration::from_secs(5), || {
        server.records().iter().any(|record| {
            record["record"] == "test_started" && record["workload"]["rate"]["bps"] == 60_000_000
        })
    }));
    assert_busy(&server.measure("stream --time 1s --rate 50M"), &["60.0 Mbit/s of the"]);
    server.measure("stream --time 200ms --rate 40M").document(0);
    other.finish().document(0);
}

/// The places in the queue that a client has been told, in order.
fn places(client: &Client) -> Vec<u64> {
    let records = client.stdout_so_far();
    let records = records.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records
        .filter(|record| record["record"] == "queued")
        .map(|r| r["place"].as_u64().unwrap())
        .collect()
}

#[test]
fn an_exclusive_client_waits_until_no_other_measures() {
    let server = Server::start("");
    let running = server.start_client("stream --rate 10M --time 3s");
    server.await_record("test_started");
    let key = &server.fingerprint;
    let words = format!("rr --time 500ms --exclusive --ndjson --quiet --server-key {key}");
    let first = server.start_client_of("127.0.0.1", &words);
    assert!(holds_within(Duration::from_secs(2), || places(&first) == [1]));
    let second = server.start_client_of("127.0.0.1", &words);
    assert!(holds_within(Duration::from_secs(2), || places(&second) == [2]));
    // Later clients don't overtake them.
    assert_busy(&server.measure("rr --count 1"), &["waits to measure alone"]);
    running.finish().document(0);
    assert!(holds_within(Duration::from_secs(5), || places(&second) == [2, 1]));
    assert_busy(&server.measure("rr --count 1"), &["alone"]);
    for client in [first, second] {
        let ended = client.finish();
        assert_eq!(ended.exit_code, Some(0), "{}", ended.stderr);
        let last: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(last["record"], "finished");
    }
    server.measure("rr --count 1").document(0);
}

/// How many samples of the server's a client has been told.
fn server_samples(client: &Client) -> usize {
    let records = client.stdout_so_far();
    let records = records.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|r| r["record"] == "sample" && r["sample"]["role"] == "server").count()
}

#[test]
fn tests_at_the_same_time_doubt_each_other() {
    let server = Server::start("");
    let key = &server.fingerprint;
    let words = format!(
        "stream --rate 1M --size 1k --time 600s --interval 50ms --ndjson --quiet --server-key {key}"
    );
    let first = server.start_client_of("127.0.0.1", &words);
    assert!(holds_within(Duration::from_secs(60), || server_samples(&first) > 0));
    let second = server.start_client_of("127.0.0.1", &words);
    assert!(holds_within(Duration::from_secs(60), || server_samples(&second) > 3));
    for client in [first, second] {
        client.signal(rustix::process::Signal::INT);
        let ended = client.finish_within(Duration::from_secs(60));
        let last: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
        let status = &last["run"]["status"];
        assert_ne!(status["verdict"], "valid", "{status}");
        let reasons = status["reasons"].as_array().unwrap();
        let told = reasons.iter().find(|reason| reason["code"] == "other_tests").unwrap();
        assert_eq!((&told["end"], &told["value"]), (&"server".into(), &1.0.into()), "{told}");
    }
    let alone = server.measure("rr --count 100").document(0);
    assert_eq!(alone.report("server")["disturbance"]["other_tests"], 0);
}

#[test]
fn the_place_in_the_queue_is_shown_in_text_output() {
    let server = Server::start("");
    let running = server.start_client("stream --rate 10M --time 1s");
    server.await_record("test_started");
    let key = &server.fingerprint;
    let words = format!("rr --count 5 --exclusive --server-key {key}");
    let waiting = server.start_client_of("127.0.0.1", &words).finish();
    assert_eq!(waiting.exit_code, Some(0), "{}", waiting.stderr);
    assert!(waiting.stderr.contains("next in line"), "{}", waiting.stderr);
    running.finish().document(0);
}

/// The notes of the server's report.
fn server_notes(document: &crate::document::Document) -> String {
    document.report("server")["notes"].to_string()
}

#[test]
fn a_server_polls_without_sleeping_only_where_it_allows_that() {
    let server = Server::start("");
    for load in
        ["rr --count 100", "stream --time 100ms", "rr --quic --count 100", "rr --udp --count 100"]
    {
        let document = server.measure(&format!("{load} --busy-poll")).document(0);
        let notes = server_notes(&document);
        assert!(notes.contains("serve --busy-poll"), "{load}: {notes}");
        assert!(document.reason_codes().contains(&"busy_poll_refused"), "{load}");
    }
    let document = server.measure("rr --count 100").document(0);
    assert!(!server_notes(&document).contains("busy"));
    assert!(!document.reason_codes().contains(&"busy_poll_refused"));

    let allows = Server::start("--busy-poll");
    let many = "--flows 2000 --threads 16 --busy-poll --time 300ms --active all";
    let document = allows.measure(&format!("rr {many}")).document(0);
    let notes = server_notes(&document);
    let processors = std::thread::available_parallelism().unwrap().get();
    if processors <= 16 {
        assert!(notes.contains("did not poll without sleeping"), "{notes}");
    }
    let document = allows.measure("rr --count 100 --busy-poll").document(0);
    assert!(!server_notes(&document).contains("sleeping"));
    assert_eq!(document.report("server")["waiting"]["spins"], true);
}

/// A process pinned to one processor is how latency is measured.
#[test]
fn a_server_with_one_processor_polls_on_it_where_its_owner_allows_that() {
    let before = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).unwrap();
    let mut only = CpuSet::new();
    only.set(first);
    // The server inherits what this thread may use.
    sched_setaffinity(None, &only).unwrap();
    let server = Server::start("--busy-poll");
    sched_setaffinity(None, &before).unwrap();
    for load in
        ["rr --count 100", "rr --udp --count 100", "rr --quic --count 100", "stream --time 300ms"]
    {
        let document = server.measure(&format!("{load} --busy-poll")).document(0);
        assert_eq!(document.report("server")["waiting"]["spins"], true, "{load}");
        assert!(!document.reason_codes().contains(&"busy_poll_refused"), "{load}");
    }
}

#[test]
fn no_client_keeps_the_others_out_by_a_start_far_ahead() {
    let server = Server::start("");
    let ahead_s = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + 1800;
    let ended = server.measure(&format!("rr --count 1 --exclusive --start-at @{ahead_s}"));
    let document = ended.document(1);
    for word in ["more than this server waits for (60.0 s)", "--start-at"] {
        assert!(document.message().contains(word), "{}", document.message());
    }
    server.measure("rr --count 1").document(0);

    let short = Server::start("--max-time 5s");
    let ended = short.measure(&format!("rr --count 1 --start-at @{ahead_s}"));
    let document = ended.document(1);
    assert!(document.message().contains("(5.00 s)"), "{}", document.message());
}

#[test]
fn a_load_ends_at_the_longest_time_that_the_server_allows() {
    let server = Server::start("--max-time 500ms");
    for load in [
        "stream --bytes 1T",
        "stream --bytes 1T --down --flows 3",
        "stream --bytes 1T --both --tls",
        "stream --bytes 1T --quic",
        "stream --bytes 1T --udp --rate 10M",
        "stream --bytes 1T --udp --rate 10M --down",
        "rr --count 1G",
        "rr --count 1G --flows 4",
        "rr --count 1G --udp",
        "rr --count 1G --quic",
        "connect --count 1G",
        "connect --count 1G --quic",
    ] {
        // Less than was asked for.
        let document = server.measure(load).document(6);
        let notes = server_notes(&document);
        assert!(notes.contains("(--max-time)"), "{load}: {notes}");
        let elapsed_ns = document.report("server")["elapsed_ns"].as_u64().unwrap();
        assert!(elapsed_ns < 5_000_000_000, "{load}: {elapsed_ns}");
    }
    server.measure("rr --count 1").document(0);
}
