//! Connections that come and go: how many, how long, how failures are counted, and that
//! the server still accepts other clients.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::conversation::{Conversation, workload};
use crate::document::Document;
use crate::ends::Server;

fn summary(document: &Document) -> &Value {
    &document.json()["summary"]
}

/// The connections of a run that was valid and in which nothing failed.
#[track_caller]
fn connections(server: &Server, words: &str) -> (u64, Document) {
    let document = server.measure(words).document(0);
    let summary = summary(&document);
    assert_eq!(summary["errors"], Value::Null, "{words}: {summary}");
    assert_eq!(document.report("server")["errors"], Value::Null, "{words}: at the server");
    (summary["transactions"].as_u64().unwrap(), document)
}

#[test]
fn every_way_to_close_and_every_transport_is_measured_in_its_parts() {
    let server = Server::start("");
    for words in [
        "connect --close fin",
        "connect --close rst",
        "connect --close server",
        "connect --flows 20 --close rst",
        "connect --tls",
        "connect --tls --close server --flows 3",
        "connect --request 100k --response 300k",
    ] {
        let (count, document) = connections(&server, &format!("{words} --time 1s"));
        let summary = summary(&document);
        assert!(count > 10, "{words}: {count}");
        assert!(summary["connections_per_s"].as_f64().unwrap() > 10.0, "{words}");
        assert_eq!(summary["transactions_per_s"], Value::Null, "{words}: it is no rr");
        let least = |part: &str| summary[part]["min"].as_u64().expect(part);
        let (established, first, closed) =
            (least("establishment_ns"), least("first_byte_ns"), least("latency_ns"));
        assert!(established < first && first < closed, "{words}: {established} {first} {closed}");
        for part in ["establishment_ns", "first_byte_ns", "latency_ns"] {
            assert_eq!(summary[part]["count"], count, "{words}: {part}");
        }
        let served: u64 = document.json()["reports"][1]["flows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|flow| flow["sent"]["bytes"].as_u64().unwrap_or(0))
            .sum();
        let response_bytes = if words.contains("300k") { 300_000 } else { 1 };
        assert!(served >= count * response_bytes, "{words}: {served} bytes served");
    }
}

#[test]
fn a_number_of_connections_is_exact() {
    let server = Server::start("");
    let (count, _) = connections(&server, "connect --count 503 --flows 7");
    assert_eq!(count, 503);
    let (count, _) = connections(&server, "connect --count 100 --flows 3 --rate 1000");
    assert_eq!(count, 100);
}

#[test]
fn connections_by_a_schedule_keep_to_it() {
    let server = Server::start("");
    let (count, document) = connections(&server, "connect --rate 400 --flows 50 --time 1s");
    let summary = summary(&document);
    let unsent = summary["transactions_unsent"].as_u64().unwrap();
    assert!((390..=402).contains(&(count + unsent)), "{count} connections, {unsent} never begun");
    assert_eq!(summary["latency_from"], "open_loop");
    assert_eq!(summary["service_ns"]["count"], count);
}

#[test]
fn others_are_served_while_connections_come_and_go() {
    let server = Server::start("");
    let load = server.start_client("connect --flows 50 --time 2s");
    sleep(Duration::from_millis(300));
    for words in [
        "rr --count 100",
        "stream --bytes 1M --flows 5",
        "connect --count 50",
        "rr --udp --count 50",
    ] {
        server.measure(words).document(0);
    }
    let document = load.finish().document(0);
    assert_eq!(summary(&document)["errors"], Value::Null);
    // And afterwards, when the acceptor has the listener again.
    server.measure("rr --count 10").document(0);
}

/// On one processor the server sleeps in accept until a request has come, beside connections without a request.
#[test]
fn ends_that_share_a_processor_serve_connections_beside_silent_ones() {
    let cpu = rustix::thread::sched_getcpu();
    let server = Server::start(&format!("--cpu {cpu}"));
    for close in ["fin", "rst", "server"] {
        let words = format!("connect --close {close} --cpu {cpu} --time 1s");
        let client = server.start_client(&words);
        sleep(Duration::from_millis(400));
        let silent = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        server.measure("rr --count 10").document(0);
        let document = client.finish().document(0);
        drop(silent);
        let summary = summary(&document);
        assert_eq!(summary["errors"], Value::Null, "{words}: {summary}");
        assert!(summary["transactions"].as_u64().unwrap() > 50, "{words}: {summary}");
    }
    server.measure("rr --count 10").document(0);
}

#[test]
fn ports_that_are_taken_are_counted_and_the_test_goes_on() {
    let server = Server::start("");
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let words = format!("connect --bind 127.0.0.1 --source-ports {port}-{port} --time 300ms");
    let document = server.measure(&words).document(6);
    let summary = summary(&document);
    assert!(summary["errors"]["ports_exhausted"].as_u64().unwrap() > 10, "{summary}");
    // Among ports that are free, the taken one is stepped over.
    let (low, high) = (port - 20, port + 20);
    let words = format!("connect --source-ports {low}-{high} --close rst --time 300ms");
    let (count, _) = connections(&server, &words);
    assert!(count > 20, "{count}");
}

#[test]
fn several_places_share_a_range_of_ports() {
    let server = Server::start("");
    let words = "connect --source-ports 21200-21799 --close rst --flows 8 --threads 2 --time 500ms";
    let (count, _) = connections(&server, words);
    assert!(count > 100, "{count}");
}

/// How many connections from each address to the server's port wait in TIME-WAIT, as the kernel has it.
fn waiting(port: u16) -> BTreeMap<Ipv4Addr, u64> {
    let mut seen = BTreeMap::new();
    // While others come and go the kernel may list one twice.
    let mut listed = BTreeSet::new();
    for line in std::fs::read_to_string("/proc/net/tcp").unwrap().lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, _) = fields[1].split_once(':').unwrap();
        // tcp's states are numbered in the kernel's net/tcp_states.h.
        let waits = fields[2].ends_with(&format!(":{port:04X}")) && fields[3] == "06";
        if waits && listed.insert(fields[1].to_owned()) {
            let address = u32::from_str_radix(address, 16).unwrap();
            *seen.entry(Ipv4Addr::from(address.to_ne_bytes())).or_insert(0) += 1;
        }
    }
    seen
}

