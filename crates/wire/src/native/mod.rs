//! The language of linerate's own clients and servers.
//!
//! One control connection (TLS over TCP) carries length-prefixed JSON messages both ways
//! ([`frame`], [`message`]); [`client::Client`] and [`server::Server`] are the two ends of that
//! conversation as pure machines. Data connections say whose they are with an [`opening`]; UDP
//! flows with a handshake of their own ([`datagram`]). What each flow then does
//! follows from the workload at both ends alike.
//!
//! Both machines have the same shape: `handle_bytes`, `handle_end` and `handle_timeout` tell what
//! happened; `poll_write`, `poll_event` and `poll_timeout` say what next; commands are the
//! caller's wishes, and do nothing in a state that has no room for them. Call `handle_timeout`
//! when the time that `poll_timeout` names has come, after the bytes that have arrived by then:
//! a caller that was held up must not take unread bytes for silence.
//!
//! `docs/protocol.md` in the project writes the protocol down.

pub mod client;
pub mod datagram;
mod fault;
pub mod frame;
mod hex;
mod inbox;
mod lease;
pub mod message;
pub mod opening;
mod outbox;
pub mod server;
mod silence;

pub use fault::{Fault, Stage};
pub use lease::LeaseWish;

/// The newest version of the protocol that this module speaks.
pub const VERSION: u16 = SEVERAL_TESTS_VERSION;

/// All versions that it speaks.
pub const VERSIONS: [u16; 2] = [1, SEVERAL_TESTS_VERSION];

/// From this version on a client may ask for another test when it has the result of one.
pub const SEVERAL_TESTS_VERSION: u16 = 2;

/// Bytes of a token: what a data connection or a UDP flow shows to belong to a test.
pub const TOKEN_BYTES: usize = 16;
