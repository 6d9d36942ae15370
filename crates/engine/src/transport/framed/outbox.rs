//! Frames on their way out, and which bytes of which stream are in them.

use std::collections::VecDeque;

use linerate_wire::perf::frame::{FrameHeader, HEADER_BYTES, Kind, Level, SEAL_BYTES};

use super::keys::{FrameKey, join};

/// A connection takes no more data while so much is queued. Every call of a sender may add one block. More than
/// this brings little.
pub(super) const QUEUE_LIMIT_BYTES: usize = 512 << 10;

/// Room is made in pieces of this size.
const GROWTH_BYTES: usize = 16 << 10;

/// Sealed frames that the socket has not taken. Callers bound the size by asking
/// [`Outbox::has_room`] first.
#[derive(Default)]
pub(super) struct Outbox {
    /// Room that was used before keeps its length: it needn't be cleared to be written again.
    bytes: Vec<u8>,
    filled: usize,
    sent: usize,
    /// Bytes that ever left.
    left_bytes: u64,
    /// Data of streams: where it ends in all bytes that ever leave, whose it is, how long it is.
    data: VecDeque<(u64, u64, u64)>,
}

impl Outbox {
    pub(super) fn has_room(&self) -> bool {
        self.unsent().len() < QUEUE_LIMIT_BYTES
    }

    pub(super) fn unsent(&self) -> &[u8] {
        self.bytes.get(self.sent..self.filled).unwrap_or_default()
    }

    /// Adds a frame, sealed unless there is no key. The payload comes in two parts. Says whether it could
    /// be sealed.
    pub(super) fn push(
        &mut self,
        level: Level,
        kind: Kind,
        key: Option<&FrameKey>,
        payload: (&[u8], &[u8]),
    ) -> bool {
        let (word, data) = payload;
        let payload_bytes = (word.len() + data.len()) as u16;
        let header = FrameHeader { level, kind, payload_bytes }.encode();
        let end = self.filled + HEADER_BYTES + usize::from(payload_bytes) + SEAL_BYTES;
        if self.bytes.len() < end {
            self.bytes.resize(end.next_multiple_of(GROWTH_BYTES), 0);
        }
        let place = self.bytes.get_mut(self.filled..end).unwrap_or_default();
        let Some((front, place)) = place.split_at_mut_checked(HEADER_BYTES) else { return false };
        front.copy_from_slice(&header);
        let done = match (level, key) {
            // A seal of a plain frame means nothing; the original's is zero.
            (Level::Plain, _) => {
                place.fill(0);
                join(payload, place)
            }
            (_, Some(key)) => key.seal(header, payload, place),
            (_, None) => None,
        };
        if done.is_some() {
            self.filled = end;
        }
        done.is_some()
    }

    /// Bytes that ever left.
    pub(super) fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// The last frames pushed had so many bytes of a stream.
    pub(super) fn record_data(&mut self, stream: u64, bytes: u64) {
        self.data.push_back((self.left_bytes + self.unsent().len() as u64, stream, bytes));
    }

    /// The socket took so many bytes.
    pub(super) fn record_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        self.left_bytes += bytes as u64;
        if self.sent >= self.filled {
            (self.sent, self.filled) = (0, 0);
        } else if self.sent >= QUEUE_LIMIT_BYTES {
            self.bytes.copy_within(self.sent..self.filled, 0);
            self.filled -= self.sent;
            self.sent = 0;
        }
    }

    /// Data of a stream that has left whole: whose, how long.
    pub(super) fn poll_left(&mut self) -> Option<(u64, u64)> {
        let (end, stream, bytes) = *self.data.front()?;
        (end <= self.left_bytes).then(|| {
            self.data.pop_front();
            (stream, bytes)
        })
    }
}
