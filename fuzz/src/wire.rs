//! The decoders and machines of the wire crate. Each function takes any bytes and panics only
//! when the decoder or machine is wrong.

use linerate_wire::native::client::{Client, ClientConfig, ClientEvent};
use linerate_wire::native::datagram::{DataHeader, Handshake, PADDED_BYTES, RrHeader};
use linerate_wire::native::frame::{
    FrameReader, TO_CLIENT_LIMIT_BYTES, TO_SERVER_LIMIT_BYTES, encode_frame,
};
use linerate_wire::native::message::{
    ClientMessage, FlowCount, MessageError, RefusalCause, ServerMessage,
};
use linerate_wire::native::opening::{OPENING_BYTES, Opening, sniff};
use linerate_wire::native::server::{Server, ServerConfig, ServerEvent};
use linerate_wire::native::{LeaseWish, Stage};
use linerate_wire::{Machine, Now};

/// Frames to a server: any split gives the same, and what decodes encodes to what decodes alike.
pub fn client_frames(data: &[u8]) {
    for body in frames(data, TO_SERVER_LIMIT_BYTES) {
        let encode = |message: &ClientMessage| serde_json::to_vec(message).unwrap_or_default();
        check_round_trip(&body, ClientMessage::decode, encode);
    }
}

/// Frames to a client, likewise.
pub fn server_frames(data: &[u8]) {
    for body in frames(data, TO_CLIENT_LIMIT_BYTES) {
        let encode = |message: &ServerMessage| serde_json::to_vec(message).unwrap_or_default();
        check_round_trip(&body, ServerMessage::decode, encode);
    }
}

/// A client, a peer that says anything, and a caller that does anything.
pub fn client_machine(data: &[u8]) {
    let mut now = Now::default();
    let software = "fuzz".to_owned();
    let plan = "{}".to_owned();
    let config = ClientConfig {
        software,
        proof: None,
        plan,
        exclusive: false,
        stays: data.len().is_multiple_of(2),
        lease: match data.len() % 3 {
            0 => LeaseWish::None,
            1 => LeaseWish::Begin,
            _ => LeaseWish::Join([7; 16]),
        },
    };
    let mut client = Client::new(config, now);
    let mut ended = 0;
    let mut last_ping = Vec::new();
    for_each_op(data, |op, bytes| {
        let was_over = client.is_over();
        match op {
            0 => client.handle_bytes(now, bytes),
            1 => client.handle_end(now),
            2 => client.start(bytes.first().map(|byte| i64::from(*byte) << 55)),
            3 => client.sent(&[FlowCount { flow: 1, datagrams: 2 }]),
            4 if bytes.len() % 2 == 1 => client.ask("{}".to_owned(), false),
            4 => client.finish(),
            5 => pass_time(&mut now, bytes),
            6 => client.handle_bytes(now, &last_ping),
            7 => client.handle_timeout(now),
            _ => client.handle_bytes(now, &canned(TO_CLIENT, op)),
        }
        while let Some(frame) = client.poll_message() {
            let message = ClientMessage::decode(frame.get(4..).unwrap_or_default());
            if let Ok(ClientMessage::Ping(ping)) = &message {
                let sent_ns = ping.sent_ns;
                last_ping = framed(&format!(
                    r#"{{"kind":"pong","sent_ns":{sent_ns},"received_ns":-1,"replied_ns":1}}"#
                ));
            }
            assert!(message.is_ok(), "a client says only what a server understands");
        }
        while let Some(event) = client.poll_event() {
            assert!(!was_over, "nothing happens after the end");
            ended += u32::from(matches!(
                event,
                ClientEvent::Result(_) | ClientEvent::Refused { .. } | ClientEvent::Failed(_)
            ));
        }
        assert!(ended <= 1, "a conversation ends once");
        assert_eq!(client.next_time().is_none(), client.is_over());
    });
}

/// A server, a peer that says anything, and a caller that does anything.
pub fn server_machine(data: &[u8]) {
    let mut now = Now::default();
    let software = "fuzz".to_owned();
    let mut server = Server::new(ServerConfig { software, expected_proof: None }, now);
    let mut failed = 0;
    for_each_op(data, |op, bytes| {
        let was_over = server.is_over();
        match op {
            0 => server.handle_bytes(now, bytes),
            1 => server.handle_end(now),
            2 => server.admit([0; 16], [0; 16], "{}"),
            3 => server.queue(u32::from(bytes.first().copied().unwrap_or(0))),
            4 => server.ready(),
            5 => pass_time(&mut now, bytes),
            6 => server.started(now.utc_ns),
            7 => server.handle_timeout(now),
            8 => server.sample(String::from_utf8_lossy(bytes).into_owned()),
            9 => server.result(String::from_utf8_lossy(bytes).into_owned()),
            10 => server.error(&String::from_utf8_lossy(bytes)),
            11 => server.refuse(RefusalCause::Busy, &String::from_utf8_lossy(bytes)),
            12 => server.sent(&[FlowCount { flow: 1, datagrams: 2 }]),
            _ => server.handle_bytes(now, &canned(TO_SERVER, op)),
        }
        // A peer that doesn't read leaves frames unwritten: an empty operation reads none.
        while let Some(frame) = (!bytes.is_empty()).then(|| server.poll_message()).flatten() {
            let message = ServerMessage::decode(frame.get(4..).unwrap_or_default());
            assert!(message.is_ok(), "a server says only what a client understands");
        }
        while let Some(event) = server.poll_event() {
            assert!(!was_over, "nothing happens after the end");
            failed += u32::from(matches!(event, ServerEvent::Failed(_)));
        }
        assert!(failed <= 1, "a conversation fails once");
        assert_eq!(server.next_time().is_none(), server.is_over());
        assert_eq!(server.stage() == Stage::Over, server.is_over());
    });
}

