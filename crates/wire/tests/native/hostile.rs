//! Strangers and attackers.

use linerate_wire::Machine;
use linerate_wire::native::client::{Client, ClientConfig, ClientEvent};
use linerate_wire::native::frame::{LENGTH_BYTES, encode_frame};
use linerate_wire::native::server::{MAX_UNSENT_BYTES, Server, ServerConfig, ServerEvent};
use linerate_wire::native::{Fault, Stage};
use proptest::prelude::*;

use crate::pair::{MS, SECOND, client_config, now, server_config};

fn say(json: &str) -> Vec<u8> {
    encode_frame(json.as_bytes(), usize::MAX).unwrap()
}

fn open_server() -> Server {
    Server::new(ServerConfig { expected_proof: None, ..server_config() }, now(0))
}

const HELLO: &str = r#"{"kind":"hello","versions":[1],"software":"x"}"#;
const REQUEST: &str = r#"{"kind":"request","plan":"{}","exclusive":false}"#;

/// Frames that are wrong wherever they come.
fn wrong_frames() -> Vec<Vec<u8>> {
    let deep = format!("{{\"kind\":\"hello\",\"versions\":{}", "[".repeat(100_000));
    vec![
        vec![0; 4],
        vec![0xff; 4],
        say("{"),
        say("[1,2]"),
        say("{\"kind\":\"no_such\"}"),
        say(&deep),
        encode_frame(b"{\"kind\":\"\xff\xfe\"}", usize::MAX).unwrap(),
        encode_frame(b"\0\0\0", usize::MAX).unwrap(),
    ]
}

#[test]
fn wrong_frames_end_the_conversation() {
    for frame in wrong_frames() {
        for greeted in [false, true] {
            let mut server = open_server();
            if greeted {
                server.handle_bytes(now(0), &say(HELLO));
            }
            server.handle_bytes(now(0), &frame);
            let event = server.poll_event();
            assert!(matches!(event, Some(ServerEvent::Failed(_))), "{event:?}");
            assert!(server.is_over());
            assert!(server.poll_message().is_some(), "the peer is told");

            let mut client = Client::new(client_config(), now(0));
            if greeted {
                let hello = r#"{"kind":"hello","version":1,"software":"x"}"#;
                client.handle_bytes(now(0), &say(hello));
                let _ = client.poll_event();
            }
            client.handle_bytes(now(0), &frame);
            let event = client.poll_event();
            assert!(matches!(event, Some(ClientEvent::Failed(_))), "{event:?}");
            assert!(client.is_over());
        }
    }
}

