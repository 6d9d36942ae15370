//! Packets in clear: what msquic's `DISABLE_1RTT_ENCRYPTION` leaves of them.

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, HeaderKey, PacketKey};

use super::frames::{Frame, take_frame};

/// A header that isn't hidden.
pub(super) struct ClearHeader;

/// The bit of a short header that says which of two keys a packet has (RFC 9000, section 17.3.1).
const KEY_PHASE: u8 = 0x04;

impl HeaderKey for ClearHeader {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    /// There are no keys that could change.
    fn encrypt(&self, _pn_offset: usize, packet: &mut [u8]) {
        if let Some(first) = packet.first_mut() {
            *first &= !KEY_PHASE;
        }
    }

    fn sample_size(&self) -> usize {
        0
    }
}

/// A packet that isn't sealed. It says its number in four bytes, as msquic has it always: what is said in
/// one is told by the seal when it is taken for another number, as a packet's is that comes very late, and
/// here nothing else would tell.
pub(super) struct ClearPacket;

impl PacketKey for ClearPacket {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_bytes: usize) {
        fill_room(packet, bytes, header_bytes);
    }

    fn decrypt(
        &self,
        _packet: u64,
        _header: &[u8],
        _payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        Ok(())
    }

    fn tag_len(&self) -> usize {
        ROOM_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Bytes of the longest packet number.
const NUMBER_BYTES: usize = 4;
/// What a packet leaves behind its payload, where others have their seal: for a whole number, and one
/// byte of padding at least.
const ROOM_BYTES: usize = NUMBER_BYTES;
/// The bits of a short header that say how many bytes its number has, less one (RFC 9000, section 17.3.1).
const NUMBER_LENGTH: u8 = 0x03;

/// Writes the whole of a packet's number, and moves the payload as far as it takes. What is left of the room
/// is padding (frames of type 0), in front of the payload: what comes last may be a frame that lasts until the
/// packet's end. A packet that ends in a connection id is padded behind it: in clear the token there would
/// be read as that of a stateless reset (section 10.3), which is known by nothing but its last bytes.
fn fill_room(packet: u64, bytes: &mut [u8], header_bytes: usize) {
    let Some(first) = bytes.first_mut() else { return };
    let number_bytes = usize::from(*first & NUMBER_LENGTH) + 1;
    *first |= NUMBER_LENGTH;
    let Some(number_at) = header_bytes.checked_sub(number_bytes) else { return };
    let Some(rest) = bytes.get_mut(number_at..) else { return };
    let Some(end) = rest.len().checked_sub(ROOM_BYTES).filter(|end| *end >= number_bytes) else {
        return;
    };
    let ends_in_id = rest.get(number_bytes..end).is_some_and(ends_in_connection_id);
    let payload_at = if ends_in_id { NUMBER_BYTES } else { number_bytes + ROOM_BYTES };
    rest.copy_within(number_bytes..end, payload_at);
    let payload_end = payload_at + end - number_bytes;
    if let Some(padding) = rest.get_mut(payload_end..) {
        padding.fill(0);
    }
    if let Some((number, padding)) =
        rest.get_mut(..payload_at).and_then(|front| front.split_first_chunk_mut::<NUMBER_BYTES>())
    {
        *number = (packet as u32).to_be_bytes();
        padding.fill(0);
    }
}

/// Whether the last frame brings a connection id.
fn ends_in_connection_id(payload: &[u8]) -> bool {
    let (mut rest, mut ends_in_id) = (payload, false);
    while !rest.is_empty() {
        let Some(frame) = take_frame(&mut rest) else { return false };
        ends_in_id = matches!(frame, Frame::NewConnectionId { .. });
    }
    ends_in_id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of this payload with room behind it, its number in so many bytes; how it goes out.
    fn packet(number_bytes: usize, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x40 | (number_bytes as u8 - 1), 7, 7];
        bytes.extend(&0x0102_0304_u32.to_be_bytes()[NUMBER_BYTES - number_bytes..]);
        let header_bytes = bytes.len();
        bytes.extend(payload);
        bytes.extend([0xee; ROOM_BYTES]);
        fill_room(0x9_0102_0304, &mut bytes, header_bytes);
        assert_eq!(bytes[..7], [0x43, 7, 7, 1, 2, 3, 4]);
        bytes.split_off(7)
    }

    #[test]
    fn a_number_becomes_four_bytes_whatever_it_was() {
        for number_bytes in 1..=NUMBER_BYTES {
            let sent = packet(number_bytes, b"\x08\x01data until the end");
            assert_eq!(sent[..number_bytes], vec![0; number_bytes]);
            assert_eq!(&sent[number_bytes..], b"\x08\x01data until the end");
        }
    }

    #[test]
    fn no_packet_ends_in_the_token_of_a_connection_id() {
        let id = [&[0x18, 5, 0, 8][..], &[9; 8 + 16]].concat();
        let acknowledged = [&[2, 9, 1, 0, 3, 0x1f, 0x10, 0x7f, 0xff][..], &id, &id].concat();
        for number_bytes in 1..=NUMBER_BYTES {
            for payload in [&id, &acknowledged] {
                let sent = packet(number_bytes, payload);
                assert_eq!(sent[..payload.len()], payload[..]);
                assert_eq!(sent[payload.len()..], vec![0; number_bytes]);
            }
            let stream = [&id[..], &[0x08, 1], &id].concat();
            assert!(packet(number_bytes, &stream).ends_with(&stream));
        }
    }

    #[test]
    fn room_that_is_not_there_is_not_filled() {
        for length in 0..12 {
            for header_bytes in 0..14 {
                let mut bytes = vec![0x43; length];
                fill_room(1, &mut bytes, header_bytes);
                assert_eq!(bytes.len(), length);
            }
        }
    }
}
