//! The frames of a packet (RFC 9000, section 19; RFC 9221; draft-ietf-quic-ack-frequency), read one by one.

use super::hello::take_varint;

/// Types of frames.
pub(super) const PADDING: u64 = 0x00;
pub(super) const PING: u64 = 0x01;
pub(super) const IMMEDIATE_ACK: u64 = 0x1f;
pub(super) const ACK_FREQUENCY: u64 = 0xaf;
const TRANSPORT_CLOSE: u64 = 0x1c;
pub(super) const APPLICATION_CLOSE: u64 = 0x1d;

/// Bytes of the token of a stateless reset, and of a path's challenge.
const RESET_TOKEN_BYTES: u64 = 16;
const CHALLENGE_BYTES: u64 = 8;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// So many bytes of padding, each of which is a frame.
    Padding(usize),
    /// A frame that is numbers and nothing else: its type, and as many of these as the type has.
    Numbers(u64, [u64; 4]),
    Ack(Ack<'a>),
    /// A piece of the handshake.
    Crypto {
        offset: u64,
        data: &'a [u8],
    },
    NewToken(&'a [u8]),
    Stream {
        id: u64,
        offset: u64,
        bytes: u64,
        is_last: bool,
    },
    NewConnectionId {
        sequence: u64,
        retire_prior_to: u64,
        id: &'a [u8],
        reset_token: &'a [u8],
    },
    PathChallenge,
    PathResponse,
    Close(Close<'a>),
    /// A datagram of so many bytes.
    Datagram(u64),
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ack<'a> {
    pub(super) largest: u64,
    /// The delay as the frame has it, in the sender's unit.
    pub(super) delay: u64,
    smallest: u64,
    /// How many ranges follow the first, and what they are written as.
    more: u64,
    written: &'a [u8],
    /// Packets that came with ECT(0), ECT(1) and CE, where that is told.
    pub(super) marks: Option<[u64; 3]>,
}

impl<'a> Ack<'a> {
    /// The smallest and the largest number of each range, from the last range on.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let (mut smallest, mut rest) = (self.smallest, self.written);
        let following = (0..self.more).map_while(move |_| {
            let range = take_range(smallest, &mut rest)?;
            smallest = range.0;
            Some(range)
        });
        std::iter::once((self.smallest, self.largest)).chain(following)
    }
}

/// A close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Close<'a> {
    pub(super) code: u64,
    /// Where the transport closes: the type of the frame that is to blame, 0 if none.
    pub(super) frame: Option<u64>,
    pub(super) reason: &'a [u8],
}

/// How many numbers a frame of this type has that is nothing else.
pub(super) fn numbers_of(kind: u64) -> Option<usize> {
    match kind {
        PING | 0x1e | IMMEDIATE_ACK => Some(0),
        0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => Some(1),
        0x05 | 0x11 | 0x15 => Some(2),
        0x04 => Some(3),
        ACK_FREQUENCY => Some(4),
        _ => None,
    }
}

/// Takes the frame that bytes begin with, and all padding that follows padding. `None`: no frame is there that can be
/// read.
pub(super) fn take_frame<'a>(rest: &mut &'a [u8]) -> Option<Frame<'a>> {
    let kind = take_varint(rest)?;
    if let Some(count) = numbers_of(kind) {
        let mut numbers = [0; 4];
        for number in numbers.iter_mut().take(count) {
            *number = take_varint(rest)?;
        }
        return Some(Frame::Numbers(kind, numbers));
    }
    Some(match kind {
        PADDING => {
            let more = rest.iter().take_while(|byte| **byte == 0).count();
            *rest = rest.get(more..)?;
            Frame::Padding(more + 1)
        }
        0x02 | 0x03 => Frame::Ack(take_ack(kind == 0x03, rest)?),
        0x06 => {
            let (offset, bytes) = (take_varint(rest)?, take_varint(rest)?);
            Frame::Crypto { offset, data: take(rest, bytes)? }
        }
        0x07 => {
            let bytes = take_varint(rest)?;
            Frame::NewToken(take(rest, bytes)?)
        }
        0x08..=0x0f => {
            let id = take_varint(rest)?;
            let offset = if kind & 4 != 0 { take_varint(rest)? } else { 0 };
            let bytes = if kind & 2 != 0 { take_varint(rest)? } else { rest.len() as u64 };
            take(rest, bytes)?;
            Frame::Stream { id, offset, bytes, is_last: kind & 1 != 0 }
        }
        0x18 => {
            let (sequence, retire_prior_to) = (take_varint(rest)?, take_varint(rest)?);
            // The length is a byte, which is a number as well up to what it can be.
            let bytes = take_varint(rest)?;
            let id = take(rest, bytes)?;
            let reset_token = take(rest, RESET_TOKEN_BYTES)?;
            Frame::NewConnectionId { sequence, retire_prior_to, id, reset_token }
        }
        0x1a => take(rest, CHALLENGE_BYTES).map(|_| Frame::PathChallenge)?,
        0x1b => take(rest, CHALLENGE_BYTES).map(|_| Frame::PathResponse)?,
        TRANSPORT_CLOSE | APPLICATION_CLOSE => {
            let code = take_varint(rest)?;
            let frame = if kind == TRANSPORT_CLOSE { Some(take_varint(rest)?) } else { None };
            let bytes = take_varint(rest)?;
            Frame::Close(Close { code, frame, reason: take(rest, bytes)? })
        }
        0x30 | 0x31 => {
            let bytes = if kind == 0x31 { take_varint(rest)? } else { rest.len() as u64 };
            take(rest, bytes)?;
            Frame::Datagram(bytes)
        }
        _ => return None,
    })
}

