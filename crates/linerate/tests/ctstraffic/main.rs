//! The command line of ctsTraffic as processes: our client with our server, each with a small peer that is written
//! from the protocol's description alone, every fault that a peer can make, corrupted data, and the files.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod corruption;
mod endings;
mod faults;
mod faults_both_ways;
mod fixture;
mod hostile;
mod hostile_streams;
mod mutants;
mod options;
mod output;
mod pairs;
mod peer;
mod reader;
mod replay;
mod slow_reader;
mod streams;
