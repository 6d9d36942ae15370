//! A UDP address whose every byte is counted.

use std::net::UdpSocket;
use std::time::Duration;

use linerate_wire::native::datagram::{Handshake, Hello, PADDED_BYTES, Proof};

/// First bytes: each message of ours, its neighbours, the ends of the range, QUIC's.
pub(crate) const KINDS: [u8; 12] =
    [0x00, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x3f, 0xc3];
/// An address that counts every byte that leaves it and every one that comes.
pub(crate) struct Address {
    pub(crate) socket: UdpSocket,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent: u64,
    /// The flow of the last hello that showed how far the server is.
    shown: u32,
}

impl Address {
    pub(crate) fn new(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, sent_bytes: 0, received_bytes: 0, sent: 0, shown: 1 }
    }

    pub(crate) fn say(&mut self, datagram: &[u8]) {
        // A closed port tells of an earlier datagram here: that one was said for nothing.
        if let Ok(length) = self.socket.send(datagram) {
            self.sent_bytes += length as u64;
            self.sent += 1;
        }
        while self.hear().is_some() {}
    }

    /// What has come; never more than was sent.
    pub(crate) fn hear(&mut self) -> Option<Vec<u8>> {
        let mut bytes = [0; 65_536];
        let length = self.socket.recv(&mut bytes).ok()?;
        self.received_bytes += length as u64;
        let (sent, received) = (self.sent_bytes, self.received_bytes);
        assert!(received <= sent, "{received} bytes came for {sent}");
        Some(bytes[..length].to_vec())
    }

    /// The answer to a message of the handshake, which is repeated until it comes. Later answers to
    /// an earlier message, which was repeated too soon, are none.
    pub(crate) fn ask(&mut self, message: &Handshake) -> Handshake {
        let mut bytes = [0; PADDED_BYTES];
        let length = message.encode(&mut bytes).unwrap();
        self.socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        for _ in 0..20 {
            self.sent_bytes += self.socket.send(&bytes[..length]).unwrap_or(0) as u64;
            self.socket.set_nonblocking(false).unwrap();
            let mut heard = std::iter::from_fn(|| self.hear());
            let answer = heard.find_map(|heard| answer_to(message, &heard));
            self.socket.set_nonblocking(true).unwrap();
            if let Some(answer) = answer {
                return answer;
            }
        }
        panic!("no answer to {message:?}");
    }

    /// Comes back when the server has taken in all that came before; flows 1 and 2 of the test are
    /// lacking. Each time it is the other flow's turn, so that no answer counts for a later time.
    pub(crate) fn await_server(&mut self, token: [u8; 16]) {
        self.shown = 3 - self.shown;
        self.ask(&Handshake::Hello(Hello { flow: self.shown, token }));
    }

    /// Opens the flow: from now on the address is known to be its owner's.
    pub(crate) fn prove(&mut self, flow: u32, token: [u8; 16]) {
        let answer = self.ask(&Handshake::Hello(Hello { flow, token }));
        let Handshake::Cookie(cookie) = answer else { panic!("no cookie: {answer:?}") };
        let proof = Proof { flow, token, cookie: cookie.cookie };
        self.ask(&Handshake::Proof(proof));
    }
}

fn answer_to(message: &Handshake, heard: &[u8]) -> Option<Handshake> {
    let heard = Handshake::decode(heard).unwrap();
    let is_answer = match (message, &heard) {
        (Handshake::Hello(hello), Handshake::Cookie(cookie)) => hello.flow == cookie.flow,
        (Handshake::Proof(proof), Handshake::Welcome(welcome)) => proof.flow == welcome.flow,
        _ => false,
    };
    is_answer.then_some(heard)
}

/// A datagram of this kind and length, right as far as it goes, for this flow.
pub(crate) fn datagram(kind: u8, length: usize, flow: u32, token: [u8; 16]) -> Vec<u8> {
    let tag = u32::from_be_bytes(token[..4].try_into().unwrap()) ^ flow;
    let first = if kind < 0x25 { flow } else { tag };
    let mut bytes = [vec![kind, 0, 0, 0], first.to_be_bytes().to_vec()].concat();
    bytes.extend(if kind < 0x25 { token } else { [0; 16] });
    bytes.resize(length, 0);
    bytes
}
