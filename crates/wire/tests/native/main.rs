//! The native dialect's client against its server, in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod conversation;
mod disturbed;
mod hostile;
mod pair;
mod turned_away;
