//! Loads over QUIC: what is asked for arrives, whole and counted alike at both ends.

use std::net::UdpSocket;
use std::time::Duration;

use serde_json::Value;

use crate::ends::{Client, Server};
use crate::relay::Relay;

#[test]
fn every_byte_of_a_stream_arrives_and_is_right() {
    let server = Server::start("");
    for (bytes, flags, ways) in [
        (1_u64, "--up", 1),
        (1, "--down", 1),
        (1_000, "--up --flows 7", 1),
        (3, "--both --flows 3 --threads 1", 2),
        (3_000_007, "--up --flows 3", 1),
        (3_000_007, "--down --flows 6 --streams 3", 1),
        (1_000_001, "--both --flows 2 --streams 4 --rate 100M", 2),
        (131_073, "--down --size 1000 --no-offload", 1),
        (20_000_000, "--both --mtu-limit 65507", 2),
        (2_000_000, "--up --mtu 1200 --no-ecn --congestion reno", 1),
        (2_000_000, "--down --stream-window 20000 --congestion bbr", 1),
        (2_000_000, "--both --flows 3 --streams 6 --connection-window 30000", 2),
        (2_000_000, "--up --cipher aes256 --ack-packets 10", 1),
        (2_000_000, "--down --cipher chacha20", 1),
        (2_000_000, "--up --initial-window 100k --window 200k", 1),
        (3_000_007, "--up --unidirectional --flows 3 --streams 2", 1),
        (1, "--down --unidirectional", 1),
        (3_000_007, "--both --unidirectional --flows 4 --streams 3 --threads 2", 2),
        (2_000_000, "--up --pacing off --quic-version draft-29", 1),
        (1_000_000, "--both --pacing 200M --idle-timeout 2s", 2),
        (2_000_000, "--down --ack-delay 5ms --ack-reordering 0 --mtu-limit 9000", 1),
    ] {
        let words = format!("stream --quic --verify {flags} --bytes {bytes}");
        let document = server.measure(&words).document(0);
        assert_eq!(document.count("received_bytes"), bytes * ways, "{words}");
        assert_eq!(document.count("sent_bytes"), bytes * ways, "{words}");
        let right = |role| document.sum_of_flows(role, "verification/verified_bytes");
        assert_eq!(right("client") + right("server"), bytes * ways, "{words}");
    }
}

#[test]
fn a_short_load_is_whole_at_both_ends_though_its_clients_last_words_get_lost() {
    let server = Server::start("");
    for way in ["--down --unidirectional", "--down", "--up --unidirectional", "--up"] {
        let relay = Relay::with_connections(server.port);
        // All the rest is on its way by then, and what says that it has come is lost.
        relay.lose(50_000, Duration::from_millis(100));
        let words = format!(
            "stream 127.0.0.1 --port {} --quic {way} --bytes 100k --mtu 1200 \
             --initial-window 300k --pacing off --json --quiet --server-key {}",
            relay.port, server.fingerprint
        );
        let client = Client::start(server.home(), &words);
        let document = client.finish_within(Duration::from_secs(40)).document(0);
        assert_eq!(document.count("received_bytes"), 100_000, "{way}");
        assert!(relay.has_lost(), "{way}");
    }
}

#[test]
fn as_many_requests_and_connections_as_were_asked_for() {
    let server = Server::start("");
    for (words, count) in [
        ("rr --count 1", 1),
        ("rr --count 301 --flows 4", 301),
        ("rr --count 302 --flows 8 --streams 4 --threads 1 --size 3000", 302),
        ("rr --count 500 --outstanding 16", 500),
        // More connections than are opened at a time.
        ("rr --count 100 --flows 100 --threads 1", 100),
        ("rr --count 100 --rate 1k", 100),
        ("rr --count 200 --busy-poll", 200),
        ("connect --count 1", 1),
        ("connect --count 41 --flows 3", 41),
        ("connect --count 20 --request 100k --response 50000", 20),
        ("connect --count 20 --rate 100 --flows 2", 20),
    ] {
        let document = server.measure(&format!("{words} --quic")).document(0);
        assert_eq!(document.count("transactions"), count, "{words}");
    }
    let document = server.measure("connect --quic --count 10").document(0);
    for part in ["establishment_ns", "first_byte_ns", "latency_ns"] {
        assert!(document.figure(&format!("{part}/min")) > 0.0, "{part}");
    }
}

