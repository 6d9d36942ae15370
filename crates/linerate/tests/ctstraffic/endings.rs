//! Runs that are ended by a time limit, ends whose options differ, and what is said of calls that failed.

use std::io::Read as _;
use std::net::{TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::fixture::{Ended, Folder, PORT, own_address, run_client, start, start_server};
use crate::peer::reset;

#[test]
fn a_time_limit_closes_connections_in_order_though_data_is_unread() {
    let (address, folder) = (own_address(), Folder::new());
    let words = "-pattern:duplex -transfer:10000000000";
    let files = "-serverexitlimit:2 -connectionfilename:server.csv";
    let server = start_server(address, &format!("{words} {files}"), &folder);
    let client = format!("{words} -connections:2 -timelimit:500");
    let client = run_client(address, &client, &folder);
    assert_eq!((client.exit_code, client.totals()), (254, [0, 0, 0]), "{client:?}");
    server.wait();
    let rows = folder.rows("server.csv");
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        // The server sees an end before its time. The client resets one that took no end for half a second, which is the
        // server's own delay.
        let time_ms: u64 = row[7].parse().unwrap();
        let is_late = row[8].starts_with("10054:") && time_ms >= 1000;
        assert!(row[8] == "ErrorNotAllDataTransferred" || is_late, "{row:?}");
    }
}

#[test]
fn a_time_limit_takes_what_a_server_of_pull_still_sends_for_half_a_second() {
    let (address, folder) = (own_address(), Folder::new());
    let server = "-pattern:pull -transfer:2000000 -ratelimit:2000000 -serverexitlimit:2";
    let server = start_server(address, server, &folder);
    let client = "-pattern:pull -transfer:2000000 -connections:2 -timelimit:800";
    let client = run_client(address, client, &folder);
    assert_eq!((client.exit_code, client.totals()), (254, [0, 0, 0]), "{client:?}");
    let server = server.wait();
    assert_eq!(server.totals(), [2, 0, 0], "{server:?}");
}

#[test]
fn a_time_limit_resets_a_server_of_pull_that_sends_for_longer() {
    let (address, folder) = (own_address(), Folder::new());
    let words = "-pattern:pull -transfer:20000000 -ratelimit:1000000";
    let files = "-serverexitlimit:2 -connectionfilename:server.csv";
    let server = start_server(address, &format!("{words} {files}"), &folder);
    let client = format!("{words} -connections:2 -timelimit:500");
    let client = run_client(address, &client, &folder);
    assert_eq!((client.exit_code, client.totals()), (254, [0, 0, 0]), "{client:?}");
    let server = server.wait();
    assert_eq!(server.totals(), [0, 2, 0], "{server:?}");
    for row in folder.rows("server.csv") {
        assert_eq!(row[8], "10054: Connection reset by peer", "{row:?}");
        // Not before half a second more was sent, and not at the transfer's end, after 20 s.
        let time_ms: u64 = row[7].parse().unwrap();
        assert!((900..15_000).contains(&time_ms), "{row:?}");
    }
}

/// What a document of `--json` says was sent and received: in all, and the sum of its rows of status.
fn amounts(ended: &Ended) -> [(u64, u64); 2] {
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let bytes = |part: &Value, name: &str| part[name].as_u64().unwrap();
    let rows = document["status"].as_array().unwrap();
    let sum = |name: &str| rows.iter().map(|row| bytes(row, name)).sum();
    let all = |name: &str| bytes(&document, name);
    [(all("sent_bytes"), all("received_bytes")), (sum("sent_bytes"), sum("received_bytes"))]
}

#[test]
fn no_end_receives_more_than_the_other_says_it_sent_before_a_time_limit() {
    for pattern in ["push", "pull", "pushpull", "duplex"] {
        for (client, server) in [("-timelimit:700", ""), ("", "-timelimit:1200")] {
            let (address, folder) = (own_address(), Folder::new());
            let words = format!("-pattern:{pattern} -transfer:1000000000000 --json");
            let server = start_server(address, &format!("{words} {server}"), &folder);
            let words = format!("-target:{address} {words} -connections:24 -statusupdate:100");
            let is_clients = !client.is_empty();
            let client = start(&format!("{words} {client}"), &folder);
            let (client, server) = if is_clients {
                let client = client.wait();
                // The server has read all by then, as the client's connections are closed.
                thread::sleep(Duration::from_millis(300));
                (client, server.interrupt())
            } else {
                // The client begins connections anew that nobody accepts.
                let server = server.wait();
                (client.interrupt(), server)
            };
            let ([here, of_rows], [there, of_server_rows]) = (amounts(&client), amounts(&server));
            assert_eq!((here, there), (of_rows, of_server_rows), "{pattern}");
            assert!(here.0 >= there.1, "{pattern}: the client sent {here:?}, the server {there:?}");
            assert!(there.0 >= here.1, "{pattern}: the client sent {here:?}, the server {there:?}");
            let moved = if pattern == "pull" { there.0 } else { here.0 };
            assert!(moved > 1_000_000, "{pattern}: {here:?}, {there:?}");
            if is_clients && pattern == "push" {
                assert!(here.0 <= there.1 + 24 * 65_536, "{here:?}, {there:?}");
            }
        }
    }
}

