//! What became of the packets that came, counted where they are opened; and what streams have sent, counted
//! where packets are sealed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, PacketKey};

use super::frames::{Frame, take_frame};
use super::qlog::PacketKind;

/// Packets that were opened, or that could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Taken by the connection.
    pub(crate) taken: u64,
    /// Part of them: their number was less than one that had come.
    pub(crate) reordered: u64,
    /// With the number of a packet that had come.
    pub(crate) duplicates: u64,
    /// With a seal that isn't right.
    pub(crate) failures: u64,
}

/// The counts of one connection. One thread writes them: no count is lost without read-modify-write.
#[derive(Debug, Default)]
pub(super) struct PacketCounts {
    /// Of first, handshake's and later packets.
    spaces: [Numbers; 3],
    /// Whether the handshake is done.
    stands: AtomicBool,
    taken: AtomicU64,
    reordered: AtomicU64,
    duplicates: AtomicU64,
    failures: AtomicU64,
    /// Bytes of streams in packets that were sealed, those that were sent again included.
    sent_stream_bytes: AtomicU64,
}

fn add_one(to: &AtomicU64) {
    to.store(to.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl PacketCounts {
    /// The handshake has come so far.
    pub(super) fn record_handshake(&self, is_done: bool) {
        self.stands.store(is_done, Ordering::Relaxed);
    }

    /// A packet without number or seal was taken: a server's demand to come again.
    pub(super) fn record_unnumbered(&self) {
        add_one(&self.taken);
    }

    /// A packet was opened.
    pub(super) fn record_opened(&self, kind: PacketKind, number: u64) {
        let space = match kind {
            PacketKind::Initial => 0,
            PacketKind::Handshake => 1,
            PacketKind::Early | PacketKind::Data => 2,
        };
        let Some(numbers) = self.spaces.get(space) else { return };
        let arrival = numbers.record(number);
        if kind == PacketKind::Data && !self.stands.load(Ordering::Relaxed) {
            // The machine drops what comes before it trusts its peer.
            return;
        }
        match arrival {
            Arrival::New => add_one(&self.taken),
            Arrival::Late => {
                add_one(&self.taken);
                add_one(&self.reordered);
            }
            Arrival::Again => add_one(&self.duplicates),
            Arrival::TooLate => {}
        }
    }

    /// The same key, its packets counted.
    pub(super) fn counted(
        self: &Arc<Self>,
        inner: Box<dyn PacketKey>,
        kind: PacketKind,
    ) -> CountedPacket<impl Fn(Option<u64>) + Send + Sync + 'static> {
        let counts = Arc::clone(self);
        let record = move |opened| match opened {
            Some(number) => counts.record_opened(kind, number),
            None => add_one(&counts.failures),
        };
        let carries_streams = matches!(kind, PacketKind::Early | PacketKind::Data);
        CountedPacket { inner, record, sent: carries_streams.then(|| Arc::clone(self)) }
    }

    /// Bytes of streams that were sent, those that were sent again included.
    pub(super) fn sent_stream_bytes(&self) -> u64 {
        self.sent_stream_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn opened(&self) -> Opened {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Opened {
            taken: count(&self.taken),
            reordered: count(&self.reordered),
            duplicates: count(&self.duplicates),
            failures: count(&self.failures),
        }
    }
}

/// How a packet's number stands to those that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    New,
    Late,
    Again,
    /// So late that its state is forgotten: the machine drops it.
    TooLate,
}

/// The numbers of one space that came last: as far back as the machine keeps them.
#[derive(Debug, Default)]
struct Numbers {
    /// The greatest, and one more.
    next: AtomicU64,
    /// Whether those below the greatest came, the next lower in the lowest bit; both halves.
    below: [AtomicU64; 2],
}

impl Numbers {
    fn record(&self, number: u64) -> Arrival {
        let [low, high] = &self.below;
        let next = self.next.load(Ordering::Relaxed);
        let load = |half: &AtomicU64| u128::from(half.load(Ordering::Relaxed));
        let below = load(high) << 64 | load(low);
        let store = |below: u128| {
            low.store(below as u64, Ordering::Relaxed);
            high.store((below >> 64) as u64, Ordering::Relaxed);
        };
        let Some(back) = next.checked_sub(number).filter(|back| *back > 0) else {
            let ahead = u32::try_from(number - next).unwrap_or(u32::MAX);
            store((below << 1 | 1).checked_shl(ahead).unwrap_or(0));
            self.next.store(number.saturating_add(1), Ordering::Relaxed);
            return Arrival::New;
        };
        let Some(place) = back.checked_sub(2) else { return Arrival::Again };
        let bit = u32::try_from(place).ok().and_then(|place| 1_u128.checked_shl(place));
        match bit {
            None => Arrival::TooLate,
            Some(bit) if below & bit != 0 => Arrival::Again,
            Some(bit) => {
                store(below | bit);
                Arrival::Late
            }
        }
    }
}

/// A key that tells of each packet that it opens, by its number, or can't open.
pub(super) struct CountedPacket<F> {
    pub(super) inner: Box<dyn PacketKey>,
    pub(super) record: F,
    /// Where what streams send in its packets is counted.
    pub(super) sent: Option<Arc<PacketCounts>>,
}

/// Bytes of streams in a payload.
fn stream_bytes(payload: &[u8]) -> u64 {
    let (mut rest, mut sum) = (payload, 0);
    while let Some(frame) = take_frame(&mut rest) {
        if let Frame::Stream { bytes, .. } = frame {
            sum += bytes;
        }
    }
    sum
}

impl<F: Fn(Option<u64>) + Send + Sync> PacketKey for CountedPacket<F> {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_bytes: usize) {
        if let Some(counts) = &self.sent {
            let end = bytes.len().saturating_sub(self.inner.tag_len());
            let sent = stream_bytes(bytes.get(header_bytes..end).unwrap_or_default());
            let sum = &counts.sent_stream_bytes;
            sum.store(sum.load(Ordering::Relaxed) + sent, Ordering::Relaxed);
        }
        self.inner.encrypt(packet, bytes, header_bytes);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let opened = self.inner.decrypt(packet, header, payload);
        (self.record)(opened.is_ok().then_some(packet));
        opened
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

#[cfg(test)]
mod tests;
