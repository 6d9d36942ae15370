//! The netperf dialect (netperf 2.4 to 2.7): one control connection, on which the client asks for
//! tests one after another, and data connections that carry nothing but data.
//!
//! Every message, in both directions, has the same size: 656 bytes since 2.6, 256 before. A test is
//! a request, an answer that says where the server listens, and results that the server sends when
//! its part is over. There is no start and no stop: the data connection and both ends' timers tell
//! when a test is over. `docs/compat/netperf.md` has what of it we do otherwise.
//!
//! [`omni`] is the test that every netperf since 2.5 asks for; [`classic`] those that older ones
//! do, and two that newer ones still do.

pub mod classic;
pub mod client;
pub mod end;
pub mod fault;
pub mod message;
pub mod omni;
pub mod server;
pub mod test;

/// The port of a netserver's control connections.
pub const CONTROL_PORT: u16 = 12_865;
