//! A QUIC client without a library: it completes the handshake and then sends arbitrary packets.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::Duration;

use rustls::quic::{ClientConnection, DirectionalKeys, KeyChange, Keys};

use crate::dialect::FLOOD;
use crate::quic_packets::{Opening, first_keys, sealed};
use crate::random::Random;

/// What gets no answer is said again after so long, so many times.
const AGAIN: Duration = Duration::from_secs(1);
const TRIES: usize = 20;
/// Kinds of packets with a long header (RFC 9000, section 17.2).
const INITIAL: u8 = 0;
const HANDSHAKE: u8 = 2;

/// A connection that stands.
pub(crate) struct RawClient {
    socket: UdpSocket,
    server_id: Vec<u8>,
    parameters: Vec<u8>,
    number: u32,
}

impl RawClient {
    /// Connects to a server at this port.
    pub(crate) fn connect(port: u16, random: &mut Random) -> Self {
        let socket = UdpSocket::bind((FLOOD, 0)).unwrap();
        socket.connect((FLOOD, port)).unwrap();
        socket.set_read_timeout(Some(AGAIN)).unwrap();
        let (opening, mut tls) = Opening::begin(random);
        let destination = random.number().to_be_bytes();
        let mut handshake = Handshake::new(first_keys(destination));
        let first = opening.packet(destination, 0, &opening.frames);
        let mut bytes = vec![0; 65_536];
        let mut finished = None;
        for _ in 0..TRIES {
            socket.send(&first).unwrap();
            while finished.is_none()
                && let Ok(length) = socket.recv(&mut bytes)
            {
                handshake.take_in(&mut bytes[..length]);
                finished = handshake.go_on(&mut tls);
            }
            if finished.is_some() {
                break;
            }
        }
        let finished = finished.expect("the server answers");
        let keys = handshake.keys.get(&HANDSHAKE).unwrap();
        let mut frames = vec![0x06, 0x00];
        frames.extend((finished.len() as u16 | 0x4000).to_be_bytes());
        frames.extend(finished);
        let server_id = handshake.server_id;
        let packet = sealed(opening.header(0xe3, &server_id), 0, frames, &keys.local);
        socket.send(&packet).unwrap();
        let parameters = tls.quic_transport_parameters().unwrap().to_vec();
        let mut client = Self { socket, server_id, parameters, number: 0 };
        assert!(client.is_answered(), "the server goes on");
        client
    }

    /// A number among what the server says of itself (RFC 9000, section 18.2).
    pub(crate) fn parameter(&self, wanted: u64) -> u64 {
        let mut rest = &self.parameters[..];
        while !rest.is_empty() {
            let id = take_varint(&mut rest);
            let length = take_varint(&mut rest) as usize;
            if id == wanted {
                return take_varint(&mut rest);
            }
            rest = &rest[length..];
        }
        0
    }

    /// The streams that it may open at first, both ways and one way (RFC 9000, sections 2.1 and 18.2).
    pub(crate) fn streams(&self) -> impl Iterator<Item = u64> {
        let numbers = |kind, parameter| (0..self.parameter(parameter)).map(move |at| 4 * at + kind);
        numbers(0, 0x08).chain(numbers(2, 0x09))
    }

    /// Sends frames in a packet that isn't sealed.
    pub(crate) fn say(&mut self, frames: &[u8]) {
        let mut packet = vec![0x43];
        packet.extend(&self.server_id);
        packet.extend(self.number.to_be_bytes());
        packet.extend(frames);
        self.number += 1;
        // What the kernel has no room for is lost, as in any network.
        let _lost = self.socket.send(&packet);
    }

    /// Whether the server still answers, and has taken in what came before.
    pub(crate) fn is_answered(&mut self) -> bool {
        let mut bytes = [0; 2048];
        self.socket.set_nonblocking(true).unwrap();
        while self.socket.recv(&mut bytes).is_ok() {}
        self.socket.set_nonblocking(false).unwrap();
        (0..TRIES).any(|_| {
            // Twice, as every second packet is acknowledged at once.
            self.say(&[0x01, 0, 0, 0]);
            self.say(&[0x01, 0, 0, 0]);
            // Behind its header, as the id there has 8 bytes, and every number 4.
            let answer = self.socket.recv(&mut bytes);
            answer.is_ok_and(|length| {
                bytes[0] & 0x80 == 0
                    && bytes[..length].get(13..).is_some_and(|said| !is_close(said))
            })
        })
    }
}

/// What is known before a connection stands.
struct Handshake {
    keys: BTreeMap<u8, Keys>,
    server_id: Vec<u8>,
    /// Pieces of TLS's words, by the kind of their packets and their place, and how much was read.
    pieces: BTreeMap<(u8, u64), Vec<u8>>,
    read: BTreeMap<u8, u64>,
    /// Packets that came before their keys.
    early: Vec<Vec<u8>>,
}

