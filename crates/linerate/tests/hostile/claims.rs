//! Announcements beyond every limit: refused with a sentence, and paid for with no memory.

use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use linerate_wire::native::datagram::{HELLO, PADDED_BYTES};
use linerate_wire::native::frame::encode_frame;
use serde_json::{Value, json};

use crate::address::{Address, datagram};
use crate::conversation::{Conversation, connect_data, stream, workload};
use crate::ends::Server;
use crate::resources::{Held, assert_idle};

/// What a server may take for a while, for a peer that is then refused.
const PASSING_BYTES: u64 = 48 << 20;

fn frame(message: &Value) -> Vec<u8> {
    encode_frame(message.to_string().as_bytes(), usize::MAX).unwrap()
}

/// Says these bytes once greeted; what the server says to that.
fn answer(port: u16, bytes: &[u8]) -> Value {
    let mut conversation = Conversation::connect(port);
    conversation.greet();
    // The server may close before it has read all.
    let _closed = conversation.say_bytes(bytes);
    conversation.hear_or_end().expect("a sentence")
}

#[track_caller]
fn assert_says(answer: &Value, kind: &str, words: &str) {
    assert_eq!(answer["kind"], kind, "{answer}");
    assert!(answer["text"].as_str().unwrap().contains(words), "no {words:?} in {answer}");
}

#[test]
fn a_client_that_says_it_is_done_and_sends_on_is_cut_off_at_the_longest_time() {
    let server = Server::start("--max-tests 1 --max-time 1s");
    let mut plan = workload(&stream("up"), "tcp", 1);
    plan["end"] = json!({ "by": "bytes", "bytes": u64::MAX });
    let mut conversation = Conversation::connect(server.port);
    conversation.greet();
    let token = conversation.ask(&plan);
    let mut flow = connect_data(server.port, 0, token);
    assert_eq!(conversation.hear()["kind"], "ready");
    conversation.say(&json!({ "kind": "start" }));
    assert_eq!(conversation.hear()["kind"], "started");
    let sending = thread::spawn(move || {
        // Never at rest for as long as a stall, until the server has had enough.
        while flow.write_all(&[0; 1_400]).is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    });
    conversation.say(&json!({ "kind": "finish" }));
    let began = Instant::now();
    let report = loop {
        conversation.say(&json!({ "kind": "ping", "sent_ns": 1 }));
        let message = conversation.hear();
        if message["kind"] == "result" {
            break message["report"].as_str().unwrap().to_owned();
        }
        // The load's minute for reporting is no minute for receiving.
        assert!(began.elapsed() < Duration::from_secs(20), "no result: {message}");
        thread::sleep(Duration::from_millis(200));
    };
    assert!(report.contains("--max-time"), "{report}");
    drop(conversation);
    sending.join().unwrap();
    server.measure("rr --count 3").document(0);
}

#[test]
fn frames_and_fields_beyond_their_limits_are_refused_by_name() {
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let counts = |flows: u64| vec![json!({ "flow": 0, "datagrams": u64::MAX }); flows as usize];
    let deep = format!("{{\"kind\":\"request\",\"plan\":{}", "[".repeat(200_000));
    let cases = [
        (u32::MAX.to_be_bytes().to_vec(), "a frame claims 4294967295 bytes; the limit is 262144"),
        (262_145_u32.to_be_bytes().to_vec(), "a frame claims 262145 bytes; the limit is 262144"),
        (vec![0; 4], "a frame is empty"),
        (encode_frame(deep.as_bytes(), usize::MAX).unwrap(), "not a message"),
        (frame(&json!({ "kind": "x".repeat(65_536) })), "unknown kind"),
        (frame(&json!({ "kind": "sent", "datagrams": counts(4_097) })), "4097 flows, the limit is"),
        (
            frame(&json!({ "kind": "sent", "datagrams": counts(4_096) })),
            "the message sent is out of order",
        ),
        (
            frame(&json!({ "kind": "request", "plan": "p".repeat(131_073) })),
            "plan has 131073 bytes, the limit is 131072",
        ),
        (
            b"\0\0\0\x30{\"kind\":\"ping\",\"sent_ns\":18446744073709551616   }".to_vec(),
            "not a message",
        ),
        (frame(&json!({ "kind": "start", "at_utc_ns": -1 })), "before 1970"),
    ];
    for (bytes, words) in cases {
        assert_says(&answer(server.port, &bytes), "error", words);
    }
    for (hello, words) in [
        (json!({ "versions": vec![1; 17], "software": "x" }), "versions: 17 of them"),
        (
            json!({ "versions": [1], "software": "s".repeat(65_536) }),
            "software has 65536 bytes, the limit is 128",
        ),
    ] {
        let mut conversation = Conversation::connect(server.port);
        let mut hello = hello;
        hello["kind"] = json!("hello");
        conversation.say(&hello);
        assert_says(&conversation.hear(), "error", words);
    }
    assert_idle(&server, idle, Duration::from_secs(5));
    let grown = Held::by(server.pid()).resident_bytes.saturating_sub(idle.resident_bytes);
    assert!(grown < PASSING_BYTES, "{grown} bytes more than before");
}