#[test]
fn local_addresses_beyond_the_threads_are_said_to_be_unused() {
    let server = Server::start("");
    for (words, note) in [
        ("connect --flows 8 --threads 1 --bind 127.0.0.0/29", Some("1 of the 6 addresses")),
        ("rr --flows 8 --threads 2 --bind 127.0.0.0/29", Some("2 of the 6 addresses")),
        ("connect --flows 8 --threads 2 --bind 127.0.0.1,127.0.0.2", None),
    ] {
        let document = server.measure(&format!("{words} --count 16 --quic")).document(0);
        let notes = document.json()["status"]["notes"].to_string();
        match note {
            Some(note) => assert!(notes.contains(note), "{words}: {notes}"),
            None => assert!(!notes.contains("local address"), "{words}: {notes}"),
        }
    }
}

#[test]
fn handshakes_are_what_was_asked_for() {
    let server = Server::start("");
    for kind in ["full", "resumed", "early"] {
        let words = format!("connect --quic --handshake {kind} --count 30 --flows 3");
        let document = server.measure(&words).document(0);
        assert_eq!(document.count("transactions"), 30, "{words}");
        let handshakes = &document.report("client")["handshakes"];
        for other in ["full", "resumed", "early"] {
            let expected = if other == kind { 30 } else { 0 };
            assert_eq!(handshakes[other].as_u64(), Some(expected), "{words}: {handshakes}");
        }
    }
}

