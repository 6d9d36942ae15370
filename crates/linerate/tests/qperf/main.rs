//! The command line of qperf as processes: our client with our server, what it prints by the patterns that scripts
//! read, clients that vanish or misbehave, and the original where it is installed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

#[path = "../skipped/mod.rs"]
mod skipped;

mod documents;
mod events;
mod fixture;
mod original;
mod pairs;
mod patterns;
mod proxies;
mod proxy_options;
mod refusals;
mod sessions;
mod vanishing;
