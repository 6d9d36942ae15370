//! The rules of a relay from outside: two peers, and a driver between them, in memory.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod closes;
mod orders;
mod world;
