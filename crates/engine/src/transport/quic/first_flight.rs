//! A client's first packets, opened before its connection is accepted: which application protocols it offers. Their
//! keys come from the packets themselves (RFC 9001, section 5.2), so anybody can open them.

use std::collections::BTreeMap;

use quinn_proto::ConnectionId;
use rustls::Side;
use rustls::quic::Suite;

use super::hello::{Hello, Offer, take_varint};
use super::session::{initial_suite, version_of};

/// The first bytes of first packets: a long header of QUIC's, and its kind (RFC 9000, section 17.2).
const INITIAL_MASK: u8 = 0xf0;
const INITIAL: u8 = 0xc0;
/// The longest connection id (RFC 9000, section 17.2).
const MOST_ID_BYTES: usize = 20;
/// A packet's number has at most so many bytes, and what hides it is made of so many behind it.
const MOST_NUMBER_BYTES: usize = 4;
const SAMPLE_BYTES: usize = 16;
/// Frames of first packets (RFC 9000, section 19).
const PADDING: u64 = 0x00;
const PING: u64 = 0x01;
const ACK: u64 = 0x02;
const ACK_WITH_ECN: u64 = 0x03;
const CRYPTO: u64 = 0x06;
/// What is kept of one client at most: pieces, and bytes from the beginning.
const MOST_PIECES: usize = 64;
const MOST_BYTES: u64 = 16 << 10;

/// Whether a datagram begins with a client's first packet, or looks like it.
pub(super) fn is_first(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & INITIAL_MASK == INITIAL)
}

/// What a datagram's first packet goes to.
pub(super) fn destination(datagram: &[u8]) -> Option<ConnectionId> {
    // Behind the first byte and the version.
    let (id_bytes, id) = datagram.get(5..)?.split_first()?;
    id.get(..usize::from(*id_bytes)).filter(|id| id.len() <= MOST_ID_BYTES).map(ConnectionId::new)
}

/// What has come of a client's first message.
#[derive(Debug, Default)]
pub(super) struct FirstFlight {
    /// By where they begin.
    pieces: BTreeMap<u64, Vec<u8>>,
}

impl FirstFlight {
    /// Takes in a datagram; what the client offers, once its message is whole. A message that is none, or longer than
    /// is kept here, offers nothing.
    pub(super) fn record(&mut self, datagram: &[u8]) -> Option<Offer> {
        let Some(suite) = initial_suite() else { return Some(Offer::default()) };
        let mut rest = datagram.to_vec();
        while is_first(&rest) {
            let Some((frames, bytes)) = open(&mut rest, suite) else { break };
            if self.take(&frames).is_none() {
                return Some(Offer::default());
            }
            rest.drain(..bytes);
        }
        match Hello::parse(&self.whole()) {
            Hello::Part => None,
            Hello::Whole(offer) => Some(offer),
            Hello::Wrong => Some(Offer::default()),
        }
    }

    /// Keeps the pieces of the message that stand in these frames; `None`: too much, or no such frames.
    fn take(&mut self, frames: &[u8]) -> Option<()> {
        let mut rest = frames;
        while !rest.is_empty() {
            match take_varint(&mut rest)? {
                PADDING | PING => {}
                kind @ (ACK | ACK_WITH_ECN) => {
                    let [_largest, _delay, ranges, _first] = take_varints(&mut rest)?;
                    let ecn = if kind == ACK_WITH_ECN { 3 } else { 0 };
                    for _ in 0..ranges.checked_mul(2)?.checked_add(ecn)? {
                        take_varint(&mut rest)?;
                    }
                }
                CRYPTO => {
                    let [offset, length] = take_varints(&mut rest)?;
                    let (piece, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                    rest = after;
                    if offset.checked_add(length)? > MOST_BYTES || self.pieces.len() >= MOST_PIECES
                    {
                        return None;
                    }
                    let longest = self.pieces.get(&offset).map_or(0, Vec::len);
                    if piece.len() > longest {
                        self.pieces.insert(offset, piece.to_vec());
                    }
                }
                // A close: the machine sees to it.
                _ => return None,
            }
        }
        Some(())
    }

    /// What has come without a gap, from the beginning.
    fn whole(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (offset, piece) in &self.pieces {
            let Some(known) = (bytes.len() as u64).checked_sub(*offset) else { break };
            bytes.extend_from_slice(piece.get(known as usize..).unwrap_or_default());
        }
        bytes
    }
}

fn take_varints<const N: usize>(rest: &mut &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = take_varint(rest)?;
    }
    Some(numbers)
}

/// Opens the packet at the beginning; its frames, and how long it is.
fn open(bytes: &mut [u8], suite: Suite) -> Option<(Vec<u8>, usize)> {
    let (version, number_at, end) = header(bytes)?;
    let version = version_of(version).ok()?;
    let id = destination(bytes)?;
    let keys = suite.keys(&id, Side::Server, version).remote;
    let packet = bytes.get_mut(..end)?;
    let (head, protected) = packet.split_at_mut_checked(number_at)?;
    let (number, sampled) = protected.split_at_mut_checked(MOST_NUMBER_BYTES)?;
    let (first, sample) = (head.first_mut()?, sampled.get(..SAMPLE_BYTES)?);
    keys.header.decrypt_in_place(sample, first, number).ok()?;
    let number_bytes = usize::from(*first & 3) + 1;
    let number = number.get(..number_bytes)?;
    let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let (head, sealed) = packet.split_at_mut_checked(number_at + number_bytes)?;
    let frames = keys.packet.decrypt_in_place(number, head, sealed).ok()?;
    Some((frames.to_vec(), end))
}