#[test]
fn a_key_log_has_the_secrets_of_every_connection() {
    let server = Server::start("");
    for transport in ["--quic", "--tls"] {
        let path = server.home().join(transport);
        let words = format!("connect {transport} --count 3 --keylog {}", path.display());
        server.measure(&words).document(0);
        let log = std::fs::read_to_string(&path).unwrap();
        let lines = log.lines().filter(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 "));
        let secrets: Vec<usize> = lines.map(|line| line.split(' ').count()).collect();
        assert_eq!(secrets, [3, 3, 3], "{transport}: {log}");
    }
}

#[test]
fn a_connection_with_a_low_rate_keeps_to_it_and_ends() {
    let server = Server::start("");
    for way in ["--up", "--down"] {
        let words = format!("stream --quic {way} --pacing 2M --time 1s");
        let document = server.measure(&words).document(0);
        let received = document.count("received_bytes");
        // 250,000 bytes a second, however late a busy machine stops the load; what may be made up
        // for, and what is there at the beginning, is a few packets.
        let most = 250_000.0 * document.figure("elapsed_s") + 100_000.0;
        assert!(received > 0 && (received as f64) < most, "{words}: {received} of {most}");
    }
}

#[test]
fn each_connection_has_its_log() {
    let server = Server::start("");
    let logs = server.home().join("logs");
    let words = format!("connect --quic --count 3 --qlog {}", logs.display());
    server.measure(&words).document(0);
    let texts = || std::fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(texts().count(), 3);
    for path in texts() {
        let text = std::fs::read_to_string(&path).unwrap();
        for event in ["connection_started", "packet_sent", "packet_received", "connection_closed"] {
            assert!(text.contains(&format!(":{event}\"")), "{path:?}: {event}");
        }
    }
}

#[test]
fn a_load_that_ends_by_time_says_what_its_paths_were() {
    let server = Server::start("");
    let words = "stream --quic --flows 4 --streams 2 --time 1s --interval 200ms --omit 200ms";
    let document = server.measure(words).document(0);
    assert!(document.figure("goodput_bps") > 0.0);
    let samples = document.samples("client");
    let last = samples.iter().rev().find(|sample| !sample["sent"].is_null()).unwrap();
    for flow in last["flows"].as_array().unwrap() {
        let quic = &flow["quic"];
        assert!(quic["mtu_bytes"].as_u64() >= Some(1_200), "{flow}");
        assert!(quic["cwnd_bytes"].as_u64() > Some(0), "{flow}");
        assert!(quic["sent_packets"].as_u64() > Some(0), "{flow}");
        assert!(quic["received_acks"].as_u64() > Some(0), "{flow}");
        assert!(quic["in_flight_bytes"].is_u64(), "{flow}");
        let acked = quic["acked_bytes"].as_u64();
        assert!(acked > Some(0), "{flow}");
    }
    let whole = server.measure("stream --quic --bytes 1M --flows 2").document(0);
    let acked = whole.sum_of_flows("client", "quic/acked_bytes");
    assert!(acked > 0 && acked <= 1_000_000, "{acked}");
    let flows = document.report("client")["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 4);
    // Flows of one connection have the same path.
    let packets = |flow: &Value| flow["quic"]["sent_packets"].as_u64().unwrap();
    assert!(flows.iter().all(|flow| packets(flow) > 0));
    assert!(flows.iter().all(|flow| flow["tcp"].is_null()));
}

#[test]
fn large_packets_leave_in_trains_that_the_kernel_takes() {
    let server = Server::start("");
    for mtu in ["9000", "65507"] {
        let document =
            server.measure(&format!("stream --quic --mtu {mtu} --bytes 5M --verify")).document(0);
        let quic = &document.report("client")["flows"][0]["quic"];
        assert_eq!(quic["mtu_bytes"].as_u64().map(|bytes| bytes.to_string()).as_deref(), Some(mtu));
        let count = |name: &str| quic[name].as_u64().unwrap();
        assert!(count("lost_packets") * 4 < count("sent_packets"), "{quic}");
    }
}

#[test]
fn quic_packets_outside_an_association_get_no_answer() {
    let server = Server::start("");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", server.port)).unwrap();
    for first in 0x40..=0xff_u8 {
        // A long header of version 1 with connection ids of 8 bytes, as far as it goes.
        let mut datagram = vec![first, 0, 0, 0, 1, 8];
        datagram.resize(1_200, first);
        socket.send(&datagram).unwrap();
    }
    server.measure("rr --quic --count 3").document(0);
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(socket.recv(&mut [0; 2_000]).is_err());
}

#[test]
fn loads_that_quic_cannot_carry_are_refused_with_a_reason() {
    let server = Server::start("");
    for (words, text) in [
        ("connect --quic --close rst", "end only by the client"),
        ("stream --quic --congestion vegas", "cubic, reno or bbr"),
        ("stream --tcp --streams 2", "QUIC"),
        ("connect --handshake early", "use TLS or QUIC"),
        ("connect --quic --source-ports 10000-11000", "source ports"),
        ("stream --udp --keylog keys", "keys"),
        ("stream --quic --streams 9", "streams"),
        ("stream --quic --mss 1000", "MSS"),
        ("stream --quic --mtu 500", "out of range"),
        ("stream --quic --connection-window 1023", "1024 bytes to 1073741824 bytes"),
        ("stream --quic --flows 9 --connection-window 1Gi", "windows of all connections"),
        ("rr --quic --flows 129 --stream-window 64Mi", "windows of all connections"),
        ("stream --connection-window 1Mi", "options of QUIC with another transport"),
        ("stream --quic --mtu-limit 65508", "1200 bytes to 65507 bytes"),
        ("stream --quic --mtu 1300 --mtu-limit 1400", "leave one of them out"),
        ("stream --quic --pacing 10", "out of range"),
        ("stream --quic --pacing slow", "--pacing"),
        ("stream --tcp --pacing off", "QUIC"),
        ("stream --quic --idle-timeout 1ms", "out of range"),
        ("stream --quic --ack-delay 2s", "out of range"),
        ("stream --quic --quic-version v3", "draft-29"),
        ("stream --tcp --qlog logs", "QUIC"),
        ("stream --quic --mtu 9000 --initial-window 10000", "two packets"),
        ("rr --quic --timeout 1s", "--timeout"),
        ("stream --quic --datagram --unidirectional", "--unidirectional"),
        ("stream --tcp --unidirectional", "QUIC"),
    ] {
        let ended = server.measure(&format!("{words} --time 1s"));
        assert_eq!(ended.exit_code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{words}: {}", ended.stderr);
    }
}
