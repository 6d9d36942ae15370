//! A client's first packets, opened before its connection is accepted: which application protocols it offers. Their
//! keys come from the packets themselves (RFC 9001, section 5.2), so anybody can open them.

use std::ops::Range;

use quinn_proto::ConnectionId;
use rustls::Side;
use rustls::quic::DirectionalKeys;

use super::coalesced::{LongHeader, long_header};
use super::frames::{Frame, PING, take_frame};
use super::hello::{Hello, Offer};
use super::session::{initial_suite, version_of};

/// The first bytes of first packets: a long header of QUIC's, and its kind (RFC 9000, section 17.2).
const INITIAL_MASK: u8 = 0xf0;
const INITIAL: u8 = 0xc0;
/// The longest connection id (RFC 9000, section 17.2).
const MOST_ID_BYTES: usize = 20;
/// A packet's number has at most so many bytes, and what hides it is made of so many behind it.
const MOST_NUMBER_BYTES: usize = 4;
const SAMPLE_BYTES: usize = 16;
/// So many packets of one datagram are opened at most.
const MOST_PACKETS: usize = 4;
/// A client's first message has at most so many bytes, its header included.
const MOST_BYTES: usize = 16 << 10;
const HEADER_BYTES: usize = 4;
/// What has come of the message has at most so many gaps.
const MOST_GAPS: usize = 64;

/// Whether a datagram begins with a client's first packet, or looks like it.
pub(super) fn is_first(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & INITIAL_MASK == INITIAL)
}

/// What a datagram's first packet goes to.
pub(super) fn destination(datagram: &[u8]) -> Option<ConnectionId> {
    id_of(&long_header(datagram)?)
}

/// What a client's first packets say so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// More of the message is to come.
    Part,
    /// The message is whole, and offers this.
    Whole(Offer),
    /// They have what no client may send here, or a message that is longer or in more parts than is kept.
    Wrong,
    /// The client has closed, or its first packet can't be opened, so that nothing can be accepted.
    Gone,
}

/// What has come of a client's first message.
#[derive(Default)]
pub(super) struct FirstFlight {
    /// What opens the packets, once the first has come.
    keys: Option<DirectionalKeys>,
    /// The message, as far as anything of it has come; zeros stand in gaps.
    message: Vec<u8>,
    /// Which bytes of it have come: ascending, with a gap before each but one that begins at 0.
    covered: Vec<Range<usize>>,
}

impl FirstFlight {
    /// Takes in a datagram, which is spoiled: its packets are opened in place.
    pub(super) fn record(&mut self, datagram: &mut [u8]) -> Arrived {
        let mut rest = datagram;
        for _ in 0..MOST_PACKETS {
            if !is_first(rest) {
                break;
            }
            let is_begun = self.keys.is_some();
            match self.open(std::mem::take(&mut rest)) {
                Some((frames, after)) => {
                    if let Err(arrived) = self.take(frames) {
                        return arrived;
                    }
                    rest = after;
                }
                // Anybody can send a packet that can't be opened, but the first one is what is accepted.
                None if !is_begun => return Arrived::Gone,
                None => break,
            }
        }
        match Hello::parse_within(self.without_gap(), MOST_BYTES - HEADER_BYTES) {
            Hello::Part => Arrived::Part,
            Hello::Whole(offer) => Arrived::Whole(offer),
            Hello::Wrong => Arrived::Wrong,
        }
    }

    /// How many bytes are kept.
    pub(super) fn kept_bytes(&self) -> usize {
        self.message.capacity() + self.covered.capacity() * size_of::<Range<usize>>()
    }

    /// Opens the packet at the beginning; its frames, and what follows it.
    fn open<'a>(&mut self, bytes: &'a mut [u8]) -> Option<(&'a [u8], &'a mut [u8])> {
        let header = long_header(bytes)?;
        let (number_at, end) = (header.number_at, header.end);
        let keys = match &mut self.keys {
            Some(keys) => keys,
            none => none.insert(keys_of(&header)?),
        };
        let (packet, after) = bytes.split_at_mut_checked(end)?;
        let (head, protected) = packet.split_at_mut_checked(number_at)?;
        let (number, sampled) = protected.split_at_mut_checked(MOST_NUMBER_BYTES)?;
        let (first, sample) = (head.first_mut()?, sampled.get(..SAMPLE_BYTES)?);
        keys.header.decrypt_in_place(sample, first, number).ok()?;
        let number_bytes = usize::from(*first & 3) + 1;
        let number = number.get(..number_bytes)?;
        let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (head, sealed) = packet.split_at_mut_checked(number_at + number_bytes)?;
        let frames = keys.packet.decrypt_in_place(number, head, sealed).ok()?;
        Some((frames, after))
    }

    /// Keeps the pieces of the message that stand in these frames (RFC 9000, section 17.2.2), as far as they are what
    /// a client may send.
    fn take(&mut self, frames: &[u8]) -> Result<(), Arrived> {
        let mut rest = frames;
        while !rest.is_empty() {
            match take_frame(&mut rest) {
                Some(Frame::Padding(_) | Frame::Ack(_) | Frame::Numbers(PING, _)) => {}
                Some(Frame::Crypto { offset, data }) => {
                    self.keep(offset, data).ok_or(Arrived::Wrong)?;
                }
                Some(Frame::Close(_)) => return Err(Arrived::Gone),
                _ => return Err(Arrived::Wrong),
            }
        }
        Ok(())
    }

    /// Keeps a piece of the message; `None`: it goes beyond what is kept.
    fn keep(&mut self, offset: u64, piece: &[u8]) -> Option<()> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(piece.len()).filter(|end| *end <= MOST_BYTES)?;
        if piece.is_empty() {
            return Some(());
        }
        if self.message.len() < end {
            // A power of two, so that pieces of few bytes don't have it moved each time.
            self.message.reserve_exact(end.next_power_of_two() - self.message.len());
            self.message.resize(end, 0);
        }
        self.message.get_mut(start..end)?.copy_from_slice(piece);
        self.cover(start..end);
        (self.covered.len() <= MOST_GAPS).then_some(())
    }

    /// Adds a range to those that have come, and joins it with those that it meets.
    fn cover(&mut self, new: Range<usize>) {
        let from = self.covered.partition_point(|one| one.end < new.start);
        let to = self.covered.partition_point(|one| one.start <= new.end);
        let met = self.covered.get(from..to).unwrap_or_default();
        let start = met.first().map_or(new.start, |one| one.start.min(new.start));
        let end = met.last().map_or(new.end, |one| one.end.max(new.end));
        drop(self.covered.splice(from..to, std::iter::once(start..end)));
    }

    /// What has come without a gap, from the beginning.
    fn without_gap(&self) -> &[u8] {
        let first = self.covered.first().filter(|first| first.start == 0);
        first.and_then(|first| self.message.get(first.clone())).unwrap_or_default()
    }
}

fn id_of(header: &LongHeader<'_>) -> Option<ConnectionId> {
    let id = header.destination;
    (id.len() <= MOST_ID_BYTES).then(|| ConnectionId::new(id))
}

/// What opens the first packets of a client whose first one has this header.
fn keys_of(header: &LongHeader<'_>) -> Option<DirectionalKeys> {
    let version = version_of(header.version).ok()?;
    Some(initial_suite()?.keys(&id_of(header)?, Side::Server, version).remote)
}

#[cfg(test)]
pub(super) mod tests;
