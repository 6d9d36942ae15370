//! Streams that go in both directions at the same time over one connection.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use linerate_wire::native::opening::{MAGIC, OPENING_BYTES};
use serde_json::Value;

use crate::document::Document;
use crate::ends::{Client, Server};

#[test]
fn all_bytes_of_both_directions_arrive_over_one_connection_for_two_flows() {
    let server = Server::start("");
    for transport in ["--tcp", "--tls", "--quic"] {
        for (bytes, flags, connections) in [
            (1_u64, "", 1),
            (10_000_007, "--flows 3 --threads 2", 3),
            (1_000_001, "--flows 2 --rate 400M --threads 1", 2),
            (2_000_000, "--flows 4 --size 1000", 4),
        ] {
            let words = format!("stream {transport} --duplex --verify {flags} --bytes {bytes}");
            let document = server.measure(&words).document(0);
            for figure in ["received_bytes", "sent_bytes"] {
                assert_eq!(document.count(figure), 2 * bytes, "{words}");
            }
            let right = |role| document.sum_of_flows(role, "verification/verified_bytes");
            assert_eq!((right("client"), right("server")), (bytes, bytes), "{words}");
            let flows = document.report("client")["flows"].as_array().unwrap();
            assert_eq!(flows.len(), 2 * connections, "{words}");
            let local = |flow: usize| &flows[flow]["socket"]["local"];
            for flow in 0..connections {
                assert_eq!(local(flow), local(flow + connections), "{words}");
                assert!(transport == "--quic" || flow == 0 || local(flow) != local(0), "{words}");
            }
        }
    }
}

#[test]
fn a_duplex_stream_of_some_time_has_a_rate_in_each_direction_without_its_warm_up() {
    let server = Server::start("");
    for (transport, rate, range) in [
        ("--tcp", "--rate 40M", 30e6..45e6),
        ("--tls", "--rate 40M", 30e6..45e6),
        ("--quic", "", 10e6..1e12),
    ] {
        let words = format!("stream {transport} --duplex {rate} --time 1s --omit 300ms");
        let mut seen = Vec::new();
        // Other programs can hold a sender up in one run, but no run may surpass its rate.
        let is_kept = (0..6).any(|_| {
            let document = server.measure(&words).document(0);
            let rates = ["goodput_up_bps", "goodput_down_bps"].map(|name| document.figure(name));
            assert!(rates.iter().all(|rate| *rate < range.end), "{words}: {rates:?}");
            seen.push(rates);
            rates.iter().all(|rate| range.contains(rate))
        });
        assert!(is_kept, "{words}: {seen:?}");
    }
}

/// Copies one direction, with one bit flipped at this offset.
fn copy(mut from: TcpStream, mut to: TcpStream, flip_at: Option<u64>) {
    let (mut buffer, mut offset) = (vec![0; 10_000], 0);
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if let Some(at) = flip_at.and_then(|at| at.checked_sub(offset))
            && let Some(byte) = buffer[..length].get_mut(at as usize)
        {
            *byte ^= 0x20;
        }
        offset += length as u64;
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _gone = to.shutdown(Shutdown::Write);
}

/// Carries connections to a server, and flips one bit of each data connection at these offsets in its data, on the way
/// to the server and to the client; its port.
fn start_relay(server_port: u16, up: Option<u64>, down: Option<u64>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut first = [0; MAGIC.len()];
                while client.peek(&mut first).is_ok_and(|length| (1..MAGIC.len()).contains(&length))
                {
                }
                let is_data = first == MAGIC;
                let server = TcpStream::connect(("127.0.0.1", server_port)).unwrap();
                let (forth, back) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let up = up.map(|up| up + OPENING_BYTES as u64).filter(|_| is_data);
                thread::spawn(move || copy(forth, server, up));
                copy(back, client, down.filter(|_| is_data));
            });
        }
    });
    port
}

/// The runs of wrong bytes that an end found in its flows: offsets and lengths.
fn wrong_runs(document: &Document, role: &str) -> Vec<(u64, u64)> {
    let flows = document.report(role)["flows"].as_array().unwrap();
    let runs = flows.iter().filter_map(|flow| flow["verification"]["wrong_runs"].as_array());
    let number = |run: &Value, name: &str| run[name].as_u64().unwrap();
    runs.flatten().map(|run| (number(run, "offset"), number(run, "bytes"))).collect()
}

#[test]
fn a_wrong_byte_of_either_direction_is_found_at_its_offset_by_its_receiver() {
    let server = Server::start("");
    for (up, down) in
        [(Some(70_001), None), (None, Some(123_456)), (Some(0), Some(499_999)), (None, None)]
    {
        let port = start_relay(server.port, up, down);
        let words = format!(
            "stream 127.0.0.1 --port {port} --tcp --duplex --verify --flows 2 --bytes 1M --json \
             --quiet --server-key {}",
            server.fingerprint
        );
        let is_wrong = up.or(down).is_some();
        let ended = Client::start(server.home(), &words).finish();
        let document = ended.document(if is_wrong { 6 } else { 0 });
        // Of each of the two connections.
        let expected = |at: Option<u64>| at.map_or(vec![], |at| vec![(at, 1); 2]);
        assert_eq!(wrong_runs(&document, "server"), expected(up), "{words}");
        assert_eq!(wrong_runs(&document, "client"), expected(down), "{words}");
        let wrong_bytes = document.json()["summary"]["wrong_bytes"].as_u64().unwrap_or(0);
        assert_eq!(wrong_bytes, 2 * up.iter().chain(&down).count() as u64, "{words}");
    }
}