#[test]
fn a_client_of_a_larger_transfer_fails_the_server_and_is_reset() {
    for shutdown in ["graceful", "rude"] {
        let (address, folder) = (own_address(), Folder::new());
        let words = "-transfer:100000 -serverexitlimit:1 -connectionfilename:server.csv";
        let server = start_server(address, words, &folder);
        let words = format!("-transfer:200000 -connections:1 -iterations:1 -shutdown:{shutdown}");
        let words = format!("{words} -connectionfilename:client.csv");
        run_client(address, &words, &folder);
        server.wait();
        let server = folder.rows("server.csv");
        assert_eq!(server[0][8], "ErrorTooMuchDataTransferred", "{server:?}");
        // The client may have read DONE before the reset, and its kernel may have taken all.
        let client = folder.rows("client.csv");
        let result = client[0][8].as_str();
        assert!(result == "10054: Connection reset by peer" || result == "Succeeded", "{client:?}");
    }
}

#[test]
fn errors_name_the_call_that_failed() {
    let (address, folder) = (own_address(), Folder::new());
    // Nobody has this address (RFC 5737).
    let stream = "-protocol:udp -bitspersecond:80000 -framerate:10 -streamlength:1";
    let words = format!("{stream} -iterations:1 -bind:192.0.2.1");
    let ended = run_client(address, &words, &folder);
    assert!(ended.stderr.contains("] bind failed (10049) "), "{ended:?}");
    let words = "-transfer:1000 -connections:1 -iterations:1";
    let ended = run_client(address, words, &folder);
    assert!(ended.stderr.contains("] connect failed (10061) "), "{ended:?}");
    // The server of push only receives; the reset is seen there.
    let server = start_server(address, "-transfer:1000 -serverexitlimit:1", &folder);
    let mut peer = TcpStream::connect((address, PORT)).unwrap();
    peer.read_exact(&mut [0; 37]).unwrap();
    reset(peer);
    let ended = server.wait();
    assert!(ended.stderr.contains("] recv failed (10054) "), "{ended:?}");
}

#[test]
fn wrong_data_of_a_stream_has_one_line_with_its_id_and_frame() {
    let (address, folder) = (own_address(), Folder::new());
    let server = UdpSocket::bind((address, PORT)).unwrap();
    let stream = "-protocol:udp -bitspersecond:80000 -framerate:10 -streamlength:1 --strict";
    let words = format!("-target:{address} {stream} -iterations:1 -errorfilename:e.txt");
    let client = start(&words, &folder);
    let (_, peer) = server.recv_from(&mut [0; 10]).unwrap();
    let id = "b060598b-3bdb-4b90-9b3b-cfc0a15e636b";
    server.send_to(&[&[0, 0x10][..], id.as_bytes(), &[0]].concat(), peer).unwrap();
    let mut datagram = vec![0; 26];
    datagram[2] = 3;
    datagram.extend([7, 7]);
    server.send_to(&datagram, peer).unwrap();
    let ended = client.wait();
    assert_eq!(ended.totals(), [0, 0, 1], "{ended:?}");
    let line = format!("{address}:{PORT}: frame 3: [{id}] wrong data: byte 0 is 0x07");
    for text in [&ended.stdout, &folder.read("e.txt")] {
        assert_eq!(text.matches(&line).count(), 1, "{text}");
        assert_eq!(text.matches("wrong data").count(), 1, "{text}");
    }
}

#[test]
fn a_flood_of_bad_datagrams_has_some_lines_and_is_counted() {
    let (address, folder) = (own_address(), Folder::new());
    let stream = "-protocol:udp -bitspersecond:80000 -framerate:10 -streamlength:1";
    let words = format!("-listen:{address} {stream} -timelimit:1500 -errorfilename:e.txt --ndjson");
    let server = start(&words, &folder);
    thread::sleep(Duration::from_millis(300));
    let stranger = UdpSocket::bind((address, 0)).unwrap();
    for number in 0..1000 {
        let _nobody_yet = stranger.send_to(b"HELLO", (address, PORT));
        if number % 50 == 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }
    let ended = server.wait();
    let last = ended.stdout.lines().last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert!(last["frames"]["errors"].as_u64().unwrap() > 100, "{last}");
    for text in [&ended.stderr, &folder.read("e.txt")] {
        let lines = text.matches("is not START").count();
        assert!((10..=30).contains(&lines), "{lines} {text}");
    }
    assert!(ended.stderr.contains(" bad datagrams have no line"), "{ended:?}");
}

#[test]
fn devices_that_are_not_there_are_refused_at_the_start() {
    let (address, folder) = (own_address(), Folder::new());
    for words in ["-compartment:no-such-device", "-compartment:lo -ifindex:1"] {
        let ended = run_client(address, words, &folder);
        assert_eq!(ended.exit_code, 13, "{ended:?}");
        assert!(ended.stderr.contains("-Compartment"), "{ended:?}");
    }
}
