//! What both ends of a stream compute from their options, and how a frame is split.

use super::datagram::HEADER_BYTES;

/// The least bytes of a frame, headers included.
pub const FRAME_LEAST_BYTES: u64 = 40;

/// The most frames that a client holds back before it renders the first.
pub const BUFFERED_MOST_FRAMES: u64 = 1_000_000;

/// The frames of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamShape {
    /// Frames of the whole stream, at least 1.
    pub frames: u64,
    /// Bytes of a frame: those of all its datagrams.
    pub frame_bytes: u32,
    /// Frames per second, at least 1.
    pub frame_rate: u32,
    /// The longest datagram, bytes.
    pub datagram_bytes: u32,
}

/// Why a stream can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// A frame has less than [`FRAME_LEAST_BYTES`].
    FrameTooSmall,
    /// A frame has more than 4 GiB.
    FrameTooLarge,
    /// The number of frames doesn't fit the wire.
    TooManyFrames,
    /// The bytes of the whole stream can't be counted.
    TooManyBytes,
    /// More frames are buffered than [`BUFFERED_MOST_FRAMES`].
    TooManyBuffered,
}

impl StreamShape {
    /// A stream of so many bits per second, rounded down to whole bytes and then to frames of one
    /// size, for so many seconds.
    ///
    /// # Errors
    /// The frames would be too small or too large, or too many.
    pub fn derive(
        bits_per_s: u64,
        frame_rate: u32,
        length_s: u32,
        datagram_bytes: u32,
    ) -> Result<Self, ShapeError> {
        let frames = u64::from(length_s.max(1)) * u64::from(frame_rate.max(1));
        i64::try_from(frames).map_err(|_| ShapeError::TooManyFrames)?;
        let total = (bits_per_s / 8).checked_mul(length_s.max(1).into());
        let frame_bytes = total.ok_or(ShapeError::TooManyBytes)? / frames;
        if frame_bytes < FRAME_LEAST_BYTES {
            return Err(ShapeError::FrameTooSmall);
        }
        let frame_bytes = u32::try_from(frame_bytes).map_err(|_| ShapeError::FrameTooLarge)?;
        Ok(Self { frames, frame_bytes, frame_rate: frame_rate.max(1), datagram_bytes })
    }

    /// Bytes of the whole stream.
    pub fn total_bytes(&self) -> u64 {
        self.frames.saturating_mul(self.frame_bytes.into())
    }

    /// Frames that a client holds back when it buffers so many seconds.
    ///
    /// # Errors
    /// There are more than [`BUFFERED_MOST_FRAMES`], or none.
    pub fn buffered_frames(&self, depth_s: u32) -> Result<u64, ShapeError> {
        let frames = u64::from(depth_s) * u64::from(self.frame_rate);
        let is_fine = (1..=BUFFERED_MOST_FRAMES).contains(&frames);
        if is_fine { Ok(frames.min(self.frames)) } else { Err(ShapeError::TooManyBuffered) }
    }

    /// How long so many frames take, ns.
    pub fn frames_ns(&self, frames: u64) -> u64 {
        let ns = u128::from(frames) * 1_000_000_000 / u128::from(self.frame_rate.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// The lengths of the datagrams of a frame.
    pub fn datagrams(&self) -> Split {
        Split::new(self.frame_bytes, self.datagram_bytes)
    }
}

/// The lengths of the datagrams of one frame, headers included, in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Split {
    left_bytes: u32,
    datagram_bytes: u32,
}

impl Split {
    /// Splits a frame into datagrams of up to so many bytes, at least
    /// [`DATAGRAM_LEAST_BYTES`](super::datagram::DATAGRAM_LEAST_BYTES).
    pub fn new(frame_bytes: u32, datagram_bytes: u32) -> Self {
        let datagram_bytes = datagram_bytes.max(super::datagram::DATAGRAM_LEAST_BYTES);
        Self { left_bytes: frame_bytes, datagram_bytes }
    }

    /// Bytes that are left.
    pub fn left_bytes(&self) -> u32 {
        self.left_bytes
    }

    /// The next datagrams that a kernel can cut from one buffer: one at least; where there are more, all have the full
    /// length, but the last may be shorter.
    pub fn next_train(&mut self, limits: TrainLimits) -> Option<Train> {
        let datagram_bytes = self.next()?;
        let (mut bytes, mut datagrams, mut last_bytes) = (datagram_bytes, 1, datagram_bytes);
        while datagrams < limits.most_datagrams && last_bytes == self.datagram_bytes {
            let mut after = *self;
            let Some(next_bytes) = after.next() else { break };
            if next_bytes > datagram_bytes || bytes + next_bytes > limits.most_bytes {
                break;
            }
            *self = after;
            (bytes, datagrams, last_bytes) = (bytes + next_bytes, datagrams + 1, next_bytes);
        }
        Some(Train { datagram_bytes, bytes })
    }
}

/// The most that goes out with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainLimits {
    /// Datagrams.
    pub most_datagrams: u32,
    /// Bytes of them all, headers included. The first goes out all the same.
    pub most_bytes: u32,
}

/// Datagrams of one frame that lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Bytes of each but the last, which may have fewer.
    pub datagram_bytes: u32,
    /// Bytes of them all.
    pub bytes: u32,
}

impl Train {
    /// What is left when the first datagram has been sent; `None`: nothing.
    pub fn after_first(self) -> Option<Self> {
        let bytes = self.bytes.checked_sub(self.datagram_bytes).filter(|bytes| *bytes > 0)?;
        Some(Self { bytes, datagram_bytes: self.datagram_bytes.min(bytes) })
    }
}

impl Iterator for Split {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.left_bytes == 0 {
            return None;
        }
        let whole = self.datagram_bytes.min(self.left_bytes);
        let rest = self.left_bytes - whole;
        let least = HEADER_BYTES as u32 + 1;
        // The last datagram has a header and a byte at least, at the cost of the one before.
        let short = if rest == 0 { 0 } else { least.saturating_sub(rest) };
        self.left_bytes = rest + short;
        Some(whole - short)
    }
}