impl Handshake {
    fn new(first: Keys) -> Self {
        Self {
            keys: BTreeMap::from([(INITIAL, first)]),
            server_id: Vec::new(),
            pieces: BTreeMap::new(),
            read: BTreeMap::new(),
            early: Vec::new(),
        }
    }

    /// Takes in the packets of a datagram.
    fn take_in(&mut self, mut datagram: &mut [u8]) {
        while datagram.first().is_some_and(|first| first & 0x80 != 0) {
            let kind = datagram[0] >> 4 & 3;
            let mut rest = &datagram[6 + usize::from(datagram[5])..];
            let id = rest[1..=usize::from(rest[0])].to_vec();
            rest = &rest[1 + id.len()..];
            if kind == INITIAL {
                let token = take_varint(&mut rest) as usize;
                rest = &rest[token..];
            }
            let length = take_varint(&mut rest) as usize;
            let number_at = datagram.len() - rest.len();
            let (packet, after) = datagram.split_at_mut(number_at + length);
            self.server_id = id;
            match self.keys.get(&kind) {
                Some(keys) => {
                    let frames = opened(packet, number_at, &keys.remote);
                    self.keep(kind, &frames);
                }
                None => self.early.push(packet.to_vec()),
            }
            datagram = after;
        }
    }

    /// Keeps what frames say to TLS.
    fn keep(&mut self, kind: u8, mut frames: &[u8]) {
        while let Some((frame, rest)) = frames.split_first() {
            frames = rest;
            match frame {
                0x00 | 0x01 => {}
                0x02 | 0x03 => {
                    skip_acknowledgement(*frame, &mut frames);
                }
                0x06 => {
                    let place = take_varint(&mut frames);
                    let length = take_varint(&mut frames) as usize;
                    let (bytes, after) = frames.split_at(length);
                    self.pieces.insert((kind, place), bytes.to_vec());
                    frames = after;
                }
                other => panic!("a frame of kind {other} in a handshake"),
            }
        }
    }

    /// Lets TLS read what has come; its last words, once it has said them.
    fn go_on(&mut self, tls: &mut ClientConnection) -> Option<Vec<u8>> {
        for kind in [INITIAL, HANDSHAKE] {
            let read = self.read.entry(kind).or_default();
            while let Some(bytes) = self.pieces.get(&(kind, *read)) {
                tls.read_hs(bytes).unwrap();
                *read += bytes.len() as u64;
            }
            let mut said = Vec::new();
            while let Some(change) = tls.write_hs(&mut said) {
                match change {
                    KeyChange::Handshake { keys } => drop(self.keys.insert(HANDSHAKE, keys)),
                    KeyChange::OneRtt { .. } => return Some(said),
                }
                for mut packet in std::mem::take(&mut self.early) {
                    self.take_in(&mut packet);
                }
            }
        }
        None
    }
}

/// The frames of a packet whose number stands here.
fn opened(packet: &mut [u8], number_at: usize, keys: &DirectionalKeys) -> Vec<u8> {
    let (header, rest) = packet.split_at_mut(number_at);
    let (number, sample) = rest.split_at_mut(4);
    let sample = &sample[..keys.header.sample_len()];
    keys.header.decrypt_in_place(sample, &mut header[0], number).unwrap();
    let number_bytes = usize::from(header[0] & 3) + 1;
    let number = number[..number_bytes].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let (header, payload) = packet.split_at_mut(number_at + number_bytes);
    keys.packet.decrypt_in_place(number, header, payload).unwrap().to_vec()
}

/// Whether frames end a connection: that comes first, but for acknowledgements and padding.
fn is_close(mut frames: &[u8]) -> bool {
    while let Some((kind, rest)) = frames.split_first() {
        frames = rest;
        match kind {
            0x00 => {}
            0x02 | 0x03 => skip_acknowledgement(*kind, &mut frames),
            kind => return matches!(kind, 0x1c | 0x1d),
        }
    }
    false
}

/// Takes an ACK frame, with its counts of marks if it has them (RFC 9000, section 19.3).
fn skip_acknowledgement(kind: u8, frames: &mut &[u8]) {
    let [_, _, ranges, _] = [(); 4].map(|()| take_varint(frames));
    for _ in 0..2 * ranges + 3 * u64::from(kind == 0x03) {
        take_varint(frames);
    }
}

/// Takes a number of variable length (RFC 9000, section 16).
fn take_varint(rest: &mut &[u8]) -> u64 {
    let length = 1 << (rest[0] >> 6);
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    bytes[1..].iter().fold(u64::from(bytes[0] & 0x3f), |all, byte| all << 8 | u64::from(*byte))
}
