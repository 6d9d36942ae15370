//! What became of the packets that a connection sent.
//!
//! `quinn-proto` tells its congestion control how many bytes were acknowledged or lost, but not in which packets. Those
//! that were acknowledged stand in the peer's frames. Those that were lost follow from the number of their bytes:
//! `quinn-proto` takes the oldest packets of a space for lost first.

use std::collections::{BTreeMap, BTreeSet};

use super::super::frames::Ack;
use super::super::qlog::PacketKind;

/// Packets of a space that are remembered at most: those on their way, and those that were taken for lost.
const MOST_ON_THEIR_WAY: usize = 1 << 17;
const MOST_LOST: usize = 1 << 10;

/// The packets of a connection.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    spaces: [Space; 3],
    /// The space that the last acknowledgement was for.
    acknowledged: usize,
}

#[derive(Debug, Default)]
struct Space {
    /// The bytes of each packet, 0 where it doesn't count as in flight.
    on_their_way: BTreeMap<u64, u64>,
    /// Packets that may still be acknowledged.
    lost: BTreeSet<u64>,
    largest_acked: u64,
}

/// The spaces by their places, with the kind of packets that stands for each.
const KINDS: [PacketKind; 3] = [PacketKind::Initial, PacketKind::Handshake, PacketKind::Data];

fn place(kind: PacketKind) -> usize {
    match kind {
        PacketKind::Initial => 0,
        PacketKind::Handshake => 1,
        PacketKind::Early | PacketKind::Data => 2,
    }
}

impl SentPackets {
    /// A packet is sent, with so many bytes that count as in flight.
    pub(super) fn record_sent(&mut self, kind: PacketKind, number: u64, bytes: u64) {
        let Some(space) = self.spaces.get_mut(place(kind)) else { return };
        space.on_their_way.insert(number, bytes);
        if space.on_their_way.len() > MOST_ON_THEIR_WAY {
            space.on_their_way.pop_first();
        }
    }

    /// An acknowledgement came in a packet of this kind; the packets that it is the first for, and whether each was
    /// taken for lost before.
    pub(super) fn take_acked(&mut self, kind: PacketKind, ack: &Ack<'_>) -> Vec<(u64, bool)> {
        self.acknowledged = place(kind);
        let Some(space) = self.spaces.get_mut(place(kind)) else { return Vec::new() };
        space.largest_acked = space.largest_acked.max(ack.largest);
        let mut acked = BTreeMap::new();
        for (first, last) in ack.ranges() {
            acked
                .extend(space.on_their_way.range(first..=last).map(|(number, _)| (*number, false)));
            acked.extend(space.lost.range(first..=last).map(|number| (*number, true)));
        }
        for (number, is_late) in &acked {
            if *is_late {
                space.lost.remove(number);
            } else {
                space.on_their_way.remove(number);
            }
        }
        acked.into_iter().collect()
    }

    /// So many bytes were taken for lost; the kind and numbers of their packets. Packets that don't count as in flight
    /// are lost with those behind them, and are not told.
    pub(super) fn take_lost(&mut self, bytes: u64) -> Option<(PacketKind, Vec<u64>)> {
        let places = [self.acknowledged, 2, 1, 0];
        let (place, last) = places
            .into_iter()
            .find_map(|place| Some((place, self.spaces.get(place)?.last_of(bytes)?)))?;
        let space = self.spaces.get_mut(place)?;
        let left = space.on_their_way.split_off(&last.saturating_add(1));
        let gone = std::mem::replace(&mut space.on_their_way, left);
        let in_flight = gone.into_iter().filter(|(_, bytes)| *bytes > 0);
        let lost: Vec<u64> = in_flight.map(|(number, _)| number).collect();
        space.lost.extend(&lost);
        while space.lost.len() > MOST_LOST {
            space.lost.pop_first();
        }
        Some((*KINDS.get(place)?, lost))
    }

    /// The server didn't take what was sent before the handshake was done.
    pub(super) fn forget_early(&mut self) {
        if let Some(space) = self.spaces.get_mut(place(PacketKind::Early)) {
            space.on_their_way.clear();
        }
    }
}

impl Space {
    /// The last of the oldest packets that have so many bytes together, none of them above what was acknowledged.
    fn last_of(&self, bytes: u64) -> Option<u64> {
        let mut sum = 0_u64;
        for (number, more) in self.on_their_way.range(..self.largest_acked) {
            sum = sum.saturating_add(*more);
            if sum >= bytes {
                return (sum == bytes && bytes > 0).then_some(*number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::frames::{Frame, take_frame};
    use super::*;

    fn acked(packets: &mut SentPackets, kind: PacketKind, written: &[u8]) -> Vec<(u64, bool)> {
        let Some(Frame::Ack(ack)) = take_frame(&mut &*written) else { panic!("{written:?}") };
        packets.take_acked(kind, &ack)
    }

    #[test]
    fn lost_packets_are_the_oldest_ones_and_may_be_acknowledged_late() {
        let mut packets = SentPackets::default();
        packets.record_sent(PacketKind::Initial, 0, 1_200);
        for number in 0..10 {
            let bytes = if number == 1 { 0 } else { 1_000 + number };
            packets.record_sent(PacketKind::Data, number, bytes);
        }
        // 8 to 9, and 0.
        let ack = [0x02, 9, 0, 1, 1, 6, 0];
        let first = acked(&mut packets, PacketKind::Data, &ack);
        assert_eq!(first, [(0, false), (8, false), (9, false)]);
        assert!(acked(&mut packets, PacketKind::Data, &ack).is_empty(), "once");
        assert_eq!(packets.take_lost(999), None);
        assert_eq!(packets.take_lost(0), None, "a mark is no loss");
        assert_eq!(packets.take_lost(1_002 + 1_003), Some((PacketKind::Data, vec![2, 3])));
        let late = acked(&mut packets, PacketKind::Data, &[0x02, 4, 0, 0, 4]);
        assert_eq!(late, [(2, true), (3, true), (4, false)]);
        acked(&mut packets, PacketKind::Initial, &[0x02, 1, 0, 0, 0]);
        assert_eq!(packets.take_lost(1_200), Some((PacketKind::Initial, vec![0])));
        packets.forget_early();
        assert_eq!(packets.take_lost(1_005), None);
    }
}
