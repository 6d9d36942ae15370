//! The command line of secnetperf, as its users and scripts meet it: refusals without a server, runs
//! against our own server over QUIC and TCP, and what happens when one end vanishes.

#![allow(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first surprise and say what it skipped"
)]

mod documents;
mod endings;
mod fixture;
mod local;
mod many_connections;
mod rebinding;
mod refusals;
#[allow(dead_code, reason = "shared with the tests of lifecycles, which need more of it")]
mod relay;
mod runs;
mod server_documents;
mod statistics;
mod table;
mod vanishing;
mod wire;

#[path = "../ports/quiet.rs"]
mod quiet;
#[path = "../skipped/mod.rs"]
mod skipped;

/// linerate, as cargo has built it for these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
