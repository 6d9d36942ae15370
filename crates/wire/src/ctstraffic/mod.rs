//! The dialect of Microsoft's ctsTraffic: verified transfers over TCP, and media streams over UDP.
//!
//! Nothing is negotiated. Both ends are started with the same numbers, and a difference shows as a
//! protocol error. [`data`] is the data that every direction carries. [`transfer`] is what a TCP
//! connection transfers, in which order; [`connection`] is one end of it as a state machine, and
//! [`pace`] schedules its sends. [`media`] has the datagrams of a media stream, its sender
//! and its receiver.
//!
//! Times are nanoseconds on any monotonic clock. Where a size is drawn by chance, the caller gives
//! a random word. `docs/compat/ctstraffic.md` lists where linerate differs from the original.

pub mod connection;
pub mod data;
mod id;
pub mod media;
pub mod pace;
mod span;
pub mod transfer;

pub use id::{CONNECTION_ID_BYTES, ConnectionId};
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
