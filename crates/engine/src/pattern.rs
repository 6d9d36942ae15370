//! The bytes that flows carry: a pattern whose every byte depends on its position.
//!
//! The pattern repeats after [`PERIOD_BYTES`], a prime, so that data displaced by any power of two,
//! by a segment or by a buffer never looks right. It is laid out once, longer than its period by
//! the longest slice, so that every slice of it is contiguous: sending it costs nothing over
//! sending anything else, and checking it costs a comparison of memory.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use linerate_measure::plan::limits;
use linerate_measure::random::next_word;
use linerate_measure::report::{Verification, WRONG_RUNS_MAX, WrongRun};

use crate::page_aligned::PageAligned;

/// After so many bytes the pattern repeats: the largest prime below 2^14. Short, so that it stays in
/// the cache beside the bytes that are sent and received.
pub(crate) const PERIOD_BYTES: usize = 16_381;
/// The same of the pattern that counts: two bytes for each of its numbers.
const COUNT_PERIOD_BYTES: usize = 1 << 16;
/// Bytes that are compared at once, so that little of the pattern is in the cache beside them.
const PIECE_BYTES: usize = 16 << 10;

/// The pattern in memory.
#[derive(Debug)]
pub(crate) struct Pattern {
    bytes: PageAligned,
    period_bytes: usize,
}

impl Pattern {
    /// A pattern of which slices of up to `longest` bytes can be had, at any position.
    pub(crate) fn new(longest: usize) -> Self {
        Self::repeating(PERIOD_BYTES, longest, fill)
    }

    /// The numbers 0 to 0x7fff in 16 bits, little-endian: a pattern of which likewise slices of up to `longest` bytes
    /// can be had.
    pub(crate) fn counting(longest: usize) -> Self {
        Self::repeating(COUNT_PERIOD_BYTES, longest, |period| {
            for (pair, number) in period.chunks_mut(2).zip(0_u16..) {
                pair.copy_from_slice(&number.to_le_bytes()[..pair.len()]);
            }
        })
    }

    /// A pattern whose period this fills.
    fn repeating(period_bytes: usize, longest: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = PageAligned::new(period_bytes + longest);
        let (period, repeated) = bytes.split_at_mut(period_bytes);
        fill(period);
        for part in repeated.chunks_mut(period_bytes) {
            part.copy_from_slice(&period[..part.len()]);
        }
        Self { bytes, period_bytes }
    }

    /// A pattern for all that send from memory that they lend to the kernel: of the longest slices
    /// there are, and never freed, since the kernel may send from it when its connection and the
    /// load are long gone, and must not find other bytes there.
    pub(crate) fn lasting() -> Arc<Self> {
        static LASTING: OnceLock<Arc<Pattern>> = OnceLock::new();
        let longest = usize::try_from(*limits::MESSAGE_BYTES.end()).unwrap_or(usize::MAX);
        Arc::clone(LASTING.get_or_init(|| Arc::new(Self::new(longest))))
    }

    /// The beginning of a pattern, for flows that send the same bytes every time: of its slices
    /// only those at position 0 can be had, of up to `longest` bytes. Loads at the same time share
    /// one where it is long enough: a server may have thousands.
    pub(crate) fn beginning(longest: usize) -> Arc<Self> {
        static SHARED: Mutex<Weak<Pattern>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pattern) = shared.upgrade().filter(|pattern| pattern.bytes.len() >= longest) {
            return pattern;
        }
        let mut bytes = PageAligned::new(longest);
        fill(&mut bytes);
        let pattern = Arc::new(Self { bytes, period_bytes: PERIOD_BYTES });
        *shared = Arc::downgrade(&pattern);
        pattern
    }

    /// Bytes of a dialect's own, for flows that send the same every time: of its slices only those at position 0 can
    /// be had.
    pub(crate) fn of(bytes: PageAligned) -> Arc<Self> {
        Arc::new(Self { bytes, period_bytes: PERIOD_BYTES })
    }

    /// All of it, of which every slice is a part.
    pub(crate) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// The `length` bytes that stand at `position`.
    #[inline]
    pub(crate) fn slice(&self, position: u64, length: usize) -> &[u8] {
        let start = (position % self.period_bytes as u64) as usize;
        &self.bytes[start..start + length]
    }

    /// Whether `bytes` are those that stand at `position`.
    #[inline]
    pub(crate) fn matches(&self, position: u64, bytes: &[u8]) -> bool {
        let positions = (position..).step_by(PIECE_BYTES);
        let mut pieces = bytes.chunks(PIECE_BYTES).zip(positions);
        pieces.all(|(piece, at)| piece == self.slice(at, piece.len()))
    }
}

/// Fills `bytes` with the first bytes that the generator gives.
fn fill(bytes: &mut [u8]) {
    let mut state = 0x6c69_6e65_7261_7465_u64;
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&next_word(&mut state).to_le_bytes()[..part.len()]);
    }
}

/// Checks the bytes of one flow, in order, against the pattern.
#[derive(Debug)]
pub(crate) struct Verifier {
    offset: u64,
    position: u64,
    found: Verification,
    /// Whether the last byte checked was wrong and belongs to the first run of wrong bytes.
    in_first_run: bool,
    /// Whether the last byte checked was wrong.
    in_run: bool,
}

impl Verifier {
    /// A verifier for a flow whose first byte stands at `offset` in the pattern.
    pub(crate) fn new(offset: u64) -> Self {
        Self {
            offset,
            position: 0,
            found: Verification::default(),
            in_first_run: false,
            in_run: false,
        }
    }

