//! Cuts bytes into frames, where they lie.

use super::{FRAME_LIMIT_BYTES, FrameError, FrameHeader, HEADER_BYTES};

/// Room for what one system call brings, and one frame that it leaves unfinished.
const BUFFER_BYTES: usize = (64 << 10) + FRAME_LIMIT_BYTES;
/// The same once a call has brought as much as there was room for, of a peer that may.
const BULK_BYTES: usize = (128 << 10) + FRAME_LIMIT_BYTES;

/// A frame that is all there.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Its header, read.
    pub header: FrameHeader,
    /// Its header as it came: the seal covers it.
    pub header_bytes: [u8; HEADER_BYTES],
    /// Payload and seal, to be opened in place.
    pub sealed: &'a mut [u8],
}

/// A reader of frames with a buffer of one of two sizes. Bytes are put into [`FrameReader::vacant`], and
/// frames are opened where they lie.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether the last call filled all the room.
    full: bool,
    expects_bulk: bool,
}

impl FrameReader {
    /// Where the next bytes go. It is never empty after [`FrameReader::poll_frame`] said `None`.
    pub fn vacant(&mut self) -> &mut [u8] {
        // Made when something has come: a peer that says nothing costs nothing.
        if self.buffer.is_empty() {
            self.buffer.resize(BUFFER_BYTES, 0);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.full && self.expects_bulk && self.buffer.len() < BULK_BYTES {
            self.buffer.resize(BULK_BYTES, 0);
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// The room may grow from now on: the peer is known.
    pub fn expect_bulk(&mut self) {
        self.expects_bulk = true;
    }

    /// So many bytes were put there.
    pub fn record_filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
        self.full = self.end == self.buffer.len();
    }

    /// Gives the buffer back but for what is in it: the next bytes may be long in coming.
    pub fn rest(&mut self) {
        let pending = self.buffer.get(self.start..self.end).unwrap_or_default();
        let kept = if pending.is_empty() { 0 } else { pending.len().max(BUFFER_BYTES) };
        if kept < self.buffer.len() {
            let mut buffer = Vec::with_capacity(kept);
            buffer.extend_from_slice(pending);
            self.end = buffer.len();
            buffer.resize(kept, 0);
            (self.buffer, self.start, self.full) = (buffer, 0, false);
        }
    }

    /// The next complete frame; `None` until more bytes come.
    ///
    /// # Errors
    ///
    /// When the next header is wrong, and from then on.
    pub fn poll_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let pending = self.buffer.get_mut(self.start..self.end).unwrap_or_default();
        let Some((header_bytes, rest)) = pending.split_first_chunk_mut::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let header_bytes = *header_bytes;
        let header = FrameHeader::decode(header_bytes)?;
        let Some(sealed) = rest.get_mut(..header.frame_bytes() - HEADER_BYTES) else {
            return Ok(None);
        };
        self.start += header.frame_bytes();
        Ok(Some(Frame { header, header_bytes, sealed }))
    }

    /// Bytes that belong to no complete frame yet.
    pub fn pending_bytes(&self) -> usize {
        self.end - self.start
    }
}
