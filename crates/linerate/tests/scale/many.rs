//! Tens of thousands of flows between one client and one server.

use std::io::Write;
use std::time::Duration;
use std::{fs, io};

use serde_json::Value;

use crate::alone;
use crate::document::Document;
use crate::ends::Server;

/// Connections need a port each; an address has 28,000, half of which the kernel finds fast.
pub(crate) const SOURCES: &str = "--bind 127.0.0.0/28";

/// Every flow of the client's has completed a transaction, and every one stands in the report.
#[track_caller]
fn assert_all_transacted(document: &Document, flows: u64) {
    for role in ["client", "server"] {
        let report = document.report(role);
        assert_eq!(report["flows"].as_array().unwrap().len(), 1000, "{role}");
        assert_eq!(report["unlisted"]["up"]["flows"], flows - 1000, "{role}");
        assert!(report.get("errors").is_none(), "{role}: {}", report["errors"]);
    }
    let client = document.report("client");
    let transactions = |flow: &Value| flow["transactions"].as_u64().unwrap();
    assert!(client["flows"].as_array().unwrap().iter().all(|flow| transactions(flow) > 0));
    assert_eq!(client["unlisted"]["up"]["silent_flows"], 0);
    let sum =
        document.sum_of_flows("client", "transactions") + transactions(&client["unlisted"]["up"]);
    assert_eq!(document.count("transactions"), sum);
    assert!(sum >= flows);
}

#[test]
fn request_and_response_on_20001_flows() {
    let _one = alone();
    let server = Server::start("--bind 127.0.0.1");
    let ended = server.measure(&format!("rr --flows 20001 --count 60003 {SOURCES}"));
    let document = ended.document(0);
    assert_all_transacted(&document, 20_001);
    assert_eq!(document.count("transactions"), 60_003);
    let ended = server.measure(&format!("rr --flows 20001 --time 1s --omit 100ms {SOURCES}"));
    assert!(ended.document(0).figure("transactions_per_s") > 0.0);
}

#[test]
fn flows_that_take_turns_on_20001_connections() {
    let _one = alone();
    let server = Server::start("--bind 127.0.0.1");
    let words = format!("rr --flows 20001 --active 100 --count 700035 {SOURCES}");
    let document = server.measure(&words).document(0);
    assert_all_transacted(&document, 20_001);
    assert_eq!(document.count("transactions"), 700_035);
    let refused = server.measure(&format!("rr --flows 20001 --active 1 {SOURCES}"));
    assert_eq!(refused.exit_code, Some(1));
    assert!(
        refused.stderr.contains("1 active flows are fewer than the 2 threads"),
        "{}",
        refused.stderr
    );
}

#[test]
fn datagrams_on_20001_flows_lose_none_of_the_flows() {
    let _one = alone();
    let server = Server::start("--bind 127.0.0.1");
    // Datagrams may be lost; a flow that had a second and no answer would be silent.
    let words = format!("rr --udp --flows 20001 --time 2s --timeout 5s {SOURCES}");
    assert_all_transacted(&server.measure(&words).document(0), 20_001);
}

#[test]
fn streams_on_20001_flows_in_both_directions() {
    let _one = alone();
    let server = Server::start("--bind 127.0.0.1");
    let words = format!("stream --both --flows 20001 --bytes 400M --verify {SOURCES}");
    let document = server.measure(&words).document(0);
    assert_eq!(document.count("received_bytes"), 800_000_000);
    assert_eq!(document.count("verified_bytes"), 800_000_000);
    for (role, other) in [("client", "down"), ("server", "up")] {
        let unlisted = &document.report(role)["unlisted"];
        let flows = |way: &str| unlisted[way]["flows"].as_u64().unwrap();
        assert_eq!(flows("up") + flows("down") + 1000, 40_002);
        assert_eq!(unlisted[other]["silent_flows"], 0);
    }
}

/// Sockets of TCP in use on this machine (proc(5)).
pub(crate) fn tcp_sockets() -> u64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap();
    let tcp = text.lines().find_map(|line| line.strip_prefix("TCP: inuse ")).unwrap();
    tcp.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_hundred_thousand_connections_take_two_kibibytes_each() {
    let _one = alone();
    // As they are by themselves, and with what a schedule and requests in a row take beside it.
    for schedule in ["", "--rate 50000 --arrivals poisson --outstanding 4"] {
        let server = Server::start("--bind 127.0.0.1");
        let words = format!("rr --flows 100000 --count 100000 {schedule} {SOURCES}");
        let mut client = server.start_client(&words);
        let (mut sockets, mut client_peak) = (0, 0);
        while client.is_running() {
            sockets = sockets.max(tcp_sockets());
            client_peak = client.peak_bytes().unwrap_or(0).max(client_peak);
            std::thread::sleep(Duration::from_millis(20));
        }
        let server_peak = server.peak_bytes().unwrap();
        assert_all_transacted(&client.finish().document(0), 100_000);
        // Shown though the test passes: cargo keeps what `eprintln` says to itself.
        let _ = writeln!(
            io::stderr(),
            "rr {schedule}: at the peak {sockets} TCP sockets in use; resident {} bytes a \
             connection at the client, {} at the server",
            client_peak / 100_000,
            server_peak / 100_000
        );
        assert!(sockets >= 200_000, "{sockets} sockets");
        for (role, peak) in [("client", client_peak), ("server", server_peak)] {
            assert!(peak <= 100_000 * 2048, "{role}: {peak} bytes");
        }
    }
}
