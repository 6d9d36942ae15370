//! Asking for fewer acknowledgements as peers of 2021 to 2025 do (draft-ietf-quic-ack-frequency-01 and -02).
//!
//! `quinn-proto` has the extension as it is since draft 4. The older one has another transport parameter. Its frame has
//! the same type and length, but other meanings: a *tolerance*, which is one more than the threshold, and a byte of
//! flags in the place of the reordering threshold. It has no IMMEDIATE_ACK frame. So packets are changed in place, before
//! they are sealed and after they were opened.

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, PacketKey};

use super::frames::{ACK_FREQUENCY, Frame, IMMEDIATE_ACK, PING, take_frame};
use super::hello::take_varint;

/// The transport parameter that says that an end can be asked; it has the same value as today's.
pub(super) const OLDER_MIN_ACK_DELAY: u64 = 0xff03_de1a;
/// The flag that has packets out of order acknowledged no sooner than others.
const IGNORE_ORDER: u8 = 0x01;
/// Today's reordering thresholds: never at once, and at once whenever a packet is missing.
const NEVER: u8 = 0;
const AT_ONCE: u8 = 1;

/// A key of a connection whose peer knows the older extension alone.
pub(super) struct OlderAcks(pub(super) Box<dyn PacketKey>);

impl PacketKey for OlderAcks {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_bytes: usize) {
        let end = bytes.len().saturating_sub(self.0.tag_len());
        if let Some(payload) = bytes.get_mut(header_bytes..end) {
            change(payload, Way::ToOlder);
        }
        self.0.encrypt(packet, bytes, header_bytes);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.0.decrypt(packet, header, payload)?;
        change(payload, Way::FromOlder);
        Ok(())
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToOlder,
    FromOlder,
}

/// Changes the frames of the extension in a payload.
fn change(payload: &mut [u8], way: Way) {
    let mut at = 0;
    while let Some(rest) = payload.get(at..).filter(|rest| !rest.is_empty()) {
        let mut after = rest;
        let frame = take_frame(&mut after);
        let end = payload.len() - after.len();
        match frame {
            None => return,
            Some(Frame::Numbers(ACK_FREQUENCY, _)) => {
                if let Some(frame) = payload.get_mut(at..end) {
                    change_request(frame, way);
                }
            }
            Some(Frame::Numbers(IMMEDIATE_ACK, _)) if way == Way::ToOlder => {
                if let Some(kind) = payload.get_mut(at) {
                    *kind = PING as u8;
                }
            }
            Some(_) => {}
        }
        at = end;
    }
}

/// Changes an ACK_FREQUENCY frame. One whose last number is longer than a byte stays as it is.
fn change_request(frame: &mut [u8], way: Way) {
    let mut rest = &*frame;
    let skip = |rest: &mut &[u8]| take_varint(rest).map(|_| frame.len() - rest.len());
    // The type and the sequence number.
    let Some(start) = skip(&mut rest).and_then(|_| skip(&mut rest)) else { return };
    let Some(end) = skip(&mut rest) else { return };
    let Some(last) = skip(&mut rest) else { return };
    if last + 1 != frame.len() {
        return;
    }
    if let Some(flags) = frame.last_mut() {
        *flags = match way {
            Way::ToOlder if *flags == NEVER => IGNORE_ORDER,
            Way::ToOlder => 0,
            Way::FromOlder if *flags & IGNORE_ORDER != 0 => NEVER,
            Way::FromOlder => AT_ONCE,
        };
    }
    if let Some(number) = frame.get_mut(start..end) {
        add_to_varint(number, way);
    }
}

/// Adds one to a number of variable length, or takes one away, in the same room. What doesn't fit stays.
fn add_to_varint(number: &mut [u8], way: Way) {
    let mut value = [0_u8; 8];
    let Some(room) = 8_usize.checked_sub(number.len()).and_then(|skip| value.get_mut(skip..))
    else {
        return;
    };
    room.copy_from_slice(number);
    let mark_at = 8 * number.len() as u32 - 2;
    let (written, most) = (u64::from_be_bytes(value), (1_u64 << mark_at) - 1);
    let (mark, plain) = (written & !most, written & most);
    let changed = match way {
        Way::ToOlder => plain.saturating_add(1).min(most),
        Way::FromOlder => plain.saturating_sub(1),
    };
    let bytes = (mark | changed).to_be_bytes();
    number.iter_mut().rev().zip(bytes.iter().rev()).for_each(|(place, byte)| *place = *byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(payload: &[u8], way: Way) -> Vec<u8> {
        let mut changed = payload.to_vec();
        change(&mut changed, way);
        changed
    }

    #[test]
    fn requests_are_changed_in_place_both_ways() {
        let before = [0x02, 9, 0, 0, 0, 0x40, 0xaf, 5];
        let behind = [0x80, 0, 0x61, 0xa8];
        let stream = [0x08, 0, 0x1f, 0x40, 0xaf];
        for (threshold, reordering, tolerance, flags) in [
            (&[9][..], 2, &[10][..], 0),
            (&[9], 0, &[10], IGNORE_ORDER),
            (&[0x40, 62], 1, &[0x40, 63], 0),
            (&[62], 1, &[63], 0),
            (&[63], 1, &[63], 0),
        ] {
            let now = [&before, threshold, &behind, &[reordering, 0x01], &stream].concat();
            let older = [&before, tolerance, &behind, &[flags, 0x01], &stream].concat();
            assert_eq!(changed(&now, Way::ToOlder), older);
        }
        for (tolerance, flags, threshold, reordering) in
            [(10, 0, 9, AT_ONCE), (1, 3, 0, NEVER), (0, 2, 0, AT_ONCE)]
        {
            let older = [&before[..], &[tolerance], &behind, &[flags], &stream].concat();
            let now = [&before[..], &[threshold], &behind, &[reordering], &stream].concat();
            assert_eq!(changed(&older, Way::FromOlder), now);
        }
        assert_eq!(changed(&[0x1f, 0x1f, 0x00], Way::ToOlder), [0x01, 0x01, 0x00]);
        assert_eq!(changed(&[0x1f], Way::FromOlder), [0x1f]);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_harm(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60),
            head in proptest::sample::select(vec![vec![], vec![0x40, 0xaf], vec![0x40, 0xaf, 0]]),
        ) {
            let payload = [head, bytes].concat();
            for way in [Way::ToOlder, Way::FromOlder] {
                proptest::prop_assert_eq!(changed(&payload, way).len(), payload.len());
            }
        }
    }
}