/// The version of a first packet, where its number stands, and where it ends.
fn header(packet: &[u8]) -> Option<(u32, usize, usize)> {
    let (version, mut rest) = packet.get(1..)?.split_first_chunk()?;
    for _ in 0..2 {
        let (id_bytes, id) = rest.split_first()?;
        rest = id.get(usize::from(*id_bytes)..)?;
    }
    let token_bytes = usize::try_from(take_varint(&mut rest)?).ok()?;
    rest = rest.get(token_bytes..)?;
    let length = usize::try_from(take_varint(&mut rest)?).ok()?;
    let number_at = packet.len() - rest.len();
    let end = number_at.checked_add(length).filter(|end| *end <= packet.len())?;
    Some((u32::from_be_bytes(*version), number_at, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client's first packet of RFC 9001, appendix A.2: the frames, and the packet's header.
    const HELLO: &str = "\
        060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c00000413011302010000c000\
        000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d0017001800100007000504616c706e00050005010000\
        0000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d00\
        10000e0403050306030203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ff\
        ff0801100104800075300901100f088394c8f03e51570806048000ffff";
    const ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

    fn bytes(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|one| Some(one.to_digit(16)? as u8)).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// A first packet with these frames, as a client seals it.
    fn packet(number: u8, frames: &[u8]) -> Vec<u8> {
        let suite = initial_suite().unwrap();
        let version = version_of(1).unwrap();
        let keys = suite.keys(&ID, Side::Client, version).local;
        let mut frames = frames.to_vec();
        frames.resize(frames.len().max(20), 0);
        let mut packet = vec![0xc0, 0, 0, 0, 1, 8];
        packet.extend(ID);
        packet.extend([0, 0]);
        let length = 1 + frames.len() + keys.packet.tag_len();
        packet.extend((length as u16 | 0x4000).to_be_bytes());
        let number_at = packet.len();
        packet.push(number);
        let tag = keys.packet.encrypt_in_place(number.into(), &packet, &mut frames).unwrap();
        packet.extend(frames);
        packet.extend(tag.as_ref());
        let (head, protected) = packet.split_at_mut(number_at);
        let (number, sampled) = protected.split_at_mut(MOST_NUMBER_BYTES);
        let sample = &sampled[..SAMPLE_BYTES];
        keys.header.encrypt_in_place(sample, &mut head[0], &mut number[..1]).unwrap();
        packet
    }

    fn alpn() -> Option<Vec<Vec<u8>>> {
        Some(vec![b"alpn".to_vec()])
    }

    fn protocols(offer: Option<Offer>) -> Option<Vec<Vec<u8>>> {
        offer.map(|offer| offer.protocols)
    }

    #[test]
    fn the_client_of_the_rfc_offers_what_its_packet_says() {
        let packet = packet(2, &bytes(HELLO));
        assert!(is_first(&packet));
        assert_eq!(protocols(FirstFlight::default().record(&packet)), alpn());
    }

    #[test]
    fn a_message_in_pieces_out_of_order_is_put_together() {
        let frames = bytes(HELLO);
        let message = &frames[4..];
        let piece = |from: usize, to: usize| {
            let mut frame = vec![1, 0, 6];
            frame.extend((from as u16 | 0x4000).to_be_bytes());
            frame.extend(((to - from) as u16 | 0x4000).to_be_bytes());
            frame.extend(&message[from..to]);
            frame
        };
        let mut flight = FirstFlight::default();
        let mut two = packet(0, &piece(100, 200));
        two.extend(packet(1, &piece(60, 120)));
        assert_eq!(flight.record(&two), None);
        assert_eq!(flight.record(&packet(2, &piece(200, message.len()))), None);
        assert_eq!(protocols(flight.record(&packet(3, &piece(0, 61)))), alpn());
    }

    #[test]
    fn what_is_no_message_offers_nothing_and_is_bounded() {
        let nothing = Some(Vec::new());
        assert_eq!(
            protocols(FirstFlight::default().record(&packet(0, &[6, 0, 4, 2, 0, 0, 0]))),
            nothing
        );
        // Beyond what is kept.
        let far = [6, 0x80, 0, 0x80, 0, 1, 7];
        assert_eq!(protocols(FirstFlight::default().record(&packet(0, &far))), nothing);
        let mut flight = FirstFlight::default();
        let many =
            (1..=MOST_PIECES as u8 + 1).map(|at| flight.record(&packet(at, &[6, 0x40, at, 1, 7])));
        assert_eq!(protocols(many.last().unwrap()), nothing);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_harm(rest in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let mut datagram = vec![0xc0, 0, 0, 0, 1];
            datagram.extend(&rest);
            FirstFlight::default().record(&datagram);
            let mut flight = FirstFlight::default();
            flight.take(&rest);
            assert!(flight.whole().len() as u64 <= MOST_BYTES);
        }
    }
}
