//! The command line of secnetperf, as its users and scripts meet it: refusals without a server, runs
//! against our own server over QUIC and TCP, and what happens when one end vanishes.

#![allow(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod fixture;
mod refusals;
mod runs;
mod seeds;
mod table;
mod vanishing;

/// What the fuzz target of the lexer looks for beside it.
use linerate::personality::colon_options;
