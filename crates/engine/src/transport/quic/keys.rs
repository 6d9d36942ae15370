//! Keys that change a close on its way out.

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, PacketKey};

use super::frames::{APPLICATION_CLOSE, Frame, take_frame};
use super::hello::{render_varint_in, take_varint};

/// A packet that is sealed as ever, a close in it changed before.
pub(super) struct ClosingPacket(pub(super) Box<dyn PacketKey>);

impl PacketKey for ClosingPacket {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_bytes: usize) {
        if let Some(payload) = bytes.get_mut(header_bytes..) {
            close_as_transport(payload);
        }
        self.0.encrypt(packet, bytes, header_bytes);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.0.decrypt(packet, header, payload)
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

const TRANSPORT_CLOSE: u8 = 0x1c;
/// The last byte of the reason of a close that is to be the transport's. No text in UTF-8 has it.
pub(super) const TRANSPORT_MARK: u8 = 0xff;

/// Makes a close whose reason ends in the mark the transport's (RFC 9000, section 19.19), in the same room:
/// the frame type, which only the transport's close has, takes the place of the mark.
pub(super) fn close_as_transport(payload: &mut [u8]) {
    let Some(at) = close_at(payload) else { return };
    let Some(frame) = payload.get_mut(at..) else { return };
    let after_code = |frame: &[u8]| {
        let mut rest = frame.get(1..)?;
        take_varint(&mut rest)?;
        let code_end = frame.len() - rest.len();
        let reason_bytes = usize::try_from(take_varint(&mut rest)?).ok()?;
        let reason_at = frame.len() - rest.len();
        let last = rest.get(..reason_bytes)?.last();
        (last == Some(&TRANSPORT_MARK)).then_some((code_end, reason_at, reason_bytes))
    };
    let Some((code_end, reason_at, reason_bytes)) = after_code(frame) else { return };
    let Some(room) = frame.get_mut(code_end..reason_at + reason_bytes) else { return };
    let length_bytes = reason_at - code_end;
    room.copy_within(length_bytes..room.len() - 1, length_bytes + 1);
    let mut length = Vec::new();
    render_varint_in(reason_bytes as u64 - 1, length_bytes, &mut length);
    if let Some((frame_type, rest)) = room.split_first_mut() {
        *frame_type = 0;
        rest.iter_mut().zip(length).for_each(|(place, byte)| *place = byte);
    }
    if let Some(kind) = frame.first_mut() {
        *kind = TRANSPORT_CLOSE;
    }
}

/// Where an application's close stands: first, or behind acknowledgements.
fn close_at(payload: &[u8]) -> Option<usize> {
    let mut rest = payload;
    loop {
        if u64::from(*rest.first()?) == APPLICATION_CLOSE {
            return Some(payload.len() - rest.len());
        }
        let Frame::Ack(_) = take_frame(&mut rest)? else { return None };
    }
}

#[cfg(test)]
mod tests {
    use super::super::hello::render_varint;
    use super::*;

    #[test]
    fn a_close_becomes_the_transports_in_the_same_room() {
        for acknowledgement in [vec![], vec![2, 9, 1, 0, 3], vec![3, 9, 1, 1, 3, 0, 1, 5, 6, 7]] {
            let mut payload = acknowledgement.clone();
            payload.extend(b"\x1d\x05\x04why\xff");
            payload.push(0xee);
            close_as_transport(&mut payload);
            assert_eq!(payload[acknowledgement.len()..], *b"\x1c\x05\x00\x03why\xee");
        }
    }

    #[test]
    fn a_long_reason_keeps_the_width_of_its_length() {
        for reason_bytes in [63, 64, 300] {
            let mut payload = vec![0x1d, 5];
            render_varint(reason_bytes + 1, &mut payload);
            let width = payload.len() - 2;
            payload.extend((0..reason_bytes).map(|byte| byte as u8 & 0x7f));
            payload.push(TRANSPORT_MARK);
            close_as_transport(&mut payload);
            let mut rest = &payload[..];
            let numbers: Vec<u64> = (0..4).filter_map(|_| take_varint(&mut rest)).collect();
            assert_eq!(numbers, [0x1c, 5, 0, reason_bytes]);
            assert_eq!((payload.len() - rest.len(), rest.len() as u64), (3 + width, reason_bytes));
            assert!(rest.iter().zip(0_u64..).all(|(byte, place)| u64::from(*byte) == place & 0x7f));
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
    fn other_frames_than_close_are_unchanged() {
        let others: [&[u8]; 7] = [
            b"",
            b"\x01",
            b"\x1d",
            b"\x1d\x05\x00",
            b"\x1d\x05\x09why",
            b"\x1d\x05\x04why_",
            b"\x02\xff",
        ];
        for payload in others {
            let mut changed = payload.to_vec();
            close_as_transport(&mut changed);
            assert_eq!(changed, payload);
        }
    }
}
