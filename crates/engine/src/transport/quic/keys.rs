//! Keys that change a close on its way out.

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, PacketKey};

use super::hello::take_varint;

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

const APPLICATION_CLOSE: u8 = 0x1d;
const TRANSPORT_CLOSE: u8 = 0x1c;
/// Lengths up to this take one byte.
const LONGEST_REASON: u64 = 63;

/// Makes an application's close (RFC 9000, section 19.19) the transport's, in the same room: the
/// frame type that it has more than the other takes the place of the reason's last byte.
pub(super) fn close_as_transport(payload: &mut [u8]) {
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
                skip_acknowledgement(u64::from(kind), &mut rest)?;
            }
            _ => return None,
        }
    }
}

/// Steps over an acknowledgement behind its type (RFC 9000, section 19.3).
pub(super) fn skip_acknowledgement(kind: u64, rest: &mut &[u8]) -> Option<()> {
    // Largest and delay; then how many ranges come after the first.
    take_varint(rest)?;
    take_varint(rest)?;
    let ranges = take_varint(rest)?;
    let counts = if kind == 0x03 { 3 } else { 0 };
    for _ in 0..ranges.checked_mul(2)?.checked_add(1 + counts)? {
        take_varint(rest)?;
    }
    Some(())
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
