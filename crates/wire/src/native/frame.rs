//! Frames of the control connection: a length (u32, big-endian), then a JSON object of so many
//! bytes.

/// The most that a frame from client to server holds, length not counted.
pub const TO_SERVER_LIMIT_BYTES: usize = 256 * 1024;

/// The most that a frame from server to client holds, length not counted.
pub const TO_CLIENT_LIMIT_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of a frame's length.
pub const LENGTH_BYTES: usize = 4;

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is 0.
    #[error("a frame is empty")]
    Empty,
    /// The length is above the limit.
    #[error("a frame claims {claimed_bytes} bytes; the limit is {limit_bytes}")]
    TooLong {
        /// The length.
        claimed_bytes: u32,
        /// The limit.
        limit_bytes: usize,
    },
}

/// Cuts a stream of bytes, however it comes in pieces, into the bodies of frames.
///
/// A wrong length is an error as soon as it is there, before its body is waited for, and stays
/// one. Memory grows with the bytes that arrived, never with a length that was claimed, and each
/// byte is moved a bounded number of times.
#[derive(Debug)]
pub struct FrameReader {
    limit_bytes: usize,
    buffer: Vec<u8>,
    /// Where in `buffer` the next frame starts; what stands before it is done with.
    start: usize,
}

impl FrameReader {
    /// A reader of frames of at most `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, buffer: Vec::new(), start: 0 }
    }

    /// Takes in the next bytes of the stream.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        // What is left over moves only when it is the smaller part, so that a byte moves at most
        // once for each byte that was done with.
        if self.start * 2 >= self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BYTES {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The body of the next complete frame; `None` until more bytes come.
    ///
    /// # Errors
    ///
    /// When the next length is 0 or above the limit, and from then on.
    pub fn poll_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let pending = self.buffer.get(self.start..).unwrap_or_default();
        let Some((length, rest)) = pending.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let claimed_bytes = u32::from_be_bytes(*length);
        if claimed_bytes == 0 {
            return Err(FrameError::Empty);
        }
        let body_bytes = usize::try_from(claimed_bytes).unwrap_or(usize::MAX);
        if body_bytes > self.limit_bytes {
            return Err(FrameError::TooLong { claimed_bytes, limit_bytes: self.limit_bytes });
        }
        if rest.len() < body_bytes {
            return Ok(None);
        }
        self.start += LENGTH_BYTES + body_bytes;
        Ok(rest.get(..body_bytes))
    }

    /// Bytes taken in that belong to no complete frame yet.
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len() - self.start
    }
}

/// A buffer that grew beyond this for one large frame is given back when it is empty.
const KEEP_BYTES: usize = 64 * 1024;

/// The frame with this body; `None` when the body is empty or above the limit.
pub fn encode_frame(body: &[u8], limit_bytes: usize) -> Option<Vec<u8>> {
    if body.is_empty() || body.len() > limit_bytes {
        return None;
    }
    let length = u32::try_from(body.len()).ok()?;
    let mut frame = Vec::with_capacity(LENGTH_BYTES + body.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(body);
    Some(frame)
}

#[cfg(test)]
mod tests;
