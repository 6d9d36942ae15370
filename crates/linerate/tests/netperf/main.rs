//! netperf's personality over real sockets on loopback: our netperf against our netserver.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod cli_background;
mod cli_tests;
mod server_process;
