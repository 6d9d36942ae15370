//! The perf dialect from outside: its two machines, and the frames between them, in memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod framed;
mod pair;
