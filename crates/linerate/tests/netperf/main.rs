//! The netperf dialect over sockets, and netperf's command line over it: ours against ours.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first surprise and say what it skipped"
)]

mod broken_connections;
mod cli_addresses;
mod cli_alone;
mod cli_background;
mod cli_busy_poll;
mod cli_processors;
mod cli_scripts;
mod cli_tests;
mod client_waits;
mod documents;
mod old_server;
mod server_clients;
mod server_deaths;
mod server_documents;
mod server_hostile;
mod server_process;
mod server_tests;
mod service;

#[path = "../skipped/mod.rs"]
mod skipped;
