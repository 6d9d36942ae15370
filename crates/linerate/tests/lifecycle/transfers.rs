//! Connections that come and go with a transfer in the place of a request and a response, and those that are held
//! open.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::document::Document;
use crate::ends::Server;

/// Payload that an end sent, and that it received.
fn payload(document: &Document, role: &str) -> (u64, u64) {
    let report = document.report(role);
    let flows = report["flows"].as_array().unwrap();
    let sum = |way: &str| -> u64 {
        flows.iter().map(|flow| flow[way]["bytes"].as_u64().unwrap_or(0)).sum()
    };
    (sum("sent"), sum("received"))
}

#[track_caller]
fn complete(server: &Server, words: &str) -> Document {
    let document = server.measure(words).document(0);
    assert_eq!(document.outcome(), "complete", "{words}: {}", document.message());
    let errors = &document.json()["summary"]["errors"];
    assert_eq!(*errors, Value::Null, "{words}");
    assert_eq!(document.report("server")["errors"], Value::Null, "{words}: at the server");
    document
}

#[test]
fn every_pattern_of_fixed_size_moves_its_bytes_over_every_transport() {
    let server = Server::start("");
    for (pattern, sent, received) in [
        ("push", 300_001, 0),
        ("pull", 0, 300_001),
        ("duplex", 150_001, 150_001),
        ("pushpull --push-bytes 100000 --pull-bytes 50000", 200_001, 100_000),
    ] {
        for over in ["", "--tls", "--quic", "--close rst", "--close server"] {
            let words = format!(
                "connect --transfer 300001 --pattern {pattern} --verify {over} --count 20 --flows 4"
            );
            let document = complete(&server, &words);
            assert_eq!(document.count("transactions"), 20, "{words}");
            assert_eq!(payload(&document, "client"), (20 * sent, 20 * received), "{words}");
            assert_eq!(payload(&document, "server"), (20 * received, 20 * sent), "{words}");
        }
    }
}

#[test]
fn sizes_drawn_from_a_range_are_the_same_at_both_ends() {
    let server = Server::start("");
    let turns = "pushpull --push-bytes 3000 --pull-bytes 700";
    for pattern in ["push", "pull", "duplex", turns, "duplex --tls", "duplex --quic"] {
        let words = format!(
            "connect --transfer 1..200k --buffer 100..70k --pattern {pattern} --verify --count 100 \
             --flows 5 --seed 9"
        );
        let document = complete(&server, &words);
        let (sent, received) = payload(&document, "client");
        assert_eq!(payload(&document, "server"), (received, sent), "{words}");
        let mean = (sent + received) / 100;
        assert!((60_000..140_000).contains(&mean), "{words}: {mean} bytes each");
    }
}

#[test]
fn connections_are_held_open_and_their_times_leave_that_out() {
    let server = Server::start("");
    for carries in ["", "--transfer 1k --verify", "--tls", "--quic"] {
        let words = format!("connect {carries} --flows 20 --hold 300ms --time 1s");
        let document = complete(&server, &words);
        let count = document.count("transactions");
        // Four rounds, of which the last is cut short, of 20.
        assert!((20..=100).contains(&count), "{words}: {count}");
        let median = &document.json()["summary"]["latency_ns"]["p50"];
        assert!(median.as_u64().unwrap() < 300_000_000, "{words}: {median}");
    }
}

#[test]
fn a_load_that_is_over_holds_nothing_open() {
    let server = Server::start("");
    let began = Instant::now();
    let document = complete(&server, "connect --flows 5 --hold 1h --time 1s");
    assert_eq!(document.count("transactions"), 5);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
