//! How long a server serves, and that it tells the end of each test that it has begun.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::conversation::{Conversation, connect_data, stream, workload};
use crate::ends::{Server, holds_within};
use crate::interruption::is_in_set;

const SOON: Duration = Duration::from_secs(10);

/// The exit code of a server that ends by itself.
#[track_caller]
fn await_exit(server: &mut Server) -> Option<i32> {
    assert!(holds_within(SOON, || !server.is_running()), "the server serves on");
    server.exit_code()
}

fn how(ended: &Value) -> &str {
    ended["how"].as_str().unwrap()
}

#[test]
fn the_end_of_a_test_is_told_with_what_it_carried() {
    let server = Server::start("");
    for transport in ["", "--tls", "--quic"] {
        server.measure(&format!("stream --up --bytes 3M {transport}")).document(0);
        let started = server.await_record("test_started");
        let ended = server.await_record("test_ended");
        assert_eq!(
            (how(&ended), &ended["run_id"]),
            ("complete", &started["run_id"]),
            "{transport}"
        );
        assert_eq!(ended["received_bytes"], 3_000_000, "{transport}: {ended}");
        assert!(ended["elapsed_ns"].as_u64().unwrap() > 0, "{transport}: {ended}");
        assert!(ended["utc_ns"].as_i64() >= started["utc_ns"].as_i64(), "{started} {ended}");
    }
}

#[test]
fn the_end_of_a_test_that_the_server_did_not_outlive_is_told() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        // Under nohup(1) SIGHUP stays ignored, in the tests' children too.
        if signal == Signal::HUP && is_in_set("self", "SigIgn:", signal) {
            continue;
        }
        let mut server = Server::start("");
        let client = server.start_client("stream --time 30s --rate 10M --interval 100ms");
        let started = server.await_record("test_started");
        server.signal(signal);
        let ended = server.await_record("test_ended");
        assert_eq!(how(&ended), "the server was stopped", "{signal:?}");
        assert_eq!(ended["run_id"], started["run_id"]);
        assert_eq!(await_exit(&mut server), Some(0), "{signal:?}");
        drop(client);
    }
}

#[test]
fn a_test_that_its_server_ended_with_an_error_is_not_told_as_complete() {
    let server = Server::start("");
    let mut far_ahead = Conversation::connect(server.port);
    far_ahead.greet();
    let token = far_ahead.ask(&workload(&stream("up"), "tcp", 1));
    let _flow = connect_data(server.port, 0, token);
    far_ahead.await_kind("ready");
    far_ahead.say(&json!({ "kind": "start", "at_utc_ns": i64::MAX }));
    let ended = server.await_record("test_ended");
    assert!(how(&ended).contains("--start-at"), "{ended}");
    // Its load never began.
    assert_eq!(ended.get("elapsed_ns"), None, "{ended}");
}

#[test]
fn a_server_of_one_test_ends_after_it() {
    let mut server = Server::start("--one-off");
    let first = server.start_client("rr --time 20s");
    server.await_record("test_started");
    for flags in ["", "--exclusive"] {
        let refused = server.measure(&format!("rr --count 3 {flags}")).document(5);
        assert!(refused.message().contains("--one-off"), "{}", refused.message());
    }
    first.signal(Signal::INT);
    first.finish().document(130);
    assert_eq!(how(&server.await_record("test_ended")), "complete");
    assert_eq!(await_exit(&mut server), Some(0));
}

#[test]
fn a_server_without_tests_for_its_idle_timeout_ends() {
    let mut server = Server::start("--idle-timeout 3s");
    // Longer than that by itself.
    server.measure("rr --time 4s").document(0);
    assert_eq!(how(&server.await_record("test_ended")), "complete");
    let note = server.await_record("note");
    assert!(note["text"].as_str().unwrap().contains("--idle-timeout"), "{note}");
    assert_eq!(await_exit(&mut server), Some(0));
}
