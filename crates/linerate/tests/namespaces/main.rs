//! Real packets between two network namespaces that a veth pair joins, with the limits and losses
//! that the kernel's own tools put on it (the kernel's own counters are the judge), or our own
//! emulator between them (`paths/`).
//!
//! Needs root and the tools `ip`, `tc`, `nft` and `ss`. Where one is missing a test says so and
//! passes, unless `CI` is set in the environment: then it fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first surprise and say what it skipped"
)]

mod black_hole;
mod clocks;
mod crucible;
mod ctstraffic;
mod ctstraffic_closes;
mod ctstraffic_paths;
mod ctstraffic_sockets;
mod dark_path;
mod document;
mod emulation;
mod emulator;
mod ends;
mod explain;
mod fast_open;
mod firewall;
mod first_windows;
mod fragments;
mod gone;
mod host_figures;
mod hunt;
mod lengths;
mod link;
mod link_local;
mod loaded;
mod loss;
mod media;
mod multipath;
mod netperf;
mod network;
mod own_queue;
mod paths;
mod pep;
mod perf;
mod ports;
mod rate;
mod several_addresses;
mod slow_link;

#[path = "../run_delay/mod.rs"]
mod run_delay;
#[path = "../skipped/mod.rs"]
mod skipped;

use network::{Company, Network};
use skipped::skip;

/// Runs a test in a network of its own, beside others, or says why it can't.
fn in_network(test: impl FnOnce(&Network)) {
    in_network_of(Company::Shared, test);
}

/// Likewise, while no other test of this program has a network: for a verdict that hangs on what the machine can do.
fn alone_in_network(test: impl FnOnce(&Network)) {
    in_network_of(Company::Alone, test);
}

fn in_network_of(company: Company, test: impl FnOnce(&Network)) {
    match Network::create(company) {
        Ok(network) => test(&network),
        Err(why) => skip(&why),
    }
}
