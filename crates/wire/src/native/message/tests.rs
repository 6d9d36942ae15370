use proptest::prelude::*;

use super::*;
use crate::native::LeaseWish;
use crate::visible::visible_line;

fn hex(digits: usize) -> impl Strategy<Value = String> {
    prop::string::string_regex(&format!("[0-9a-f]{{{digits}}}")).unwrap()
}

/// A text that may be shown: what else a peer sends is decoded with points in its place.
fn text() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| visible_line(&text))
}

fn short_text() -> impl Strategy<Value = String> {
    "\\PC{0,30}".prop_map(|text| visible_line(&text))
}

fn sent() -> impl Strategy<Value = Sent> {
    let count = |(flow, datagrams)| FlowCount { flow, datagrams };
    prop::collection::vec((any::<u32>(), any::<u64>()).prop_map(count), 0..50)
        .prop_map(|datagrams| Sent { datagrams })
}

fn client_message() -> impl Strategy<Value = ClientMessage> {
    let hello = (
        prop::collection::vec(any::<u16>(), 1..=MAX_VERSIONS),
        short_text(),
        prop::option::of(hex(64)),
    );
    prop_oneof![
        hello.prop_map(|(versions, software, proof)| {
            ClientMessage::Hello(ClientHello { versions, software, proof })
        }),
        (text(), any::<bool>(), any::<bool>()).prop_map(|(plan, exclusive, begins_lease)| {
            let lease = (exclusive && !begins_lease).then(|| "ab".repeat(16));
            ClientMessage::Request(Request { plan, exclusive, begins_lease, lease })
        }),
        any::<u64>().prop_map(|sent_ns| ClientMessage::Ping(Ping { sent_ns })),
        prop::option::of(0..=i64::MAX)
            .prop_map(|at_utc_ns| ClientMessage::Start(Start { at_utc_ns })),
        sent().prop_map(ClientMessage::Sent),
        Just(ClientMessage::Finish),
    ]
}

fn cause() -> impl Strategy<Value = RefusalCause> {
    use RefusalCause::{Busy, Host, Key, Limit, Plan, Protocol, Version};
    prop::sample::select(vec![Version, Key, Busy, Limit, Plan, Host, Protocol])
}

fn server_message() -> impl Strategy<Value = ServerMessage> {
    prop_oneof![
        (any::<u16>(), short_text(), any::<bool>()).prop_map(
            |(version, software, key_required)| {
                ServerMessage::Hello(ServerHello { version, software, key_required })
            }
        ),
        (1..=u32::MAX).prop_map(|place| ServerMessage::Queued(Queued { place })),
        (hex(32), hex(32), text()).prop_map(|(run_id, token, host)| {
            let lease = Some(token.clone()).filter(|_| host.len() % 2 == 0);
            ServerMessage::Admitted(Admitted { run_id, token, host, lease })
        }),
        (cause(), text()).prop_map(|(cause, text)| ServerMessage::Refused(Refused { cause, text })),
        any::<(u64, i64, i64, Option<u64>)>().prop_map(
            |(sent_ns, received_ns, replied_ns, monotonic_ns)| {
                ServerMessage::Pong(Pong { sent_ns, received_ns, replied_ns, monotonic_ns })
            }
        ),
        Just(ServerMessage::Ready),
        any::<i64>().prop_map(|utc_ns| ServerMessage::Started(Started { utc_ns })),
        text().prop_map(|sample| ServerMessage::Sample(Sample { sample })),
        sent().prop_map(ServerMessage::Sent),
        text().prop_map(|report| ServerMessage::Result(Report { report })),
        text().prop_map(|text| ServerMessage::Error(Failure { text })),
    ]
}

proptest! {
    #[test]
    fn client_messages_round_trip(message in client_message()) {
        let body = serde_json::to_vec(&message).unwrap();
        prop_assert_eq!(ClientMessage::decode(&body), Ok(message.clone()));
        let object: serde_json::Value = serde_json::from_slice(&body).unwrap();
        prop_assert_eq!(object.get("kind").and_then(|kind| kind.as_str()), Some(message.kind()));
    }

    #[test]
    fn server_messages_round_trip(message in server_message()) {
        let body = serde_json::to_vec(&message).unwrap();
        prop_assert_eq!(ServerMessage::decode(&body), Ok(message.clone()));
        let object: serde_json::Value = serde_json::from_slice(&body).unwrap();
        prop_assert_eq!(object.get("kind").and_then(|kind| kind.as_str()), Some(message.kind()));
    }

    #[test]
    fn any_bytes_decode_or_not(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = ClientMessage::decode(&body);
        let _ = ServerMessage::decode(&body);
    }
}

