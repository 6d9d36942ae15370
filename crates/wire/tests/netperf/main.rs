//! The netperf dialect's client against its server in memory, and both against what the original
//! said.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod captured;
mod conversation;
mod hostile;
mod seeds;
mod transcripts;
