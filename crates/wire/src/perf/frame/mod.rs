//! Frames of the dialect over TCP.
//!
//! A frame is four bytes of header, a payload and sixteen bytes of seal, which mean nothing in a
//! plain frame. Numbers are little-endian.

mod reader;

pub use reader::{Frame, FrameReader};

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 4;
/// Bytes of the seal behind the payload (an AEAD's tag).
pub const SEAL_BYTES: usize = 16;
/// The longest frame.
pub const FRAME_LIMIT_BYTES: usize = 16_384;
/// The longest payload.
pub const PAYLOAD_LIMIT_BYTES: usize = FRAME_LIMIT_BYTES - HEADER_BYTES - SEAL_BYTES;
/// Bytes of the word in front of a stream's data.
pub const WORD_BYTES: usize = 4;
/// The most data of a stream in one frame.
pub const DATA_LIMIT_BYTES: usize = PAYLOAD_LIMIT_BYTES - WORD_BYTES;
/// The highest number of a stream.
pub const STREAM_LIMIT: u32 = (1 << 29) - 1;

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A key that isn't used here.
    #[error("a frame is sealed with key {0}, which this dialect doesn't have")]
    Key(u8),
    /// A kind that isn't known.
    #[error("a frame is of kind {0}, which this dialect doesn't have")]
    Kind(u8),
    /// Longer than any frame.
    #[error("a frame claims {0} bytes; the limit is {PAYLOAD_LIMIT_BYTES}")]
    TooLong(u16),
    /// A stream's frame without a word of which stream.
    #[error("a stream's frame has {0} bytes; the least is {WORD_BYTES}")]
    TooShort(usize),
}

/// What a frame is sealed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: the payload is plain, the seal is filler.
    Plain,
    /// The handshake's keys.
    Handshake,
    /// The keys of the data.
    Data,
}

/// What is in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of the TLS handshake.
    Handshake,
    /// A [`StreamWord`], then data of that stream.
    Stream,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// What it is sealed with.
    pub level: Level,
    /// What is in it.
    pub kind: Kind,
    /// Bytes between header and seal.
    pub payload_bytes: u16,
}

impl FrameHeader {
    /// Its four bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let level = match self.level {
            Level::Plain => 0,
            Level::Handshake => 2,
            Level::Data => 3,
        };
        let kind = match self.kind {
            Kind::Handshake => 0,
            Kind::Stream => 1,
        };
        let [low, high] = self.payload_bytes.to_le_bytes();
        [level, kind, low, high]
    }

    /// Reads four bytes.
    ///
    /// # Errors
    ///
    /// When key or kind is unknown, or the payload is longer than a frame can hold.
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Result<Self, FrameError> {
        let [level, kind, low, high] = bytes;
        let level = match level {
            0 => Level::Plain,
            2 => Level::Handshake,
            3 => Level::Data,
            other => return Err(FrameError::Key(other)),
        };
        let kind = match kind {
            0 => Kind::Handshake,
            1 => Kind::Stream,
            other => return Err(FrameError::Kind(other)),
        };
        let payload_bytes = u16::from_le_bytes([low, high]);
        if usize::from(payload_bytes) > PAYLOAD_LIMIT_BYTES {
            return Err(FrameError::TooLong(payload_bytes));
        }
        Ok(Self { level, kind, payload_bytes })
    }

    /// Bytes of the whole frame.
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES + usize::from(self.payload_bytes) + SEAL_BYTES
    }
}

/// What a stream's frame says in front of its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamWord {
    /// Which stream, at most [`STREAM_LIMIT`].
    pub stream: u32,
    /// The first of its stream.
    pub opens: bool,
    /// The last of its stream.
    pub finishes: bool,
    /// The stream ends before its time.
    pub aborts: bool,
}

impl StreamWord {
    const OPENS: u32 = 1 << 29;
    const FINISHES: u32 = 1 << 30;
    const ABORTS: u32 = 1 << 31;

    /// Its four bytes.
    pub fn encode(&self) -> [u8; WORD_BYTES] {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        let word = (self.stream & STREAM_LIMIT)
            | flag(self.opens, Self::OPENS)
            | flag(self.finishes, Self::FINISHES)
            | flag(self.aborts, Self::ABORTS);
        word.to_le_bytes()
    }

    /// The word in front of a payload, and the data behind it.
    ///
    /// # Errors
    ///
    /// When the payload is too short to have one.
    pub fn decode(payload: &[u8]) -> Result<(Self, &[u8]), FrameError> {
        let Some((word, data)) = payload.split_first_chunk::<WORD_BYTES>() else {
            return Err(FrameError::TooShort(payload.len()));
        };
        let word = u32::from_le_bytes(*word);
        let said = Self {
            stream: word & STREAM_LIMIT,
            opens: word & Self::OPENS != 0,
            finishes: word & Self::FINISHES != 0,
            aborts: word & Self::ABORTS != 0,
        };
        Ok((said, data))
    }
}

#[cfg(test)]
mod tests;
