//! Sessions with real agents: on this machine, in network namespaces, and over real ssh.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may stop at the first surprise and say what it saw"
)]

mod fleet;
mod killing;
mod local;
mod process;
#[path = "../../../linerate/tests/skipped/mod.rs"]
mod skipped;
mod ssh;
mod starts;
