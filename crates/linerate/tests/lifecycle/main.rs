//! Servers and clients as processes over real sockets: how they begin, how they end, whatever
//! happens to the other one, and that the figures of one agree with those of the other.
//!
//! A stopped, killed or silent end is judged by what /proc says of the one that is left.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first surprise and say what it saw"
)]

mod activation;
mod admission;
mod any_certificate;
mod breaking;
mod compare;
mod connect;
mod connect_failures;
mod conversation;
mod document;
mod duplex;
mod ends;
mod exact;
mod foreign_servers;
mod front;
mod hunt;
mod idle_connections;
mod interruption;
mod keys;
mod killing;
mod leases;
mod lifetime;
mod loaded;
mod media;
mod no_more_threads;
mod output_file;
mod own_machine;
mod plans;
mod quic;
mod quic_datagrams;
mod quic_rebinding;
mod repeats;
mod resources;
mod terminal;
mod tls;
mod transfers;
mod unmet;
mod vanishing;
mod variants;
mod verification;

#[allow(dead_code, reason = "shared with the tests of secnetperf, which need more of it")]
#[path = "../secnetperf/relay.rs"]
mod relay;

#[path = "../ports/both.rs"]
mod both;
#[path = "../ports/quiet.rs"]
mod quiet;
#[path = "../skipped/mod.rs"]
mod skipped;
