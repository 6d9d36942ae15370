//! The data that a direction carries: 16-bit integers that count up, the low byte first.
//!
//! The integers run from 0 to 0x7fff and begin again, so the data repeats after [`PERIOD_BYTES`].
//! Each direction of each TCP connection counts its own offset from its first data byte. Each
//! datagram of a media stream begins at offset 0.

/// After so many bytes the data repeats.
pub const PERIOD_BYTES: usize = 65_536;

/// The data byte at this offset of a direction.
pub fn byte_at(offset: u64) -> u8 {
    let place = offset % PERIOD_BYTES as u64;
    let [low, high] = ((place / 2) as u16).to_le_bytes();
    if place.is_multiple_of(2) { low } else { high }
}

/// The data in memory, laid out so that each part up to a chosen length is contiguous.
#[derive(Clone, Debug)]
pub struct Reference {
    bytes: Vec<u8>,
}

/// A place where received data differs from what was to be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The offset of the first wrong byte: in its direction, or in its datagram's payload.
    pub offset: u64,
    /// What was to stand there.
    pub expected: u8,
    /// What stood there.
    pub found: u8,
    /// Bytes from the first wrong byte to the last one, both included, within what was received at once.
    pub extent_bytes: u64,
    /// Wrong bytes among those.
    pub wrong_bytes: u64,
    /// Bytes that were received at once.
    pub received_bytes: u64,
}

impl Reference {
    /// Data of which parts of up to `longest_bytes` can be had at any offset.
    pub fn new(longest_bytes: usize) -> Self {
        let bytes = (0..(PERIOD_BYTES + longest_bytes) as u64).map(byte_at).collect();
        Self { bytes }
    }

    /// The longest part that can be had at any offset, bytes.
    pub fn longest_bytes(&self) -> usize {
        self.bytes.len() - PERIOD_BYTES
    }

    /// The data from this offset on, as much of `length` as is contiguous here: all of it up to
    /// [`Reference::longest_bytes`].
    #[inline]
    pub fn part(&self, offset: u64, length: usize) -> &[u8] {
        let start = (offset % PERIOD_BYTES as u64) as usize;
        let end = start.saturating_add(length).min(self.bytes.len());
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Compares what was received at this offset; `None` where all is right.
    pub fn compare(&self, offset: u64, received: &[u8]) -> Option<Mismatch> {
        let longest = self.longest_bytes().max(1);
        let pieces = received.chunks(longest).zip((offset..).step_by(longest));
        if pieces.clone().all(|(piece, at)| piece == self.part(at, piece.len())) {
            return None;
        }
        let mut mismatch: Option<Mismatch> = None;
        for (at, found) in (offset..).zip(received.iter().copied()) {
            let expected = byte_at(at);
            if found == expected {
                continue;
            }
            let wrong = mismatch.get_or_insert(Mismatch {
                offset: at,
                expected,
                found,
                extent_bytes: 0,
                wrong_bytes: 0,
                received_bytes: received.len() as u64,
            });
            wrong.extent_bytes = at - wrong.offset + 1;
            wrong.wrong_bytes += 1;
        }
        mismatch
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_data_counts_up_to_7fff() {
        let reference = Reference::new(16);
        assert_eq!(
            reference.part(0, 16),
            [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0],
            "the low byte stands first"
        );
        let wrapped = [0xfc, 0x7f, 0xfd, 0x7f, 0xfe, 0x7f, 0xff, 0x7f, 0, 0, 1, 0];
        assert_eq!(reference.part(65_528, 12), wrapped);
        assert_eq!(reference.part(3 * 65_536 + 65_528, 12), wrapped);
        assert_eq!((byte_at(0x123 * 2), byte_at(0x123 * 2 + 1)), (0x23, 1));
    }

    #[test]
    fn a_mismatch_has_its_offset_and_extent() {
        let reference = Reference::new(100);
        let mut received: Vec<u8> = (7..1007).map(byte_at).collect();
        assert_eq!(reference.compare(7, &received), None);
        received[500] ^= 4;
        received[503] = !received[503];
        let wrong = reference.compare(7, &received).unwrap();
        assert_eq!((wrong.offset, wrong.extent_bytes, wrong.wrong_bytes), (507, 4, 2));
        assert_eq!((wrong.expected, wrong.found), (byte_at(507), byte_at(507) ^ 4));
        assert_eq!(wrong.received_bytes, 1000);
    }

    proptest! {
        #[test]
        fn one_wrong_bit_is_found_where_it_is(
            offset in 0_u64..1 << 40,
            length in 1_usize..3000,
            place: prop::sample::Index,
            bit in 0_u32..8,
            longest in 0_usize..5000,
        ) {
            let reference = Reference::new(longest);
            let mut received: Vec<u8> = (offset..).take(length).map(byte_at).collect();
            prop_assert_eq!(reference.compare(offset, &received), None);
            let place = place.index(length);
            received[place] ^= 1 << bit;
            let wrong = reference.compare(offset, &received).unwrap();
            prop_assert_eq!(wrong.offset, offset + place as u64);
            prop_assert_eq!((wrong.extent_bytes, wrong.wrong_bytes), (1, 1));
            prop_assert_eq!(wrong.found ^ wrong.expected, 1 << bit);
        }
    }
}
