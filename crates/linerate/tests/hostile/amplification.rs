//! A forged source address gets no more bytes than its forger sent, whatever is sent.

use std::net::UdpSocket;
use std::time::Duration;

use linerate_wire::native::datagram::{Handshake, Hello, PADDED_BYTES, Proof};

use crate::conversation::{Conversation, workload};
use crate::ends::Server;
use crate::extent::extent;
use crate::lot::Lot;

/// Every length that fits an Ethernet frame and more.
const LENGTHS: std::ops::RangeInclusive<usize> = 1..=1500;
/// First bytes: each message of ours, its neighbours, the ends of the range, QUIC's.
const KINDS: [u8; 12] = [0x00, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x3f, 0xc3];
/// Datagrams sent without seeing whether the server keeps up.
const AT_ONCE: u64 = 64;

/// An address that counts every byte that leaves it and every one that comes.
struct Address {
    socket: UdpSocket,
    sent_bytes: u64,
    received_bytes: u64,
    sent: u64,
}

impl Address {
    fn new(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, sent_bytes: 0, received_bytes: 0, sent: 0 }
    }

    fn say(&mut self, datagram: &[u8]) {
        // A closed port tells of an earlier datagram here: that one was said for nothing.
        if let Ok(length) = self.socket.send(datagram) {
            self.sent_bytes += length as u64;
            self.sent += 1;
        }
        while self.hear().is_some() {}
    }

    /// What has come; never more than was sent.
    fn hear(&mut self) -> Option<Vec<u8>> {
        let mut bytes = [0; 65_536];
        let length = self.socket.recv(&mut bytes).ok()?;
        self.received_bytes += length as u64;
        let (sent, received) = (self.sent_bytes, self.received_bytes);
        assert!(received <= sent, "{received} bytes came for {sent}");
        Some(bytes[..length].to_vec())
    }

    /// The answer to a message of the handshake, which is repeated until it comes.
    fn ask(&mut self, message: &Handshake) -> Handshake {
        let mut bytes = [0; PADDED_BYTES];
        let length = message.encode(&mut bytes).unwrap();
        for round in 0..2_000 {
            if round % 100 == 0 {
                self.sent_bytes += self.socket.send(&bytes[..length]).unwrap_or(0) as u64;
            }
            std::thread::sleep(Duration::from_millis(1));
            if let Some(answer) = self.hear() {
                return Handshake::decode(&answer).unwrap();
            }
        }
        panic!("no answer to {message:?}");
    }
}

/// A datagram of this kind and length, right as far as it goes, for this flow.
fn datagram(kind: u8, length: usize, flow: u32, token: [u8; 16]) -> Vec<u8> {
    let tag = u32::from_be_bytes(token[..4].try_into().unwrap()) ^ flow;
    let first = if kind < 0x25 { flow } else { tag };
    let mut bytes = [vec![kind, 0, 0, 0], first.to_be_bytes().to_vec()].concat();
    bytes.extend(if kind < 0x25 { token } else { [0; 16] });
    bytes.resize(length, 0);
    bytes
}

#[test]
fn a_forged_source_gets_no_more_than_was_sent() {
    let server = Server::start("");
    let mut conversation = Conversation::connect(server.port);
    conversation.greet();
    let rr = serde_json::json!({
        "name": "rr", "request_bytes": 16, "response_bytes": 9_000, "timeout_ns": 1_000_000_000,
    });
    let token = conversation.ask(&workload(&rr, "udp", 3));
    // Flow 0 stands, so that its own socket shares the port with the server's; 1 and 2 don't.
    let mut owner = Address::new(server.port);
    let Handshake::Cookie(cookie) = owner.ask(&Handshake::Hello(Hello { flow: 0, token })) else {
        panic!("no cookie")
    };
    let proof = Proof { flow: 0, token, cookie: cookie.cookie };
    assert!(matches!(owner.ask(&Handshake::Proof(proof)), Handshake::Welcome(_)));

    let mut honest = Address::new(server.port);
    let mut forged = Address::new(server.port);
    let mut lot = Lot::draw("forged datagrams");
    let hello = Handshake::Hello(Hello { flow: 1, token });
    let mut say = |datagram: &[u8]| {
        forged.say(datagram);
        if forged.sent.is_multiple_of(AT_ONCE) {
            // The server has taken in all that came before.
            assert!(matches!(honest.ask(&hello), Handshake::Cookie(_)));
            // The client's lease lasts.
            let ping = serde_json::json!({ "kind": "ping", "sent_ns": 1 });
            if lot.number().is_multiple_of(16) {
                conversation.say(&ping);
                conversation.hear();
            }
        }
        forged.received_bytes
    };
    for _ in 0..extent(1, 20) {
        for kind in KINDS {
            for length in LENGTHS {
                for flow in 0..2 {
                    say(&datagram(kind, length, flow, token));
                }
            }
        }
    }
    let mut lot = Lot::draw("mutated datagrams");
    let mut answered_bytes = 0;
    for _ in 0..extent(20_000, 1_000_000) {
        let length = lot.within(1..100);
        let mut mutant = datagram(*lot.one_of(&KINDS), length, lot.within(0..3) as u32, token);
        lot.mutate(&mut mutant);
        mutant.truncate(1_500);
        answered_bytes = say(&mutant);
    }
    std::thread::sleep(Duration::from_millis(300));
    while forged.hear().is_some() {}
    let (sent, received) = (forged.sent_bytes, forged.received_bytes);
    eprintln!("{} datagrams of {sent} bytes, {received} bytes came", forged.sent);
    assert!(answered_bytes > 0, "no hello was answered: nothing was shown");
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    server.measure("rr --udp --count 3").document(0);
}
