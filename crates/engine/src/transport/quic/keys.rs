//! Keys that leave packets in clear, or change a close on its way out.

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, HeaderKey, PacketKey};

use super::hello::take_varint;

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
pub(super) struct ClearPacket {
    /// Whether a close becomes the transport's.
    pub(super) closes: bool,
}

impl PacketKey for ClearPacket {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_bytes: usize) {
        if self.closes
            && let Some(payload) = bytes.get_mut(header_bytes..)
        {
            close_as_transport(payload);
        }
        widen_number(packet, bytes, header_bytes);
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
        WIDENING_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Bytes of the longest packet number, and the most that another one lacks of it.
const NUMBER_BYTES: usize = 4;
const WIDENING_BYTES: usize = NUMBER_BYTES - 1;
/// The bits of a short header that say how many bytes its number has, less one (RFC 9000, section 17.3.1).
const NUMBER_LENGTH: u8 = 0x03;

/// Writes the whole of a packet's number, where the room of a seal lies behind the payload. The payload
/// moves as far as that goes; what the number leaves is padding (frames of type 0).
fn widen_number(packet: u64, bytes: &mut [u8], header_bytes: usize) {
    let Some(first) = bytes.first_mut() else { return };
    let number_bytes = usize::from(*first & NUMBER_LENGTH) + 1;
    let payload_end = bytes.len().saturating_sub(WIDENING_BYTES);
    let Some(number_at) = header_bytes.checked_sub(number_bytes) else { return };
    if header_bytes > payload_end {
        return;
    }
    if let Some(first) = bytes.first_mut() {
        *first |= NUMBER_LENGTH;
    }
    bytes.copy_within(header_bytes..payload_end, header_bytes + WIDENING_BYTES);
    if let Some(room) = bytes.get_mut(number_at..header_bytes + WIDENING_BYTES)
        && let Some((number, padding)) = room.split_first_chunk_mut::<NUMBER_BYTES>()
    {
        *number = (packet as u32).to_be_bytes();
        padding.fill(0);
    }
}

/// A packet that is sealed as ever, a close in it changed before.
pub(super) struct ClosingPacket(pub(super) Box<dyn rustls::quic::PacketKey>);

impl PacketKey for ClosingPacket {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_bytes: usize) {
        if let Some(payload) = bytes.get_mut(header_bytes..) {
            close_as_transport(payload);
        }
        PacketKey::encrypt(&self.0, packet, bytes, header_bytes);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        PacketKey::decrypt(&self.0, packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

const APPLICATION_CLOSE: u8 = 0x1d;
const TRANSPORT_CLOSE: u8 = 0x1c;
/// Lengths up to this take one byte.
const LONGEST_REASON: u64 = 63;

/// Makes an application's close (RFC 9000, section 19.19) the transport's, in the same room: the
/// frame type that it has more than the other takes the place of the reason's last byte.
fn close_as_transport(payload: &mut [u8]) {
    let Some(at) = close_at(payload) else { return };
    let Some(frame) = payload.get_mut(at..) else { return };
    let after_code = |frame: &[u8]| {
        let mut rest = frame.get(1..)?;
        take_varint(&mut rest)?;
        let code_end = frame.len() - rest.len();
        let reason_bytes = take_varint(&mut rest).filter(|n| (1..=LONGEST_REASON).contains(n))?;
        (rest.len() as u64 >= reason_bytes).then_some((code_end, reason_bytes as usize))
    };
    let Some((code_end, reason_bytes)) = after_code(frame) else { return };
    let Some(room) = frame.get_mut(code_end..code_end + 1 + reason_bytes) else { return };
    room.copy_within(1..reason_bytes, 2);
    if let [frame_type, length, ..] = room {
        (*frame_type, *length) = (0, reason_bytes as u8 - 1);
    }
    if let Some(kind) = frame.first_mut() {
        *kind = TRANSPORT_CLOSE;
    }
}

/// Where an application's close stands: first, or behind acknowledgements.
fn close_at(payload: &[u8]) -> Option<usize> {
    let mut rest = payload;
    loop {
        match *rest.first()? {
            APPLICATION_CLOSE => return Some(payload.len() - rest.len()),
            kind @ (0x02 | 0x03) => {
                rest = rest.get(1..)?;
                // Largest and delay; then how many ranges come after the first.
                take_varint(&mut rest)?;
                take_varint(&mut rest)?;
                let ranges = take_varint(&mut rest)?;
                let counts = if kind == 0x03 { 3 } else { 0 };
                for _ in 0..ranges.checked_mul(2)?.checked_add(1 + counts)? {
                    take_varint(&mut rest)?;
                }
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_becomes_the_transports_in_the_same_room() {
        for acknowledgement in [vec![], vec![2, 9, 1, 0, 3], vec![3, 9, 1, 1, 3, 0, 1, 5, 6, 7]] {
            let mut payload = acknowledgement.clone();
            payload.extend(b"\x1d\x05\x04why_");
            payload.push(0xff);
            close_as_transport(&mut payload);
            assert_eq!(payload[acknowledgement.len()..], *b"\x1c\x05\x00\x03why\xff");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_payload_keeps_its_length_and_what_comes_before_a_close(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100)
        ) {
            let mut changed = bytes.clone();
            close_as_transport(&mut changed);
            let at = close_at(&bytes).unwrap_or(bytes.len());
            assert_eq!((changed.len(), &changed[..at]), (bytes.len(), &bytes[..at]));
        }
    }

    #[test]
    fn a_number_becomes_four_bytes_whatever_it_was() {
        for number_bytes in 1..=NUMBER_BYTES {
            let first = 0x40 | (number_bytes as u8 - 1);
            let mut bytes = vec![first, 7, 7];
            bytes.extend(&0x0102_0304_u32.to_be_bytes()[NUMBER_BYTES - number_bytes..]);
            let header_bytes = bytes.len();
            bytes.extend(b"payload\xee\xee\xee");
            widen_number(0x9_0102_0304, &mut bytes, header_bytes);
            let mut expected = vec![0x43, 7, 7, 1, 2, 3, 4];
            expected.resize(expected.len() + number_bytes - 1, 0);
            expected.extend(b"payload");
            assert_eq!(bytes, expected, "{number_bytes}");
        }
    }

    #[test]
    fn what_is_no_close_stays() {
        let others: [&[u8]; 6] =
            [b"", b"\x01", b"\x1d", b"\x1d\x05\x00", b"\x1d\x05\x09why", b"\x02\xff"];
        for payload in others {
            let mut changed = payload.to_vec();
            close_as_transport(&mut changed);
            assert_eq!(changed, payload);
        }
    }
}
