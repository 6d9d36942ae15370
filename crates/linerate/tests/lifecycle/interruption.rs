//! Ctrl-C and SIGTERM at the client: what was measured until then is printed, and the exit code
//! says that it isn't all.

use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::conversation::{Conversation, stream, workload};
use crate::document::Document;
use crate::ends::{Client, Server, holds_within, let_pass};

/// The end of a test that was interrupted is a matter of a few round trips; the rest is the machine
/// being busy.
const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn a_load_that_is_interrupted_leaves_a_partial_result() {
    let server = Server::start("");
    std::thread::scope(|scope| {
        for load in [
            "stream --up --rate 100M",
            "stream --down --tls --flows 3 --rate 100M",
            "stream --both --udp --rate 20M",
            "stream --rate 1k",
            "rr --udp",
            "rr",
        ] {
            for signal in [Signal::INT, Signal::TERM] {
                let server = &server;
                scope.spawn(move || {
                    let client = server.start_test(&format!("{load} --time 60s --interval 50ms"));
                    let_pass(Duration::from_millis(1500));
                    client.signal(signal);
                    assert_partial(&client.finish_within(PATIENCE).document(130), load);
                });
            }
        }
    });
}

#[track_caller]
fn assert_partial(document: &Document, load: &str) {
    assert_eq!(document.outcome(), "interrupted", "{load}: {}", document.message());
    assert!(document.message().contains("part"), "{load}: {}", document.message());
    assert!(!document.samples("client").is_empty(), "{load}");
    assert!(!document.samples("server").is_empty(), "{load}");
    document.report("client");
    document.report("server");
    let figure = if load.starts_with("rr") { "transactions_per_s" } else { "goodput_bps" };
    assert!(document.figure(figure) > 0.0, "{load}");
    assert!((0.05..30.0).contains(&document.figure("elapsed_s")), "{load}");
}

#[test]
fn outstanding_responses_are_awaited_after_an_interruption() {
    let server = Server::start("");
    for load in [
        "rr --udp --flows 100",
        "rr --udp --flows 4 --outstanding 50",
        "rr --quic --datagram --flows 20",
        "connect --flows 100",
        "connect --quic --flows 20",
    ] {
        let client = server.start_test(&format!("{load} --time 60s --timeout 4s"));
        let_pass(Duration::from_millis(1200));
        client.signal(Signal::INT);
        let document = client.finish_within(PATIENCE).document(130);
        let summary = &document.json()["summary"];
        assert_eq!(summary["transactions_lost"].as_u64().unwrap_or(0), 0, "{load}: {summary}");
        assert!(summary["errors"].is_null(), "{load}: {summary}");
        assert!(document.count("transactions") > 0, "{load}: {summary}");
    }
}

#[test]
fn an_interrupted_warm_up_has_no_figures() {
    let server = Server::start("");
    std::thread::scope(|scope| {
        for load in [
            "stream --down",
            "stream --both --udp --rate 20M",
            "stream --quic",
            "rr",
            "rr --rate 1k",
            "connect",
            "connect --quic",
        ] {
            let server = &server;
            scope.spawn(move || {
                let words = format!("{load} --omit 60s --time 60s --interval 50ms");
                let client = server.start_test(&words);
                let_pass(Duration::from_millis(700));
                client.signal(Signal::INT);
                assert_no_figures(&client.finish_within(PATIENCE).document(130), load);
            });
        }
    });
}

#[track_caller]
fn assert_no_figures(document: &Document, load: &str) {
    assert_eq!(document.message(), "in the warm-up: nothing was measured", "{load}");
    let summary = &document.json()["summary"];
    for figure in ["goodput_bps", "sent_bytes", "received_bytes", "latency_ns", "cpu_s_per_gb"] {
        assert!(summary[figure].is_null(), "{load}: {summary}");
    }
    for count in ["transactions", "connections", "transactions_unsent"] {
        assert_eq!(summary[count].as_u64().unwrap_or(0), 0, "{load}: {summary}");
    }
    for role in ["client", "server"] {
        let samples = document.samples(role);
        assert!(samples.iter().all(|sample| sample["warm_up"] == true), "{load}");
    }
}

#[test]
fn datagrams_are_counted_to_the_last_when_their_sender_is_interrupted() {
    let server = Server::start("");
    for load in ["stream --udp", "stream --udp --both", "stream --quic --datagram"] {
        let client = server.start_test(&format!("{load} --rate 5M --time 60s"));
        let_pass(Duration::from_millis(900));
        client.signal(Signal::INT);
        let document = client.finish_within(PATIENCE).document(130);
        let sent = document.sum_of_flows("client", "datagrams/sent");
        let received = document.sum_of_flows("server", "datagrams/received");
        let lost = document.sum_of_flows("server", "datagrams/lost");
        assert!(sent > 0 && received + lost == sent, "{load}: {received} + {lost} of {sent}");
        // A server that isn't told how many there were waits for more, and says so.
        let notes = document.report("server")["notes"].to_string();
        assert!(!notes.contains("nothing moved"), "{load}: {notes}");
    }
}

