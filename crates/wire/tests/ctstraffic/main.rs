//! The ctsTraffic dialect from its public surface.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod seeds;
mod sha256;
mod stream;
mod stream_pair;
mod vectors;
