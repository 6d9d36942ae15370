//! One direction of a stream through the proxy.

/// Whether more can be read at the end that bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// There may be more.
    More,
    /// There is nothing now; [`Relay::handle_readable`](super::Relay::handle_readable) says when there is.
    Empty,
    /// The last byte was read.
    Finished,
    /// The peer gave the stream up, with this code.
    Reset(u64),
    /// It can't be read any more: its connection has ended.
    Gone,
}

/// Whether more can be written at the end that bytes go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sink {
    /// It may take more.
    Open,
    /// It takes no more now; [`Relay::handle_writable`](super::Relay::handle_writable) says when it does.
    Full,
    /// The peer wants no more of the stream, with this code.
    Stopped(u64),
    /// It can't be written any more: its connection has ended.
    Gone,
}

/// What came of moving bytes of a stream from one end to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that were read, now or before, and that the other end has not taken.
    pub held_bytes: usize,
    /// Bytes that the other end has taken, now.
    pub taken_bytes: usize,
    /// Whether more can be read.
    pub source: Source,
    /// Whether more can be written.
    pub sink: Sink,
}

/// How far one direction of a stream has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Bytes may still come.
    #[default]
    Flowing,
    /// All were read; what waits is still to be taken.
    Draining,
    /// The end was written, and is not known to be delivered.
    Finished,
    /// Nothing more happens.
    Over,
}

/// One direction of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    pub(super) stage: Stage,
    /// Read and not taken.
    pub(super) held_bytes: usize,
    /// Whether there was nothing to read.
    pub(super) is_empty: bool,
    /// Whether the other end took no more.
    pub(super) is_full: bool,
    /// Whether it stands among those that are to be moved.
    pub(super) is_queued: bool,
    /// Whether the other end has taken something of it.
    pub(super) has_written: bool,
}

impl Way {
    /// Of a stream that doesn't have this direction.
    pub(super) fn none() -> Self {
        Self { stage: Stage::Over, ..Self::default() }
    }

    /// Whether moving may be of use.
    pub(super) fn can_move(&self) -> bool {
        match self.stage {
            Stage::Flowing => !self.is_full && (self.held_bytes > 0 || !self.is_empty),
            Stage::Draining => !self.is_full,
            Stage::Finished | Stage::Over => false,
        }
    }

    /// Whether bytes may still come of it, or wait.
    pub(super) fn is_unread(&self) -> bool {
        matches!(self.stage, Stage::Flowing | Stage::Draining)
    }

    /// Whether the other end has taken something that its peer may not have.
    pub(super) fn is_undelivered(&self) -> bool {
        match self.stage {
            Stage::Flowing | Stage::Draining => self.has_written,
            Stage::Finished => true,
            Stage::Over => false,
        }
    }
}