#[test]
fn a_stranger_is_shown() {
    for (words, shown) in [
        (b"SSH-2.0-OpenSSH_9.2\r\n".as_slice(), "SSH-2.0-OpenSSH_9.2.."),
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP/1.1 400 Bad Request.."),
    ] {
        let mut client = Client::new(client_config(), now(0));
        client.handle_bytes(now(0), words);
        let seen = shown.to_owned();
        assert_eq!(client.poll_event(), Some(ClientEvent::Failed(Fault::NotLinerate { seen })));
    }
    let mut server = open_server();
    server.handle_bytes(now(0), b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let event = server.poll_event();
    assert!(matches!(event, Some(ServerEvent::Failed(Fault::NotLinerate { .. }))), "{event:?}");
}

#[test]
fn messages_out_of_order_end_the_conversation() {
    let out_of_order = [
        vec![REQUEST],
        vec![r#"{"kind":"finish"}"#],
        vec![r#"{"kind":"ping","sent_ns":1}"#],
        vec![HELLO, HELLO],
        vec![HELLO, r#"{"kind":"start"}"#],
        vec![HELLO, r#"{"kind":"sent","datagrams":[]}"#],
        vec![HELLO, REQUEST, REQUEST],
        vec![HELLO, REQUEST, r#"{"kind":"start"}"#],
    ];
    for messages in out_of_order {
        let mut server = open_server();
        for message in &messages {
            server.handle_bytes(now(0), &say(message));
        }
        let last = std::iter::from_fn(|| server.poll_event()).last();
        let protocol = matches!(last, Some(ServerEvent::Failed(Fault::Protocol(_))));
        assert!(protocol, "{messages:?}: {last:?}");
    }
}

#[test]
fn a_pong_that_answers_no_ping_is_refused() {
    let mut client = Client::new(client_config(), now(0));
    client.handle_bytes(now(0), &say(r#"{"kind":"hello","version":1,"software":"x"}"#));
    let pong = r#"{"kind":"pong","sent_ns":5,"received_ns":0,"replied_ns":0}"#;
    client.handle_bytes(now(0), &say(pong));
    let last = std::iter::from_fn(|| client.poll_event()).last();
    assert!(matches!(last, Some(ClientEvent::Failed(Fault::Protocol(_)))), "{last:?}");
}

/// One byte every 100 ms keeps nobody's lease.
#[test]
fn a_dribble_keeps_no_lease() {
    for asked in [false, true] {
        let mut server = open_server();
        if asked {
            server.handle_bytes(now(0), &say(HELLO));
            server.handle_bytes(now(0), &say(REQUEST));
        }
        let long = say(&format!("{{\"kind\":\"ping\",\"x\":\"{}\"}}", "x".repeat(1000)));
        let mut elapsed_ns = 0;
        for byte in long {
            elapsed_ns += 100 * MS;
            server.handle_bytes(now(elapsed_ns), &[byte]);
            if server.next_time().is_some_and(|due| due <= elapsed_ns) {
                server.handle_timeout(now(elapsed_ns));
            }
            if server.is_over() {
                break;
            }
        }
        assert!(server.is_over());
        assert!(elapsed_ns <= 4 * SECOND);
    }
}

#[test]
fn pings_whose_answers_nobody_reads_fill_no_memory() {
    let mut server = open_server();
    server.handle_bytes(now(0), &say(HELLO));
    server.handle_bytes(now(0), &say(REQUEST));
    server.queue(3);
    let ping = say(r#"{"kind":"ping","sent_ns":1}"#);
    for _ in 0..100_000 {
        server.handle_bytes(now(0), &ping);
    }
    let unsent: usize = std::iter::from_fn(|| server.poll_message()).map(|frame| frame.len()).sum();
    assert!(unsent < MAX_UNSENT_BYTES + 1000, "{unsent}");
}

/// A client that goes on pinging when it has its result is not kept for ever.
#[test]
fn pings_after_the_result_keep_no_connection() {
    let mut server = open_server();
    for message in [HELLO, REQUEST] {
        server.handle_bytes(now(0), &say(message));
    }
    server.admit([0; 16], [0; 16], "{}");
    server.ready();
    server.handle_bytes(now(0), &say(r#"{"kind":"start"}"#));
    server.started(0);
    server.handle_bytes(now(0), &say(r#"{"kind":"finish"}"#));
    server.result("{}".to_owned());
    assert_eq!(server.stage(), Stage::Delivering);
    let mut elapsed_ns = 0;
    while !server.is_over() {
        while server.poll_message().is_some() {}
        elapsed_ns += SECOND;
        server.handle_bytes(now(elapsed_ns), &say(r#"{"kind":"ping","sent_ns":1}"#));
        server.handle_timeout(now(elapsed_ns));
        assert!(elapsed_ns <= 61 * SECOND);
    }
    assert!(
        !std::iter::from_fn(|| server.poll_event())
            .any(|event| matches!(event, ServerEvent::Failed(_)))
    );
}

/// A client that pings and reads nothing keeps neither its connection nor the result's memory.
#[test]
fn pings_of_one_that_never_reads_its_result_keep_no_connection() {
    let mut server = open_server();
    for message in [HELLO, REQUEST] {
        server.handle_bytes(now(0), &say(message));
    }
    server.admit([0; 16], [0; 16], "{}");
    server.ready();
    server.handle_bytes(now(0), &say(r#"{"kind":"start"}"#));
    server.started(0);
    server.handle_bytes(now(0), &say(r#"{"kind":"finish"}"#));
    server.result("{}".to_owned());
    let mut elapsed_ns = 0;
    while !server.is_over() {
        elapsed_ns += SECOND;
        server.handle_bytes(now(elapsed_ns), &say(r#"{"kind":"ping","sent_ns":1}"#));
        server.handle_timeout(now(elapsed_ns));
        assert!(elapsed_ns <= 61 * SECOND);
    }
    let last = std::iter::from_fn(|| server.poll_event()).last();
    let fault = Fault::Stalled { after_ns: 60 * SECOND, stage: Stage::Delivering };
    assert_eq!(last, Some(ServerEvent::Failed(fault)));
}

#[test]
fn stamps_of_any_size_are_no_harm() {
    for extreme in [i64::MIN, -1, 0, i64::MAX] {
        let start = linerate_wire::Now { monotonic_ns: u64::MAX - 10, utc_ns: extreme };
        let mut client = Client::new(client_config(), start);
        client.handle_bytes(start, &say(r#"{"kind":"hello","version":1,"software":"x"}"#));
        let hex = "0".repeat(32);
        let admitted =
            format!(r#"{{"kind":"admitted","run_id":"{hex}","token":"{hex}","host":""}}"#);
        client.handle_bytes(start, &say(&admitted));
        let pong = format!(
            r#"{{"kind":"pong","sent_ns":{},"received_ns":{extreme},"replied_ns":{extreme}}}"#,
            start.monotonic_ns
        );
        client.handle_bytes(start, &say(&pong));
        client.handle_bytes(start, &say(r#"{"kind":"ready"}"#));
        client.start(Some(i64::MAX));
        client.handle_timeout(start);
        assert!(client.next_time().is_some());
    }
}

proptest! {
    /// Whatever comes, in whatever pieces: no panic, and nothing after the end.
    #[test]
    fn any_frames_are_survived(
        bodies in prop::collection::vec(
            prop_oneof![
                Just(HELLO.as_bytes().to_vec()),
                Just(REQUEST.as_bytes().to_vec()),
                Just(br#"{"kind":"start","at_utc_ns":5}"#.to_vec()),
                Just(br#"{"kind":"finish"}"#.to_vec()),
                Just(br#"{"kind":"ping","sent_ns":18446744073709551615}"#.to_vec()),
                Just(br#"{"kind":"sent","datagrams":[{"flow":1,"datagrams":2}]}"#.to_vec()),
                prop::collection::vec(any::<u8>(), 1..60),
            ],
            0..12,
        ),
    ) {
        let mut server = open_server();
        for body in bodies {
            let frame = encode_frame(&body, usize::MAX).unwrap_or_default();
            prop_assert!(frame.len() > LENGTH_BYTES);
            server.handle_bytes(now(0), &frame);
            match server.poll_event() {
                Some(ServerEvent::Request { .. }) => {
                    server.admit([0; 16], [0; 16], "{}");
                    server.ready();
                }
                Some(ServerEvent::Start { .. }) => server.started(0),
                _ => {}
            }
        }
        if server.is_over() {
            prop_assert_eq!(server.next_time(), None);
        }
    }
}

#[test]
fn a_client_that_did_not_ask_to_measure_alone_is_not_kept_waiting() {
    let queued = say(r#"{"kind":"queued","place":1}"#);
    for exclusive in [false, true] {
        let config = ClientConfig { exclusive, ..client_config() };
        let mut client = Client::new(config, now(0));
        let hello = r#"{"kind":"hello","version":1,"software":"x"}"#;
        client.handle_bytes(now(0), &say(hello));
        client.handle_bytes(now(0), &queued);
        assert_eq!(client.is_over(), !exclusive);
    }
}
