//! What streams send, and where to what they receive goes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use crate::control::random;
use crate::page_aligned::PageAligned;

/// What the streams of a test read of a file at once, all together; and each of them, at least.
const MOST_READ_BYTES: usize = 256 << 20;
const LEAST_READ_BYTES: usize = 4 << 10;

/// What a stream sends.
pub(in super::super) enum Payload {
    /// The same bytes in every block.
    Fixed(Arc<PageAligned>),
    /// A file's, from its beginning to its end.
    File {
        file: File,
        /// What was read and not sent.
        block: Vec<u8>,
        from: usize,
        /// What is read at once, at most.
        most_bytes: usize,
    },
}

impl Payload {
    /// A block's worth of bytes that no compression makes smaller, or of digits where `repeating`.
    /// It begins where a page does, as the original's, so that the kernel copies both alike.
    pub(in super::super) fn fixed(block_bytes: usize, repeating: bool) -> PageAligned {
        let mut block = PageAligned::new(block_bytes);
        if repeating {
            let digits = b"0123456789".iter().copied().cycle();
            block.iter_mut().zip(digits).for_each(|(byte, digit)| *byte = digit);
            return block;
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
        block
    }

    /// A file's bytes, for one of so many streams: together they keep no more in memory than few do.
    pub(in super::super) fn of_file(path: &Path, streams: usize) -> io::Result<Self> {
        let most_bytes = (MOST_READ_BYTES / streams.max(1)).max(LEAST_READ_BYTES);
        Ok(Self::File { file: File::open(path)?, block: Vec::new(), from: 0, most_bytes })
    }

    /// The next `most_bytes` at most; nothing where there is no more.
    #[inline]
    pub(super) fn next(&mut self, most_bytes: usize) -> io::Result<&[u8]> {
        match self {
            Self::Fixed(bytes) => {
                let from = bytes.len().saturating_sub(most_bytes);
                Ok(bytes.get(from..).unwrap_or_default())
            }
            Self::File { file, block, from, most_bytes: at_once } => {
                if *from >= block.len() {
                    block.resize(most_bytes.min(*at_once), 0);
                    *from = 0;
                    let length = file.read(block)?;
                    block.truncate(length);
                }
                Ok(block.get(*from..).unwrap_or_default())
            }
        }
    }

    /// So many of them were sent.
    #[inline]
    pub(super) fn record_sent(&mut self, bytes: usize) {
        if let Self::File { from, .. } = self {
            *from += bytes;
        }
    }
}

/// Where to what a stream receives goes.
pub(in super::super) struct Sink(Option<File>);

impl Sink {
    /// Nowhere.
    pub(in super::super) fn nowhere() -> Self {
        Self(None)
    }

    /// A file, which is emptied first.
    pub(in super::super) fn file(path: &Path) -> io::Result<Self> {
        File::create(path).map(|file| Self(Some(file)))
    }

    #[inline]
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            None => Ok(()),
            Some(file) => file.write_all(bytes),
        }
    }
}