/// A plan by which a server would have to hold more than it may, though each window is one that can be asked for.
fn asking_for_windows() -> String {
    let mut plan = workload(&stream("up"), "quic", 10_000);
    plan["quic"] = json!({ "connection_window_bytes": 0x4000_0000 });
    plan.to_string()
}

#[test]
fn plans_beyond_their_limits_are_refused_with_a_cause() {
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let with = |field: &str, value: Value| {
        let mut plan = workload(&stream("up"), "tcp", 1);
        *plan.pointer_mut(field).expect("a field") = value;
        plan.to_string()
    };
    let cases = [
        (with("/flows", json!(1_000_001)), "plan", "1000001"),
        (asking_for_windows(), "plan", "windows of all connections"),
        (with("/flows", json!(u64::MAX)), "plan", "can't be read"),
        (workload(&stream("up"), "quic", 100_001).to_string(), "plan", "100001"),
        (with("/kind/send_bytes", json!(16 * 1024 * 1024 + 1)), "plan", "16777217"),
        (with("/kind/send_bytes", json!(0)), "plan", "0"),
        (with("/interval_ns", json!(1)), "plan", "interval"),
        (with("/end/duration_ns", json!(u64::MAX)), "plan", "time"),
        (format!("{{\"x\":{}", "[".repeat(100_000)), "plan", "can't be read"),
        (format!("\"{}\"", "x".repeat(65_536)), "plan", "can't be read"),
    ];
    for (plan, cause, words) in cases {
        let answer = answer(server.port, &frame(&json!({ "kind": "request", "plan": plan })));
        assert_says(&answer, "refused", words);
        assert_eq!(answer["cause"], cause, "{answer}");
    }
    assert_idle(&server, idle, Duration::from_secs(5));
    let grown = Held::by(server.pid()).resident_bytes.saturating_sub(idle.resident_bytes);
    assert!(grown < PASSING_BYTES, "{grown} bytes more than before");
}

/// Over QUIC a client has an address for each of its threads, however many flows; each that it proves takes a
/// descriptor of the server's.
#[test]
fn no_more_addresses_are_taken_than_the_threads_of_a_client_need() {
    let server = Server::start("");
    for (threads, beyond) in [(Some(3), [3, 99_999]), (None, [1_024, 99_999])] {
        let mut plan = workload(&stream("up"), "quic", 100_000);
        if let Some(threads) = threads {
            plan["threads"] = json!(threads);
        }
        let mut conversation = Conversation::connect(server.port);
        conversation.greet();
        let token = conversation.ask(&plan);
        let mut owner = Address::new(server.port);
        owner.prove(0, token);
        for number in beyond {
            let mut greedy = Address::new(server.port);
            greedy.say(&datagram(HELLO, PADDED_BYTES, number, token));
            // Numbers 1 and 2 are answered, and after what came before.
            Address::new(server.port).await_server(token);
            assert_eq!(greedy.hear(), None, "{threads:?} threads: {number} is taken");
        }
    }
}

/// Numbers that are allowed, and as large as they can be, overflow nothing.
#[test]
fn the_largest_numbers_do_no_harm() {
    let server = Server::start("--max-tests 1");
    let idle = Held::by_idle(&server);
    let mut plan = workload(&stream("up"), "udp", 1);
    plan["interval_ns"] = json!(10_000_000);
    let soon = UNIX_EPOCH.elapsed().unwrap() + Duration::from_secs(1800);
    let soon_ns = i64::try_from(soon.as_nanos()).unwrap();
    let ends =
        [json!({ "by": "bytes", "bytes": u64::MAX }), json!({ "by": "count", "count": u64::MAX })];
    for (end, at_utc_ns, answer) in ends
        .into_iter()
        .flat_map(|end| [(end.clone(), i64::MAX, "error"), (end, soon_ns, "started")])
    {
        let mut plan = workload(&stream("down"), "tcp", 1);
        plan["end"] = end;
        let mut conversation = Conversation::connect(server.port);
        conversation.greet();
        let token = conversation.ask(&plan);
        let _flow = connect_data(server.port, 0, token);
        assert_eq!(conversation.hear()["kind"], "ready");
        conversation.say(&json!({ "kind": "ping", "sent_ns": u64::MAX }));
        assert_eq!(conversation.hear()["sent_ns"], u64::MAX);
        conversation.say(&json!({ "kind": "start", "at_utc_ns": at_utc_ns }));
        assert_eq!(conversation.hear()["kind"], answer);
        if answer == "started" {
            let counts = vec![json!({ "flow": u32::MAX, "datagrams": u64::MAX }); 4_096];
            conversation.say(&json!({ "kind": "sent", "datagrams": counts }));
        }
        thread::sleep(Duration::from_millis(100));
        drop(conversation);
        assert_idle(&server, idle, Duration::from_secs(5));
    }
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    server.measure("rr --count 3").document(0);
}