fn take<'a>(rest: &mut &'a [u8], bytes: u64) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
    *rest = after;
    Some(taken)
}

/// Takes an acknowledgement behind its type.
fn take_ack<'a>(has_marks: bool, rest: &mut &'a [u8]) -> Option<Ack<'a>> {
    let (largest, delay, more) = (take_varint(rest)?, take_varint(rest)?, take_varint(rest)?);
    let smallest = largest.checked_sub(take_varint(rest)?)?;
    let (written, mut last) = (*rest, smallest);
    for _ in 0..more {
        last = take_range(last, rest)?.0;
    }
    let marks = if has_marks {
        Some([take_varint(rest)?, take_varint(rest)?, take_varint(rest)?])
    } else {
        None
    };
    Some(Ack { largest, delay, smallest, more, written, marks })
}

/// Takes the range below one that begins with `smallest`: its smallest and its largest number.
fn take_range(smallest: u64, rest: &mut &[u8]) -> Option<(u64, u64)> {
    let largest = smallest.checked_sub(take_varint(rest)?.checked_add(2)?)?;
    Some((largest.checked_sub(take_varint(rest)?)?, largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: &[u8]) -> Vec<Frame<'_>> {
        let mut rest = payload;
        std::iter::from_fn(|| take_frame(&mut rest)).collect()
    }

    #[test]
    fn frames_of_all_kinds_are_told_apart() {
        let ack = [0x03, 0x0a, 0x02, 0x01, 0x03, 0x00, 0x01, 0x05, 0x06, 0x07];
        let stream = [0x0f, 0x04, 0x40, 0x64, 0x03, 1, 2, 3];
        let id = [&[0x18, 1, 0, 2, 8, 9][..], &[7; 16]].concat();
        let close = b"\x1c\x05\x06\x03why";
        let crypto = [0x06, 0x40, 0x64, 0x02, 8, 9];
        let rest = [0x40, 0xaf, 1, 9, 0x43, 0xe8, 0, 0, 0, 0x1f, 0x0a, 0x00, 0x00, 0x30, 1, 1];
        let payload = [&ack[..], &stream, &id, close, &crypto, &rest].concat();
        let frames = read(&payload);
        let [Frame::Ack(ack), others @ ..] = &frames[..] else { panic!("{frames:?}") };
        assert_eq!((ack.delay, ack.marks), (2, Some([5, 6, 7])));
        assert_eq!(ack.ranges().collect::<Vec<_>>(), [(7, 10), (4, 5)]);
        assert_eq!(
            others,
            [
                Frame::Stream { id: 4, offset: 100, bytes: 3, is_last: true },
                Frame::NewConnectionId {
                    sequence: 1,
                    retire_prior_to: 0,
                    id: &[8, 9],
                    reset_token: &[7; 16]
                },
                Frame::Close(Close { code: 5, frame: Some(6), reason: b"why" }),
                Frame::Crypto { offset: 100, data: &[8, 9] },
                Frame::Numbers(ACK_FREQUENCY, [1, 9, 1_000, 0]),
                Frame::Padding(2),
                Frame::Numbers(IMMEDIATE_ACK, [0; 4]),
                Frame::Stream { id: 0, offset: 0, bytes: 0, is_last: false },
                Frame::Datagram(2),
            ]
        );
        assert_eq!(read(&[0x01, 0x21, 9]), [Frame::Numbers(PING, [0; 4])]);
        assert!(read(&[0x02, 0x03, 0, 0, 0x04]).is_empty(), "a range below 0");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_harm(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100)
        ) {
            for frame in read(&bytes) {
                if let Frame::Ack(ack) = frame {
                    proptest::prop_assert!(ack.ranges().all(|(first, last)| first <= last));
                }
            }
        }
    }
}