    /// Checks the bytes that come next.
    pub(crate) fn record_bytes(&mut self, pattern: &Pattern, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.record_piece(pattern, piece);
        }
    }

    #[inline]
    fn record_piece(&mut self, pattern: &Pattern, bytes: &[u8]) {
        let expected = pattern.slice(self.offset.wrapping_add(self.position), bytes.len());
        if bytes == expected {
            self.found.verified_bytes += bytes.len() as u64;
            self.in_first_run &= bytes.is_empty();
            self.in_run &= bytes.is_empty();
        } else {
            self.record_difference(bytes, expected);
        }
        self.position = self.position.wrapping_add(bytes.len() as u64);
    }

    /// The position of the byte that comes next.
    pub(crate) fn move_to(&mut self, position: u64) {
        self.position = position;
        self.in_first_run = false;
        self.in_run = false;
    }

    #[cold]
    fn record_difference(&mut self, bytes: &[u8], expected: &[u8]) {
        for (index, (byte, wanted)) in bytes.iter().zip(expected).enumerate() {
            if byte == wanted {
                self.found.verified_bytes += 1;
                self.in_first_run = false;
                self.in_run = false;
                continue;
            }
            self.found.wrong_bytes += 1;
            self.record_wrong(self.position.wrapping_add(index as u64));
            if self.found.first_wrong_offset.is_none() {
                self.found.first_wrong_offset = Some(self.position.wrapping_add(index as u64));
                self.in_first_run = true;
            }
            if self.in_first_run {
                *self.found.first_wrong_extent_bytes.get_or_insert(0) += 1;
            }
        }
    }

    fn record_wrong(&mut self, offset: u64) {
        let runs = &mut self.found.wrong_runs;
        let listed = runs.len();
        match runs.last_mut() {
            Some(run) if self.in_run && run.offset.wrapping_add(run.bytes) == offset => {
                run.bytes += 1;
            }
            _ if listed < WRONG_RUNS_MAX => runs.push(WrongRun { offset, bytes: 1 }),
            // No more are listed, and the last one must not grow by one that isn't beside it.
            _ => {}
        }
        self.in_run = true;
    }

    /// What was found so far.
    pub(crate) fn found(&self) -> Verification {
        self.found.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slice_continues_the_last() {
        let pattern = Pattern::new(4096);
        let mut position = 0_u64;
        let mut whole = Vec::new();
        while position < 2 * PERIOD_BYTES as u64 + 5000 {
            whole.extend_from_slice(pattern.slice(position, 4001));
            position += 4001;
        }
        for (index, byte) in whole.iter().enumerate() {
            assert_eq!(*byte, whole[index % PERIOD_BYTES]);
        }
    }

    #[test]
    fn a_run_of_wrong_bytes_is_found_at_its_offset_across_calls() {
        let pattern = Pattern::new(4096);
        let mut verifier = Verifier::new(7919);
        let mut bytes = pattern.slice(7919, 4096).to_vec();
        for byte in &mut bytes[1000..1003] {
            *byte ^= 0x10;
        }
        bytes[3000] ^= 1;
        verifier.record_bytes(&pattern, &bytes[..1001]);
        verifier.record_bytes(&pattern, &bytes[1001..]);
        let found = verifier.found();
        assert_eq!(found.first_wrong_offset, Some(1000));
        assert_eq!(found.first_wrong_extent_bytes, Some(3));
        assert_eq!(found.wrong_bytes, 4);
        let runs = [(1000, 3), (3000, 1)].map(|(offset, bytes)| WrongRun { offset, bytes });
        assert_eq!(found.wrong_runs, runs);
        assert_eq!(found.verified_bytes, 4092);
    }

    #[test]
    fn a_count_has_two_bytes_for_each_number_and_begins_again() {
        let pattern = Pattern::counting(100);
        assert_eq!(pattern.slice(0, 8), [0, 0, 1, 0, 2, 0, 3, 0]);
        let expected = [0xfe, 0x7f, 0xff, 0x7f, 0, 0, 1, 0];
        assert_eq!(pattern.slice(65_532, 8), expected);
        assert_eq!(pattern.slice(3 * 65_536 + 65_532, 8), expected);
    }

    #[test]
    fn data_of_several_pieces_is_compared_whole() {
        for pattern in [Pattern::new(1 << 16), Pattern::counting(1 << 16)] {
            let mut bytes = pattern.slice(5, 1 << 16).to_vec();
            assert!(pattern.matches(5, &bytes) && !pattern.matches(6, &bytes));
            assert!(pattern.matches(9, &bytes[4..]) && pattern.matches(7, &[]));
            for place in [0, PIECE_BYTES - 1, PIECE_BYTES, 40_000, (1 << 16) - 1] {
                bytes[place] ^= 1;
                assert!(!pattern.matches(5, &bytes), "{place}");
                bytes[place] ^= 1;
            }
        }
    }

    #[test]
    fn displaced_data_never_looks_right() {
        let pattern = Pattern::new(4096);
        for shift in [1, 8, 64, 1448, 4096, 65_536, 131_072, 1 << 20] {
            let mut verifier = Verifier::new(0);
            verifier.record_bytes(&pattern, pattern.slice(shift, 2048));
            assert!(verifier.found().wrong_bytes > 1900, "shift {shift}");
        }
    }
}
