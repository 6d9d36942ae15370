//! Peers that stop reading: what is meant for them is bounded, and they hold nobody up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use linerate_wire::native::frame::encode_frame;
use serde_json::{Value, json};

use crate::conversation::{Conversation, connect_data, stream, workload};
use crate::ends::{Server, holds_within};
use crate::extent::{extent, is_long};
use crate::resources::{Held, assert_idle};

/// Nothing moves in a stopped load for 3 s, then it is given up; the rest is the machine being
/// busy.
const STALLED: Duration = Duration::from_secs(3 + 5);
/// A silent client loses its lease after 4 s.
const LEASE: Duration = Duration::from_secs(4 + 3);
/// A socket holds megabytes of pings, which a busy machine takes in in this time.
const UNREAD: Duration = Duration::from_secs(20);
/// A server keeps at most 1 MiB of answers and samples for one client, and what TLS makes of it.
const UNREAD_BYTES: u64 = 24 << 20;

fn rr() -> Value {
    json!({
        "name": "rr", "request_bytes": 1_000, "response_bytes": 100_000,
        "timeout_ns": 1_000_000_000,
    })
}

/// A client whose load runs.
fn running(port: u16, kind: &Value) -> (Conversation, TcpStream) {
    let mut conversation = Conversation::connect(port);
    conversation.greet();
    let mut plan = workload(kind, "tcp", 1);
    plan["interval_ns"] = json!(10_000_000);
    let token = conversation.ask(&plan);
    let flow = connect_data(port, 0, token);
    assert_eq!(conversation.hear()["kind"], "ready");
    conversation.say(&json!({ "kind": "start" }));
    assert_eq!(conversation.hear()["kind"], "started");
    (conversation, flow)
}

#[track_caller]
fn assert_served_within(server: &Server, patience: Duration) {
    let served = || server.measure("rr --count 3").exit_code == Some(0);
    assert!(holds_within(patience, served), "nobody was served: {:?}", server.records());
}

#[test]
fn one_that_reads_no_answers_costs_a_bounded_amount() {
    let server = Server::start("--max-tests 1");
    let idle = Held::by_idle(&server);
    let (mut conversation, _flow) = running(server.port, &stream("down"));
    conversation.socket().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let ping = encode_frame(b"{\"kind\":\"ping\",\"sent_ns\":1}", usize::MAX).unwrap();
    let (pings, until) = (ping.repeat(500), Instant::now() + Duration::from_secs(extent(3, 30)));
    let mut most = 0;
    while Instant::now() < until {
        // The server reads on, and drops the answers that nobody takes.
        conversation.say_bytes(&pings).unwrap();
        most = most.max(Held::by(server.pid()).resident_bytes);
    }
    let grown = most.saturating_sub(idle.resident_bytes);
    assert!(grown < UNREAD_BYTES, "{grown} bytes for one that reads nothing");
    // Silent now, but connected. What it said before is still to be read.
    assert_served_within(&server, LEASE + UNREAD);
    assert_idle(&server, idle, LEASE);
}

/// One that has finished, and goes on with its load all the same, has a minute. Nothing shorter
/// than the minute shows that, so the short form only sees that its connection is the price.
#[test]
fn one_that_goes_on_after_its_end_is_given_up() {
    let server = Server::start("--max-tests 1");
    let idle = Held::by_idle(&server);
    let (mut conversation, mut flow) = running(server.port, &rr());
    conversation.say(&json!({ "kind": "finish" }));
    let began = Instant::now();
    let goes_on = Duration::from_secs(extent(4, 70));
    let mut response = vec![0; 100_000];
    while began.elapsed() < goes_on {
        let asked = flow.write_all(&[0; 1_000]).and_then(|()| flow.read_exact(&mut response));
        let ping = encode_frame(b"{\"kind\":\"ping\",\"sent_ns\":1}", usize::MAX).unwrap();
        if asked.is_err() || conversation.say_bytes(&ping).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let took = began.elapsed();
    if is_long() {
        assert!(took < Duration::from_secs(65), "{took:?}");
    } else {
        assert!(took >= goes_on, "a load that goes on was cut off after {took:?}");
    }
    drop((conversation, flow));
    assert_served_within(&server, Duration::from_secs(2));
    assert_idle(&server, idle, LEASE);
}

#[test]
fn one_that_reads_no_load_is_given_up() {
    for kind in [stream("down"), rr()] {
        let server = Server::start("--max-tests 1");
        let idle = Held::by_idle(&server);
        let (mut conversation, mut flow) = running(server.port, &kind);
        // Requests for ever, whose responses nobody reads, until the server takes no more.
        flow.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        if kind["name"] == "rr" {
            while flow.write_all(&[0; 1_000]).is_ok() {}
        } else {
            std::thread::sleep(Duration::from_millis(300));
        }
        conversation.say(&json!({ "kind": "finish" }));
        let finished = Instant::now();
        let result = loop {
            conversation.say(&json!({ "kind": "ping", "sent_ns": 1 }));
            let message = conversation.hear();
            if message["kind"] == "result" {
                break message["report"].as_str().unwrap().to_owned();
            }
            assert!(finished.elapsed() < STALLED, "no result: {message}");
        };
        assert!(result.contains("given up"), "{result}");
        // The client has not closed, and the next one is served.
        assert_served_within(&server, Duration::from_secs(2));
        drop((conversation, flow));
        assert_idle(&server, idle, LEASE);
    }
}