#[test]
fn connections_come_from_each_address_of_a_prefix_in_turn() {
    let server = Server::start("");
    for (third, flags, each) in [(3, "--count 70", 5), (4, "--count 28 --flows 2 --threads 2", 2)] {
        let words = format!("connect {flags} --bind 127.7.{third}.0/28");
        let (count, _) = connections(&server, &words);
        let addresses = (1..=14).map(|host| Ipv4Addr::new(127, 7, third, host));
        let seen = waiting(server.port);
        let from: Vec<u64> =
            addresses.map(|address| seen.get(&address).copied().unwrap_or(0)).collect();
        assert_eq!(from.iter().sum::<u64>(), count, "{words}: {seen:?}");
        assert_eq!(from, [each; 14], "{words}: {seen:?}");
    }
}

#[test]
fn the_search_for_a_free_port_is_no_part_of_a_connection() {
    let server = Server::start("");
    // 600 of 601 ports are taken: most of the time goes into looking for the last.
    let taken = 23_000..23_600;
    let _held: Vec<TcpListener> =
        taken.map(|port| TcpListener::bind(("127.0.0.35", port)).unwrap()).collect();
    let words = "connect --bind 127.0.0.35 --source-ports 23000-23600 --close rst --time 1s";
    let (count, document) = connections(&server, words);
    // Not the mean: what else the machine does makes some of them long.
    let inside_s = document.figure("latency_ns/min") * count as f64 / 1e9;
    let elapsed_s = document.figure("elapsed_s");
    assert!(inside_s < elapsed_s / 2.0, "{count}: {inside_s} s of {elapsed_s} s");
}

#[test]
fn connections_due_after_the_server_vanished_count_as_never_begun() {
    let server = Server::start("");
    let client = server.start_client("connect --rate 1000 --flows 2 --timeout 30s --time 40s");
    sleep(Duration::from_millis(700));
    server.signal(Signal::STOP);
    let document = client.finish().document(1);
    server.signal(Signal::CONT);
    let summary = summary(&document);
    assert!(summary["transactions_unsent"].as_u64().unwrap() > 1_000, "{summary}");
}

#[test]
fn a_server_that_stands_still_is_counted_as_timed_out() {
    let server = Server::start("");
    let client = server.start_client("connect --timeout 100ms --flows 3 --time 2s");
    sleep(Duration::from_millis(700));
    server.signal(Signal::STOP);
    sleep(Duration::from_millis(500));
    server.signal(Signal::CONT);
    let document = client.finish().document(0);
    let summary = summary(&document);
    assert!(summary["errors"]["timed_out"].as_u64().unwrap() >= 3, "{summary}");
    assert!(summary["transactions"].as_u64().unwrap() > 10, "{summary}");
}

#[test]
fn a_server_accepts_clients_after_a_load_whose_client_vanished() {
    let server = Server::start("");
    for _ in 0..3 {
        let client = server.start_client("connect --flows 10 --time 20s");
        sleep(Duration::from_millis(300));
        client.signal(Signal::KILL);
        server.measure("connect --count 20").document(0);
    }
}

#[test]
fn a_schedule_that_cannot_be_kept_ends_in_time_and_says_what_was_left() {
    let server = Server::start("");
    let words = "connect --rate 500000 --close rst --time 500ms";
    let ended = server.measure(words);
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    let document = ended.document(0);
    let summary = summary(&document);
    let count = |name: &str| summary[name].as_u64().unwrap();
    let due = count("transactions") + count("transactions_unsent");
    assert!((200_000..=260_000).contains(&due), "{due} were due in half a second: {summary}");
}

#[test]
fn tls_messages_larger_than_the_socket_takes_go_through() {
    let server = Server::start("");
    for words in [
        "rr --tls --request 1Mi --flows 2 --threads 1 --window 16k --mss 1400 --count 20",
        "rr --tls --request 1 --response 1Mi --flows 2 --threads 1 --window 16k --mss 1400 --count 20",
        "connect --tls --response 8Mi --flows 2 --threads 1 --window 16k --mss 1400 --count 6",
        "connect --tls --request 2Mi --close server --flows 2 --threads 1 --count 6",
    ] {
        server.measure(words).document(0);
    }
}

#[test]
fn a_client_that_never_finishes_does_not_block_others() {
    let server = Server::start("");
    let mut silent = Conversation::connect(server.port);
    silent.greet();
    let kind = json!({
        "name": "connect", "request_bytes": 1, "response_bytes": 1, "timeout_ns": 1_000_000_000_u64,
        "close": "fin"
    });
    let mut plan = workload(&kind, "tcp", 1);
    plan["end"] = json!({ "by": "time", "duration_ns": 100_000_000 });
    silent.ask(&plan);
    silent.await_kind("ready");
    silent.say(&json!({ "kind": "start" }));
    // Its load has ended by itself long before its test does.
    for sent_ns in 1..12 {
        sleep(Duration::from_millis(500));
        silent.say(&json!({ "kind": "ping", "sent_ns": sent_ns }));
    }
    server.measure("rr --count 5").document(0);
}
