//! The shared UDP port: nothing is sent to an address that has not proved itself, and nothing
//! that an unknown sender sends opens or disturbs anything.

use std::net::UdpSocket;
use std::time::Duration;

use linerate_wire::native::datagram::{
    COOKIE_BYTES, Handshake, Hello, PADDED_BYTES, Proof, WELCOME_BYTES,
};

use crate::conversation::{Conversation, stream, workload};
use crate::ends::{Server, holds_within};
use crate::resources::Held;

/// An answer that has not come after so long does not come.
const SILENCE: Duration = Duration::from_millis(300);

/// A client's UDP socket that counts what it sends and gets.
struct Caller {
    socket: UdpSocket,
    sent_bytes: usize,
    received_bytes: usize,
}

impl Caller {
    fn new(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(SILENCE)).unwrap();
        Self { socket, sent_bytes: 0, received_bytes: 0 }
    }

    fn say(&mut self, message: &Handshake) {
        let mut bytes = [0; PADDED_BYTES];
        let length = message.encode(&mut bytes).unwrap();
        self.sent_bytes += self.socket.send(&bytes[..length]).unwrap();
    }

    /// What the server answers; `None` when it doesn't.
    fn hear(&mut self) -> Option<(Handshake, usize)> {
        let mut bytes = [0; 2048];
        let length = self.socket.recv(&mut bytes).ok()?;
        self.received_bytes += length;
        Some((Handshake::decode(&bytes[..length]).unwrap(), length))
    }

    fn ask(&mut self, message: &Handshake) -> Option<(Handshake, usize)> {
        self.say(message);
        self.hear()
    }
}

fn admitted(port: u16, flows: u32) -> (Conversation, [u8; 16]) {
    let mut conversation = Conversation::connect(port);
    conversation.greet();
    let token = conversation.ask(&workload(&stream("down"), "udp", flows));
    (conversation, token)
}

#[test]
fn only_a_running_tests_token_is_answered() {
    let server = Server::start("");
    let mut caller = Caller::new(server.port);
    let hello = |flow, token| Handshake::Hello(Hello { flow, token });
    assert_eq!(caller.ask(&hello(0, [7; 16])), None);
    let (conversation, token) = admitted(server.port, 1);
    assert_eq!(caller.ask(&hello(0, [7; 16])), None);
    // A flow that the test doesn't have.
    assert_eq!(caller.ask(&hello(1, token)), None);
    assert!(matches!(caller.ask(&hello(0, token)), Some((Handshake::Cookie(_), COOKIE_BYTES))));
    // The test is over, and its token with it.
    drop(conversation);
    server.await_record("test_ended");
    assert_eq!(caller.ask(&hello(0, token)), None);
    assert!(caller.received_bytes < caller.sent_bytes);
}

#[test]
fn only_the_address_that_got_the_cookie_opens_a_flow() {
    let server = Server::start("");
    let (_conversation, token) = admitted(server.port, 2);
    let held = Held::by(server.pid());
    let [mut owner, mut thief] = [Caller::new(server.port), Caller::new(server.port)];
    let hello = Handshake::Hello(Hello { flow: 0, token });
    let Some((Handshake::Cookie(cookie), _)) = owner.ask(&hello) else { panic!("no cookie") };
    let proof = |flow, cookie| Handshake::Proof(Proof { flow, token, cookie });
    // Replayed from another address, for another flow, and forged.
    assert_eq!(thief.ask(&proof(0, cookie.cookie)), None);
    assert_eq!(owner.ask(&proof(1, cookie.cookie)), None);
    let mut forged = cookie.cookie;
    forged[15] ^= 1;
    assert_eq!(owner.ask(&proof(0, forged)), None);
    assert_eq!(Held::by(server.pid()).descriptors, held.descriptors);

    let answer = owner.ask(&proof(0, cookie.cookie));
    assert!(matches!(answer, Some((Handshake::Welcome(_), WELCOME_BYTES))), "{answer:?}");
    // A flow that begins to send asks the kernel for its queue over a socket, which it closes again.
    let holds_one_more = || Held::by(server.pid()).descriptors == held.descriptors + 1;
    assert!(holds_within(Duration::from_secs(5), holds_one_more));
    // The flow stands, so the same proof opens no second one, wherever it comes from.
    assert_eq!(owner.ask(&proof(0, cookie.cookie)), None);
    assert_eq!(thief.ask(&proof(0, cookie.cookie)), None);
    assert_eq!(thief.ask(&hello), None);
    assert!(holds_within(Duration::from_secs(5), holds_one_more));
    assert_eq!(thief.received_bytes, 0);
    assert!(owner.received_bytes <= owner.sent_bytes);
}

#[test]
fn garbage_disturbs_no_test() {
    let server = Server::start("");
    let loads =
        ["stream --udp --both --verify --rate 5M --size 500", "rr --udp", "stream --rate 5M"];
    let clients = loads.map(|load| server.start_client(&format!("{load} --time 1s")));
    for _ in loads {
        server.await_record("test_started");
    }
    let stranger = Caller::new(server.port);
    let mut datagram = [0_u8; 1400];
    for round in 0..20_000_u32 {
        for (index, byte) in datagram.iter_mut().enumerate() {
            *byte = (round.wrapping_mul(2_654_435_761) >> (index % 24)) as u8;
        }
        // Each kind of ours, and QUIC's.
        datagram[0] = [0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0xc3][(round % 8) as usize];
        datagram[1..4].fill(0);
        let length = [1, 4, 16, 24, 32, 64, 65, 1400][(round / 8 % 8) as usize];
        let _queue_full = stranger.socket.send(&datagram[..length]);
        if round.is_multiple_of(100) {
            std::thread::sleep(Duration::from_millis(4));
        }
    }
    for client in clients {
        let document = client.finish().document(0);
        if document.json()["summary"]["datagrams"].is_object() {
            assert_eq!(document.count("datagrams/duplicated"), 0);
            assert_eq!(document.count("datagrams/lost"), 0);
        }
    }
    let mut bytes = [0; 64];
    assert!(stranger.socket.recv(&mut bytes).is_err(), "garbage was answered");
}
