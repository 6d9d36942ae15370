//! The dialect of qperf: a client opens a stream and sends a request, and the server sends on the same
//! stream without end. The client closes the connection when it has enough.
//!
//! [`download`] is a client's view of the one stream, with the time as an argument. A server needs no
//! state but whether the end of a request has come: what the request says doesn't matter.
//!
//! `docs/compat/qperf.md` tells what the original does and where we differ.

mod close;
mod counts;
pub mod download;

pub use close::Close;
pub use counts::Counts;

/// What a client sends, and then the end of its sending.
pub const REQUEST: &[u8] = b"qperf start sending";

/// The byte that a server sends over and over.
pub const FILL: u8 = b'X';

/// The reason that a client closes its connection with, with error code 0.
pub const CLOSE_REASON: &str = "runtime_reached";

/// The port of servers, UDP.
pub const DEFAULT_PORT: u16 = 18_080;
