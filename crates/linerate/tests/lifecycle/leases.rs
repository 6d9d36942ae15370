//! Leases: tests on several connections that are one to the server.

use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::Duration;

use linerate_wire::native::frame::encode_frame;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::{Value, json};

use crate::conversation::{Conversation, stream, workload};
use crate::ends::{Server, holds_within};

/// How often it is tried where the machine has no time for a client, whose place is then given to others.
const ATTEMPTS: usize = 5;

/// A conversation from this address of the machine.
fn connect_from(address: Ipv4Addr, port: u16) -> Conversation {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddrV4::new(address, 0)).unwrap();
    connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap();
    let socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut conversation = Conversation::over(socket);
    conversation.greet();
    conversation
}

/// Asks for a test, with what else stands in the request; the server's answer. `None`: it waited for too long.
fn ask(conversation: &mut Conversation, lease: Value) -> Option<Value> {
    let plan = workload(&stream("up"), "tcp", 1).to_string();
    let mut request = json!({ "kind": "request", "plan": plan });
    request.as_object_mut().unwrap().extend(lease.as_object().cloned().unwrap());
    conversation.say(&request);
    conversation.hear_or_end().filter(|answer| answer["kind"] != "error")
}

/// Whether the server still keeps the place of a client.
fn is_kept(conversation: &mut Conversation) -> bool {
    let ping = encode_frame(br#"{"kind":"ping","sent_ns":1}"#, usize::MAX).unwrap();
    conversation.say_bytes(&ping).is_ok()
        && std::iter::from_fn(|| conversation.hear_or_end()).any(|said| said["kind"] == "pong")
}

/// What clients are told while one holds a lease at a server of one test: with its token, with another one, with its token
/// from another address, and with none. `None`: the machine had no time for the holder or its other client.
fn answers(server: &Server) -> Option<[Value; 4]> {
    let connect = || connect_from(Ipv4Addr::LOCALHOST, server.port);
    let (mut holder, mut other) = (connect(), connect());
    let admitted = ask(&mut holder, json!({ "begins_lease": true }))?;
    let token = admitted["lease"].as_str()?.to_owned();
    assert_ne!(admitted["lease"], admitted["token"], "which crosses in clear");
    let within = ask(&mut other, json!({ "lease": token }))?;
    let with_another = ask(&mut connect(), json!({ "lease": "ab".repeat(16) }))?;
    let mut distant = connect_from(Ipv4Addr::new(127, 0, 0, 2), server.port);
    let from_afar = ask(&mut distant, json!({ "lease": token }))?;
    let without = ask(&mut connect(), json!({}))?;
    let are_kept = is_kept(&mut holder) && is_kept(&mut other);
    are_kept.then_some([within, with_another, from_afar, without])
}

#[test]
fn only_tests_with_its_token_and_from_its_address_belong_to_a_lease() {
    let server = Server::start("--max-tests 1");
    let is_free = || matches!(server.measure("rr --count 1").exit_code, Some(0 | 6));
    let told = (0..ATTEMPTS).find_map(|_| {
        let told = answers(&server);
        assert!(holds_within(Duration::from_secs(60), is_free), "all clients have gone");
        told
    });
    let [within, with_another, from_afar, without] = told.expect("a client that isn't given up");
    assert_eq!(within["kind"], "admitted", "{within}");
    assert!(within["lease"].is_null(), "it holds none itself: {within}");
    for refused in [&with_another, &from_afar, &without] {
        assert_eq!((&refused["kind"], &refused["cause"]), (&"refused".into(), &"busy".into()));
    }
    for foreign in [&with_another, &from_afar] {
        assert!(foreign["text"].as_str().unwrap().contains("isn't this client's"), "{foreign}");
    }
    assert!(without["text"].as_str().unwrap().contains("1 tests run"), "{without}");
}
