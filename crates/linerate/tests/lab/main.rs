//! The lab as a user has it: files that describe many measurements, runs over hosts, queries of the store.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod crucible;
#[path = "../skipped/mod.rs"]
mod skipped;