#[test]
fn an_interruption_is_one_though_the_server_says_nothing_more() {
    std::thread::scope(|scope| {
        for load in ["rr --udp", "stream --down --rate 10M"] {
            scope.spawn(move || {
                let server = Server::start("");
                let client = server.start_test(&format!("{load} --time 60s"));
                let_pass(Duration::from_millis(500));
                server.signal(Signal::STOP);
                client.signal(Signal::INT);
                let document = client.finish_within(Duration::from_secs(20)).document(130);
                server.signal(Signal::CONT);
                let message = document.message();
                assert_eq!(document.outcome(), "interrupted", "{load}: {message}");
                assert!(message.contains("didn't arrive"), "{load}: {message}");
                document.report("client");
            });
        }
    });
}

#[test]
fn text_keeps_what_was_measured_before_a_failure() {
    for quiet in ["", "--quiet"] {
        let server = Server::start("");
        let words = format!("rr 127.0.0.1:{} {quiet} --time 60s", server.port);
        let client = Client::start(server.home(), &words);
        server.await_record("test_started");
        let_pass(Duration::from_millis(700));
        server.signal(Signal::KILL);
        let ended = client.finish_within(Duration::from_secs(20));
        assert_eq!(ended.exit_code, Some(1));
        for figure in ["transactions ", "latency (closed loop)", "CPU of flows' threads"] {
            assert!(ended.stdout.contains(figure), "{quiet}: {}", ended.stdout);
        }
        assert!(ended.stderr.contains("failed: the other end closed"), "{}", ended.stderr);
        assert!(!ended.stdout.contains("failed:"), "{}", ended.stdout);
    }
}

#[track_caller]
fn assert_interrupted_before(client: Client) {
    let_pass(Duration::from_millis(600));
    client.signal(Signal::INT);
    let document = client.finish_within(PATIENCE).document(130);
    assert_eq!(document.outcome(), "interrupted");
    assert!(document.message().contains("before the load began"), "{}", document.message());
    assert!(document.samples("client").is_empty());
}

#[test]
fn before_the_load_there_is_nothing_to_report() {
    let server = Server::start("--max-tests 1");
    let mut other = Conversation::connect(server.port);
    other.greet();
    other.ask(&workload(&stream("up"), "tcp", 1));
    assert_interrupted_before(server.start_client("rr --exclusive"));

    let server = Server::start("--max-tests 1");
    let ahead_s = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + 1800;
    assert_interrupted_before(server.start_client(&format!("stream --start-at @{ahead_s}")));
    // The one that was interrupted took its leave.
    assert!(holds_within(PATIENCE, || server.measure("rr --count 1").exit_code == Some(0)));

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = TempDir::new().unwrap();
    let host = silent.local_addr().unwrap();
    assert_interrupted_before(Client::start(home.path(), &format!("rr {host} --json --quiet")));
}

/// Whether a signal is in this set of a process: caught (`SigCgt:`) or ignored (`SigIgn:`), proc(5).
pub(crate) fn is_in_set(process: &str, set: &str, signal: Signal) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mask = text.lines().find_map(|line| line.strip_prefix(set)).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

fn await_catching(client: &Client, signal: Signal) {
    let process = client.pid().to_string();
    assert!(holds_within(PATIENCE, || is_in_set(&process, "SigCgt:", signal)));
}

#[test]
fn a_signal_in_the_first_moment_leaves_a_document() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = silent.local_addr().unwrap();
    let home = TempDir::new().unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        // Under nohup(1) SIGHUP stays ignored, in the tests' children too.
        if signal == Signal::HUP && is_in_set("self", "SigIgn:", signal) {
            continue;
        }
        for delay_ms in [0, 0, 1, 3, 10, 30] {
            let client = Client::start(home.path(), &format!("rr {host} --json --quiet"));
            // What is registered later stands when the first does.
            await_catching(&client, if signal == Signal::INT { Signal::TERM } else { signal });
            std::thread::sleep(Duration::from_millis(delay_ms));
            client.signal(signal);
            let document = client.finish_within(PATIENCE).document(130);
            assert_eq!(document.outcome(), "interrupted", "{signal:?} after {delay_ms} ms");
        }
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_file_that_nobody_writes() {
    let home = TempDir::new().unwrap();
    let made = std::process::Command::new("mkfifo").arg(home.path().join("fifo")).status();
    assert!(made.unwrap().success());
    let waits = [
        "stream 127.0.0.1:1 --key fifo",
        "stream 127.0.0.1:1 --ca fifo",
        "stream 127.0.0.1:1 --output fifo",
        "stream 127.0.0.1:1 --output fifo --dry-run",
        "link fifo",
        "serve --port 0 --require-key fifo",
    ];
    for words in waits {
        let client = Client::start(home.path(), words);
        await_catching(&client, Signal::TERM);
        client.signal(Signal::TERM);
        let ended = client.finish_within(PATIENCE);
        assert_eq!(ended.exit_code, Some(130), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains("interrupted before"), "{words}: {}", ended.stderr);
    }
}

#[test]
fn the_second_ctrl_c_ends_the_program_at_once() {
    let server = Server::start("");
    let client = server.start_test("stream --rate 10M --time 60s");
    let_pass(Duration::from_millis(300));
    server.signal(Signal::STOP);
    client.signal(Signal::INT);
    let_pass(Duration::from_millis(200));
    client.signal(Signal::INT);
    assert_eq!(client.finish_within(Duration::from_secs(2)).exit_code, Some(130));
}
