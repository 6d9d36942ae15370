//! `linerate proxy` as a process, between our own clients and servers.

#![allow(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod endings;
mod fixture;
#[allow(dead_code, reason = "shared with the tests of secnetperf, which need more of it")]
#[path = "../secnetperf/fixture.rs"]
mod perf;
mod split_tcp;
mod traffic;

/// linerate, as cargo has built it for these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
