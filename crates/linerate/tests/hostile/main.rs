//! Peers that mean harm: a server and its clients hold against them, and honest ones are served.
//!
//! What is shown here is promised in SECURITY.md. As it stands each test takes seconds;
//! `LINERATE_HOSTILE=long` makes them as large as the promises: ten million mutants, floods of
//! minutes. What is random is drawn from a seed that is printed and can be given back with
//! `LINERATE_SEED`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first surprise and say what it saw"
)]

mod address;
mod amplification;
mod attackers;
mod claims;
mod dialect;
mod dialect_mutants;
mod extent;
mod flood;
mod framed_mutants;
mod held_test;
mod hostile_servers;
mod idle_clients;
mod lying_times;
mod mutants;
mod quic_gaps;
mod quic_mutants;
mod quic_nowhere;
mod quic_packets;
mod random;
mod raw_quic_client;
mod silent_servers;
mod unread;

#[path = "../lifecycle/any_certificate.rs"]
mod any_certificate;
#[allow(dead_code, reason = "shared with the tests of lifecycles, which need more of it")]
#[path = "../lifecycle/conversation.rs"]
mod conversation;
#[allow(dead_code, reason = "shared with the tests of lifecycles, which need more of it")]
#[path = "../lifecycle/document.rs"]
mod document;
#[allow(dead_code, reason = "shared with the tests of lifecycles, which need more of it")]
#[path = "../lifecycle/ends.rs"]
mod ends;
#[allow(dead_code, reason = "shared with the tests against other peers, which need more of it")]
mod framed;
#[allow(dead_code, reason = "shared with the tests against other peers, which need more of it")]
mod request;
#[allow(dead_code, reason = "shared with the tests of lifecycles, which need more of it")]
#[path = "../lifecycle/resources.rs"]
mod resources;
#[allow(dead_code, reason = "shared with the tests against other peers, which need more of it")]
mod trust;

#[path = "../run_delay/mod.rs"]
mod run_delay;
#[path = "../skipped/mod.rs"]
mod skipped;
