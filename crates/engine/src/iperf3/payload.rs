//! What the blocks of a test hold.

use std::sync::Arc;

use crate::control::random;
use crate::page_aligned::PageAligned;
use crate::pattern::Pattern;

/// A block's worth of bytes that no compression makes smaller, or of digits where `repeating`.
/// It begins where a page does, as the original's, so that the kernel copies both alike.
pub(super) fn payload(block_bytes: usize, repeating: bool) -> Arc<Pattern> {
    let mut block = PageAligned::new(block_bytes);
    if repeating {
        let digits = b"0123456789".iter().copied().cycle();
        block.iter_mut().zip(digits).for_each(|(byte, digit)| *byte = digit);
        return Pattern::of(block);
    }
    // A small generator (xorshift64*, Marsaglia and Vigna) is random enough for this.
    let seed = random::<8>().map_or(0x9e37_79b9_7f4a_7c15, u64::from_ne_bytes);
    let mut state = seed | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes()[0]
    };
    block.fill_with(&mut next);
    Pattern::of(block)
}
