//! A relay of QUIC connections (RFC 9000): a proxy that ends a client's connection and carries its streams
//! on over another connection, to the target, under the same stream ids.
//!
//! [`Relay`] has the rules of one pair of connections: which streams may be opened, what is read where,
//! how ends, resets, stops and closes cross. It never sees a byte of a stream. Its driver owns both
//! connections, does what [`Relay::poll_action`] says and tells what came of it. What the driver has read
//! and the other end has not taken is bounded by [`Limits::buffer_bytes`]; a stream that can't be written
//! is not read, so flow control holds its sender.

mod budget;
mod close;
mod machine;
mod way;

pub use close::{Close, CloseKind, Code, Ended};
pub use machine::{Action, Limits, Relay};
pub use way::{Moved, Sink, Source};

/// One of the two connections of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The connection that the client opened.
    Client,
    /// The connection to the target.
    Target,
}

impl End {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Client, Self::Target];

    /// The connection on the other side of the proxy.
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Target,
            Self::Target => Self::Client,
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Target => 1,
        }
    }
}

/// Streams of one sort: who opens them, and whether they have one direction (RFC 9000, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// The end whose peer opens them.
    pub opener: End,
    /// Whether only the opener sends.
    pub one_way: bool,
}

impl Class {
    /// The class of a stream, by the two lowest bits of its id.
    pub fn of(stream: u64) -> Self {
        let opener = if stream & 1 == 0 { End::Client } else { End::Target };
        Self { opener, one_way: stream & 2 != 0 }
    }

    /// The id of the stream of this number in the class.
    pub fn stream(self, number: u64) -> u64 {
        number << 2 | self.index() as u64
    }

    fn index(self) -> usize {
        self.opener.index() + if self.one_way { 2 } else { 0 }
    }

    /// Whether the peer of this end sends on such streams.
    fn sends(self, from: End) -> bool {
        !self.one_way || self.opener == from
    }
}
