//! The netperf dialect over sockets, ours against ours.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod server_clients;
mod server_hostile;
mod server_tests;
mod service;