#[test]
fn unknown_fields_are_ignored_and_unknown_kinds_are_not() {
    let ping = ClientMessage::decode(br#"{"later":{"a":[1]},"sent_ns":1,"kind":"ping"}"#);
    assert_eq!(ping, Ok(ClientMessage::Ping(Ping { sent_ns: 1 })));
    let text = ClientMessage::decode(br#"{"kind":"pong"}"#).unwrap_err().to_string();
    assert!(text.contains("unknown kind \"pong\""), "{text}");
}

#[test]
fn out_of_bounds_is_refused() {
    let long = |bytes: usize| "a".repeat(bytes);
    let versions = |count: usize| vec![1; count];
    let hello = |versions, software, proof| {
        ClientMessage::Hello(ClientHello { versions, software, proof }).check()
    };
    assert!(hello(versions(1), long(MAX_SOFTWARE_BYTES), Some(long(64))).is_ok());
    assert!(hello(versions(0), String::new(), None).is_err());
    assert!(hello(versions(17), String::new(), None).is_err());
    assert!(hello(versions(1), long(MAX_SOFTWARE_BYTES + 1), None).is_err());
    assert!(hello(versions(1), String::new(), Some(long(63))).is_err());
    assert!(hello(versions(1), String::new(), Some("g".repeat(64))).is_err());
    assert!(hello(versions(1), String::new(), Some("é".repeat(32))).is_err());
    let request = LeaseWish::None.request(long(MAX_PLAN_BYTES + 1), false);
    assert!(ClientMessage::Request(request).check().is_err());
    let request = |begins_lease, lease| {
        let (plan, exclusive) = (String::new(), false);
        ClientMessage::Request(Request { plan, exclusive, begins_lease, lease }).check()
    };
    assert!(request(true, None).is_ok() && request(false, Some(long(32))).is_ok());
    assert!(request(false, Some(long(31))).is_err());
    assert!(request(true, Some(long(32))).is_err(), "a lease within a lease");
    assert!(ClientMessage::Start(Start { at_utc_ns: Some(-1) }).check().is_err());
    let datagrams = vec![FlowCount { flow: 0, datagrams: 0 }; MAX_COUNTS + 1];
    assert!(ClientMessage::Sent(Sent { datagrams }).check().is_err());
    assert!(ServerMessage::Queued(Queued { place: 0 }).check().is_err());
    let admitted = Admitted { run_id: long(32), token: long(31), host: String::new(), lease: None };
    assert!(ServerMessage::Admitted(admitted).check().is_err());
    assert!(ServerMessage::Error(Failure { text: long(MAX_TEXT_BYTES + 1) }).check().is_err());
}

#[test]
fn the_largest_count_fits_its_frame() {
    let datagrams = vec![FlowCount { flow: u32::MAX, datagrams: u64::MAX }; MAX_COUNTS];
    let body = serde_json::to_vec(&ClientMessage::Sent(Sent { datagrams })).unwrap();
    assert!(body.len() <= crate::native::frame::TO_SERVER_LIMIT_BYTES);
}

#[test]
fn hostile_json_is_refused_without_harm() {
    let deep = "[".repeat(200_000);
    let nested = format!("{{\"kind\":\"ping\",\"sent_ns\":{deep}");
    let ignored =
        format!("{{\"kind\":\"ping\",\"sent_ns\":1,\"x\":{deep}{}}}", "]".repeat(200_000));
    let hostile = [
        b"\xff\xfe".as_slice(),
        b"{\"kind\":\"\xff\"}",
        b"null",
        b"{}",
        b"{\"kind\":1}",
        b"{\"kind\":\"ping\"}",
        b"{\"kind\":\"ping\",\"sent_ns\":-1}",
        b"{\"kind\":\"ping\",\"sent_ns\":1e400}",
        b"{\"kind\":\"ping\",\"sent_ns\":18446744073709551616}",
        b"{\"kind\":\"ping\",\"sent_ns\":1,\"sent_ns\":2}",
        b"{\"kind\":\"ping\",\"kind\":\"finish\",\"sent_ns\":1}",
        b"{\"kind\":\"finish\"} {\"kind\":\"finish\"}",
        b"{\"kind\":\"request\",\"plan\":{\"not\":\"a string\"}}",
        deep.as_bytes(),
        nested.as_bytes(),
    ];
    for body in hostile {
        assert!(ClientMessage::decode(body).is_err(), "{:?}", String::from_utf8_lossy(body));
    }
    // An unknown field is ignored however often it stands there.
    let twice = b"{\"kind\":\"ping\",\"x\":1,\"sent_ns\":1,\"x\":2}".as_slice();
    assert!(ClientMessage::decode(twice).is_ok());
    // Whatever stands in an unknown field is skipped without a stack that grows with it.
    assert!(ClientMessage::decode(ignored.as_bytes()).is_ok());
}
