//! iperf3's dialect: client against server in memory, against captures of the original, and against
//! peers that mean harm.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod captures;
mod conversation;
mod datagrams;
mod documents;
mod hostile;
mod pair;
mod seeds;
