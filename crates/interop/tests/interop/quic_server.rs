//! `linerate secnetperf` asks, s2n-quic answers.

use serde_json::Value;

use crate::fixture::{results, run, without_numbers};
use crate::quic::{Manner, PerfServer, Seen};

fn words(server: &PerfServer, words: &str) -> String {
    format!("-target:127.0.0.1 -port:{} {words}", server.port)
}

#[test]
fn both_ends_count_the_same_completions() {
    for (asked, connections, streams, up, down) in [
        ("", 1, 0, 0, 0),
        // The header alone.
        ("-up:8", 1, 1, 8, 0),
        ("-streams:1", 1, 1, 8, 0),
        ("-up:1mb", 1, 1, 1_000_000, 0),
        ("-down:3mb", 1, 1, 8, 3_000_000),
        ("-conns:3 -streams:10 -up:30kb -down:50kb", 3, 30, 900_000, 1_500_000),
        ("-streams:70 -up:700 -down:900", 1, 70, 49_000, 63_000),
    ] {
        let server = PerfServer::start(Manner::Answers);
        let ended = run(&words(&server, &format!("{asked} --json")));
        assert_eq!(ended.exit_code, 0, "{asked}: {}", ended.stdout);
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(document["connections"], connections, "{asked}");
        assert_eq!(document["streams"], streams, "{asked}");
        assert_eq!(document["downloaded_bytes"], down, "{asked}");
        let seen = &server.seen;
        // A connection that its client has closed at once may be over before s2n-quic tells of it.
        if streams > 0 {
            assert_eq!(Seen::count(&seen.connections), connections, "{asked}");
        }
        assert_eq!(Seen::count(&seen.streams), streams, "{asked}");
        assert_eq!(Seen::count(&seen.uploaded_bytes), up, "{asked}");
    }
}

#[test]
fn timed_runs_end_and_stop_their_answers() {
    for (asked, name) in [("-up:300ms", "Upload"), ("-down:300ms -streams:3", "Download")] {
        let server = PerfServer::start(Manner::Answers);
        let ended = run(&words(&server, &format!("{asked} -ptput:1")));
        let lines: Vec<String> = results(&ended).into_iter().map(without_numbers).collect();
        assert_eq!(lines, [format!("Result: {name} # kbps.")], "{asked}");
        assert!(!ended.stdout.contains(" 0 kbps"), "{asked}: {}", ended.stdout);
        assert!(Seen::count(&server.seen.streams) > 0, "{asked}");
    }
}

#[test]
fn handshakes_and_requests_go_on() {
    let server = PerfServer::start(Manner::Answers);
    let ended = run(&words(&server, "-scenario:hps -run:1s -conns:3"));
    let line = results(&ended).concat();
    assert_eq!(without_numbers(&line), "Result: # HPS");
    assert_ne!(line, "Result: 0 HPS");
    let ended = run(&words(&server, "-rstream:1 -streams:9 -run:1s -up:512 -down:4000 -prate:1"));
    let lines: Vec<String> = results(&ended).into_iter().map(without_numbers).collect();
    assert_eq!(lines, ["Result: # HPS", "Result: # RPS"]);
    assert!(Seen::count(&server.seen.streams) > 9);
}

#[test]
fn a_server_that_gives_streams_up_ends_no_client_badly() {
    for manner in [Manner::Resets, Manner::StopsRequests] {
        let server = PerfServer::start(manner);
        let ended = run(&words(&server, "-streams:5 -up:2mb -down:3mb --json"));
        assert_eq!(ended.exit_code, 0, "{manner:?}: {}", ended.stdout);
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(document["connections"], 1, "{manner:?}");
        assert_eq!(document["streams"], 0, "no exchange was completed: {manner:?}");
        assert_eq!(Seen::count(&server.seen.streams), 5, "{manner:?}");
    }
}

#[test]
fn a_server_that_agrees_on_no_packets_in_clear_gets_them_sealed() {
    let server = PerfServer::start(Manner::Answers);
    let ended = run(&words(&server, "-encrypt:0 -up:100kb -down:100kb"));
    assert_eq!(results(&ended), ["Completed 1 connections and 1 streams!"]);
}
