//! Hunts: many trials on one control connection, judged by what both ends counted.

use std::collections::HashSet;

use rustix::process::Signal;
use serde_json::Value;

use crate::document::Document;
use crate::ends::{LONGEST, Server, holds_within};

/// Found, or the machine was too busy to offer the rate evenly.
const JUDGED: [Option<i32>; 2] = [Some(0), Some(6)];

fn hunt_of(document: &Document) -> &Value {
    &document.json()["hunt"]
}

fn rates(document: &Document) -> Vec<u64> {
    let trials = hunt_of(document)["trials"].as_array().unwrap();
    trials.iter().map(|trial| trial["rate"].as_u64().unwrap()).collect()
}

/// The control connections that the tests so far came on.
fn connections(server: &Server) -> HashSet<String> {
    let records = server.records().into_iter();
    let started = records.filter(|record| record["record"] == "test_started");
    started.map(|record| record["client"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_originals_search_has_all_its_trials_on_one_connection() {
    let server = Server::start("");
    let words = "hunt --compat --rate 1M..9M --loss 100% --time 200ms --size 500";
    let ended = server.measure(words);
    let document = ended.document(0);
    assert_eq!(rates(&document), [5_000_000, 7_000_000, 8_000_000]);
    let outcome = serde_json::json!({ "is": "bisected", "rate": 8_000_000, "tried": true });
    assert_eq!(hunt_of(&document)["outcome"], outcome);
    assert_eq!(hunt_of(&document)["reported_trial"], 3);
    assert_eq!(document.json()["plan"]["workload"]["rate"]["bps"], 8_000_000);
    assert!(document.count("datagrams/received") > 0);
    assert_eq!(connections(&server).len(), 1);
}

#[test]
fn a_server_for_one_test_serves_a_hunt_and_ends() {
    let mut server = Server::start("--one-off");
    let words = "hunt --compat --rate 1M..5M --loss 100% --time 200ms --size 500";
    let document = server.measure(words).document(0);
    assert_eq!(rates(&document), [3_000_000, 4_000_000]);
    assert!(holds_within(LONGEST, || !server.is_running()));
}

#[test]
fn a_server_that_allows_shorter_tests_gets_shorter_trials() {
    // The verdict needs ten times as long.
    let server = Server::start("--max-time 400ms");
    let words = "hunt --rate 1M --time 200ms --size 500";
    let ended = server.measure(words);
    assert!(JUDGED.contains(&ended.exit_code), "{:?} {}", ended.exit_code, ended.stderr);
    assert!(!rates(&Document::parse(&ended.stdout)).is_empty());
    let refused = server.measure("hunt --rate 1M --time 300ms --size 500");
    assert_eq!(refused.exit_code, Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("ask for less --time"), "{}", refused.stderr);
}

#[test]
fn one_trial_alone_is_a_plain_measurement() {
    let server = Server::start("");
    let ended = server.measure("hunt --trial 2M:300ms --size 500");
    assert!(JUDGED.contains(&ended.exit_code), "{:?} {}", ended.exit_code, ended.stderr);
    let document = Document::parse(&ended.stdout);
    let workload = &document.json()["plan"]["workload"];
    assert_eq!(workload["rate"]["bps"], 2_000_000);
    assert_eq!(workload["end"]["duration_ns"], 300_000_000);
    assert!(document.json().get("hunt").is_none());
}

#[test]
fn one_rate_is_judged_over_each_transport_with_datagrams() {
    let server = Server::start("");
    for flags in ["", "--down", "--quic", "--quic --down --flows 2"] {
        let words = format!("hunt --rate 4M --loss 20% --time 2s --size 500 {flags}");
        let ended = server.measure(&words);
        assert!(
            JUDGED.contains(&ended.exit_code),
            "{words}: {:?} {}",
            ended.exit_code,
            ended.stderr
        );
        let document = Document::parse(&ended.stdout);
        let hunt = hunt_of(&document);
        let trials = hunt["trials"].as_array().unwrap();
        assert!((1..=11).contains(&trials.len()), "{words}: {hunt}");
        for trial in trials {
            let items = |name: &str| trial["items"][name].as_u64().unwrap();
            assert!(items("loss_events") <= items("lost"), "{words}: {trial}");
        }
    }
}

#[test]
fn requests_are_judged_by_their_latency() {
    let server = Server::start("");
    for (limit, kept) in [("p50=30s", "keeps"), ("p99.9=1ns", "breaks")] {
        let words = format!("hunt --rate 200 --loss 50% --latency {limit} --time 1s");
        let ended = server.measure(&words);
        assert!(JUDGED.contains(&ended.exit_code), "{words}: {}", ended.stderr);
        let document = Document::parse(&ended.stdout);
        let hunt = hunt_of(&document);
        if ended.exit_code == Some(0) {
            assert_eq!(hunt["outcome"]["is"], kept, "{words}: {hunt}");
            // A trial before it that a busy machine spoiled tells nothing.
            let last = hunt["trials"].as_array().unwrap().last().unwrap();
            let slow = last["items"]["slow"][0].as_u64().unwrap();
            assert_eq!(slow == 0, kept == "keeps", "{words}: {hunt}");
        }
    }
}

#[test]
fn an_interrupted_hunt_prints_what_is_known() {
    let server = Server::start("");
    // A dozen trials of a second: the signal comes in the midst of them.
    let words = "hunt --compat --rate 1000k..9000k --loss 100% --time 1s --size 500";
    let client = server.start_test(words);
    server.await_record("test_started");
    client.signal(Signal::INT);
    let document = client.finish().document(130);
    let outcome = &hunt_of(&document)["outcome"];
    assert_eq!(outcome["is"], "interrupted", "{outcome}");
    // On a busy machine the signal may come a trial later. Each one passes, and the last has the highest rate.
    let rates = rates(&document);
    assert_eq!(rates.first(), Some(&5_000_000), "{rates:?}");
    assert_eq!(outcome["passed"].as_u64(), rates.last().copied(), "{outcome}");
}

#[test]
fn the_next_client_is_served_when_a_hunt_was_killed() {
    let server = Server::start("--max-tests 1");
    for _ in 0..3 {
        let client = server.start_test("hunt --compat --rate 1M..9M --loss 100% --time 20s");
        client.signal(Signal::KILL);
        client.finish();
        server.await_record("test_ended");
    }
    let document = server.measure("stream --time 300ms").document(0);
    assert!(document.count("received_bytes") > 0);
}

#[test]
fn trials_are_records_as_they_end() {
    let server = Server::start("");
    let words = format!(
        "hunt --compat --rate 1M..5M --loss 100% --time 200ms --size 500 --ndjson --server-key {}",
        server.fingerprint
    );
    let ended = server.start_client_of("127.0.0.1", &words).finish();
    let records: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> =
        records.iter().map(|record| record["record"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["trial", "trial", "finished"]);
    assert_eq!(records[0]["trial"]["rate"], 3_000_000);
    assert_eq!(records[2]["run"]["hunt"]["trials"][1], records[1]["trial"]);
}

#[test]
fn hunts_that_make_no_sense_are_refused_with_the_flag_to_change() {
    let server = Server::start("");
    for (flags, text) in [
        ("--rate 5M..1M", "--rate 5M..1M"),
        ("--rate 0..1M", "--rate"),
        ("--rate 1M..20T", "--rate"),
        ("--rate fast", "--rate"),
        ("--loss 101%", "0 to 100"),
        ("--latency p99", "p99=1ms"),
        ("--latency p100=1ms", "p99=1ms"),
        ("--tcp", "--requests"),
        ("--csv", "--csv"),
        ("--verbose", "--verbose"),
        ("--start-at @9999999999", "--start-at"),
        ("--size 20", "--size"),
        ("--trial 5M", "--trial 5M: has no colon"),
        ("--trial fast:1s", "--trial fast:1s"),
        ("--trial 5M:soon", "--trial 5M:soon"),
        ("--compat --requests", "--requests"),
    ] {
        let ended = server.start_client_of("127.0.0.1", &format!("hunt {flags}")).finish();
        assert_eq!(ended.exit_code, Some(2), "{flags}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{flags}: {}", ended.stderr);
    }
    assert_eq!(connections(&server).len(), 0);
}
