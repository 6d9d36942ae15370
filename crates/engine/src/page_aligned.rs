//! Memory that begins where a page does.

use std::ops::{Deref, DerefMut};

/// The smallest page of any machine that Linux runs on.
const PAGE_BYTES: usize = 4096;

/// A buffer that begins where a page does, all zeroes at first.
///
/// Some processors copy by `rep movsb` at a rate that depends on where within a page the bytes go, or come from.
#[derive(Debug, Default)]
pub(crate) struct PageAligned {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl PageAligned {
    pub(crate) fn new(length: usize) -> Self {
        let bytes = vec![0; length + PAGE_BYTES - 1];
        let address = bytes.as_ptr().addr();
        let start = address.next_multiple_of(PAGE_BYTES) - address;
        Self { bytes, start, length }
    }
}

impl Deref for PageAligned {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl DerefMut for PageAligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_where_a_page_does_and_has_the_length_asked_for() {
        for length in [0, 1, PAGE_BYTES - 1, PAGE_BYTES, 256 << 10] {
            let mut buffer = PageAligned::new(length);
            assert_eq!(buffer.as_ptr().addr() % PAGE_BYTES, 0);
            assert_eq!(buffer.len(), length);
            buffer.fill(7);
            assert!(buffer.iter().all(|byte| *byte == 7));
        }
        assert!(PageAligned::default().is_empty());
    }
}
