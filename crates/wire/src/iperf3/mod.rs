//! iperf3's dialect, as its releases 3.1 to 3.21 speak it.
//!
//! A client opens one control connection, which begins with a [`Cookie`]; every byte that isn't part
//! of a JSON message is a [`State`]. The client says what is to be done ([`Parameters`]), the server
//! asks for the data streams, both run their own timers, the client ends the test, and both tell what
//! they counted ([`Results`]). Data streams over TCP begin with the cookie of their test, those over
//! UDP with a greeting ([`datagram`]).
//!
//! `docs/compat/iperf3.md` writes the format down.

pub mod client;
pub mod code;
mod cookie;
pub mod datagram;
mod failure;
mod inbox;
mod json;
pub mod parameters;
pub mod results;
pub mod server;
mod state;
pub mod token;

pub use code::Code;
pub use cookie::{COOKIE_BYTES, Cookie};
pub use failure::{Failure, system_words};
pub use inbox::Fault;
pub use parameters::{Parameters, Protocol};
pub use results::{Results, StreamResult};
pub use state::State;

/// The port that both ends take unless told otherwise.
pub const PORT: u16 = 5201;

/// A stream's number in results: the first has 1, the others count from 3 on.
pub fn stream_id(index: usize) -> u32 {
    match u32::try_from(index).unwrap_or(u32::MAX - 2) {
        0 => 1,
        later => later.saturating_add(2),
    }
}