/// Messages of UDP flows: what decodes encodes to the same bytes.
pub fn datagram(data: &[u8]) {
    let mut again = [0; PADDED_BYTES];
    if let Ok(message) = Handshake::decode(data) {
        assert_eq!(message.encode(&mut again), Ok(data.len()));
        assert_eq!(again.get(..data.len()), Some(data));
    }
    if let Ok(header) = DataHeader::decode(data) {
        assert!(header.encode(&mut again).is_ok());
        assert_eq!(again.get(..24), data.get(..24));
    }
    if let Ok(header) = RrHeader::decode(data) {
        assert!(header.encode(&mut again).is_ok());
        assert_eq!(again.get(..16), data.get(..16));
    }
}

/// The first bytes of a connection: what decodes encodes to the same bytes.
pub fn opening(data: &[u8]) {
    assert_eq!(sniff(data).is_none(), data.is_empty());
    if let Some(bytes) = data.first_chunk::<OPENING_BYTES>()
        && let Ok(opening) = Opening::decode(bytes)
    {
        assert_eq!(&opening.encode(), bytes);
    }
}

/// The bodies of the frames in a stream whose first byte says in what pieces it comes.
fn frames(data: &[u8], limit_bytes: usize) -> Vec<Vec<u8>> {
    let Some((piece_bytes, stream)) = data.split_first() else { return Vec::new() };
    let read = |piece_bytes: usize| {
        let mut reader = FrameReader::new(limit_bytes);
        let mut bodies = Vec::new();
        for piece in stream.chunks(piece_bytes.max(1)) {
            reader.handle_bytes(piece);
            while let Ok(Some(body)) = reader.poll_frame() {
                bodies.push(body.to_vec());
            }
        }
        bodies
    };
    let bodies = read(usize::from(*piece_bytes));
    assert_eq!(bodies, read(stream.len()));
    bodies
}

fn check_round_trip<M: PartialEq + std::fmt::Debug>(
    body: &[u8],
    decode: fn(&[u8]) -> Result<M, MessageError>,
    encode: impl Fn(&M) -> Vec<u8>,
) {
    match decode(body) {
        Ok(message) => assert_eq!(decode(&encode(&message)).as_ref(), Ok(&message)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Reads operations: one byte says which, one how many bytes belong to it, then those.
fn for_each_op(data: &[u8], mut operate: impl FnMut(u8, &[u8])) {
    let mut rest = data;
    while let [op, length, after @ ..] = rest {
        let (bytes, next) = after.split_at(usize::from(*length).min(after.len()));
        operate(op % 32, bytes);
        rest = next;
    }
}

/// Lets up to 25.5 s pass.
fn pass_time(now: &mut Now, bytes: &[u8]) {
    let steps = bytes.first().copied().unwrap_or(1);
    now.monotonic_ns += u64::from(steps) * 100_000_000;
    now.utc_ns += i64::from(steps) * 100_000_000;
}

fn framed(json: &str) -> Vec<u8> {
    encode_frame(json.as_bytes(), TO_CLIENT_LIMIT_BYTES).unwrap_or_default()
}

fn canned(frames: &[&str], op: u8) -> Vec<u8> {
    let place = usize::from(op) % frames.len();
    framed(frames.get(place).copied().unwrap_or_default())
}

const TO_SERVER: &[&str] = &[
    r#"{"kind":"hello","versions":[1],"software":"fuzz"}"#,
    r#"{"kind":"request","plan":"{}"}"#,
    r#"{"kind":"ping","sent_ns":1}"#,
    r#"{"kind":"start"}"#,
    r#"{"kind":"sent","datagrams":[{"flow":1,"datagrams":2}]}"#,
    r#"{"kind":"finish"}"#,
];

const TO_CLIENT: &[&str] = &[
    r#"{"kind":"hello","version":1,"software":"fuzz"}"#,
    r#"{"kind":"queued","place":1}"#,
    r#"{"kind":"admitted","run_id":"00000000000000000000000000000000","token":"00000000000000000000000000000000","host":"{}"}"#,
    r#"{"kind":"ready"}"#,
    r#"{"kind":"started","utc_ns":5}"#,
    r#"{"kind":"sample","sample":"{}"}"#,
    r#"{"kind":"sent","datagrams":[]}"#,
    r#"{"kind":"result","report":"{}"}"#,
    r#"{"kind":"refused","cause":"busy","text":"x"}"#,
    r#"{"kind":"error","text":"x"}"#,
];
