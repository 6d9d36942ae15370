//! The dialect of Microsoft's ctsTraffic: verified transfers over TCP, and media streams over UDP.
//!
//! Nothing is negotiated. Both ends are started with the same numbers, and a difference shows as a
//! protocol error. A TCP connection is the life that the engine runs over it; here are the words for it:
//! ids, patterns and faults. [`data`] is the data that every direction carries. [`media`] has the
//! datagrams of a media stream, its sender and its receiver.
//!
//! Times are nanoseconds on any monotonic clock. Where a size is drawn by chance, the caller gives
//! a random word. `docs/compat/ctstraffic.md` lists where linerate differs from the original.

pub mod data;
mod fault;
mod id;
pub mod media;
mod pattern;
mod span;

pub use fault::Fault;
pub use id::{CONNECTION_ID_BYTES, ConnectionId};
pub use pattern::Pattern;
pub use span::Span;

/// The port of servers, TCP and UDP.
pub const DEFAULT_PORT: u16 = 4444;

/// What a server sends when it has transferred all its bytes.
pub const DONE: [u8; 4] = *b"DONE";

/// Which end of a connection or stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that connects, or that requests a stream.
    Client,
    /// The end that listens.
    Server,
}
