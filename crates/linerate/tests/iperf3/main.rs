//! iperf3's command line: options, errors, output, and both roles against the original.
//!
//! `SNAPSHOTS=overwrite` writes the snapshots anew. Tests against the original are skipped where it
//! isn't installed, and fail where `CI` is set.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod admission;
mod cli;
mod client_leaves;
mod credentials;
mod cuts;
mod deaths;
mod errors;
mod fixture;
mod hostile_peers;
mod interrupted;
mod json;
mod load;
mod long_results;
mod lost_greetings;
mod lost_output;
mod lost_tails;
mod lulls;
mod matrix;
mod matrix_cases;
mod omitted;
mod options;
mod programs;
mod run_documents;
mod shapes;
mod text;
mod traces;

#[path = "../ports/both.rs"]
mod both;
#[path = "../ports/quiet.rs"]
mod quiet;
#[path = "../skipped/mod.rs"]
mod skipped;

use std::process::{Command, Stdio};

/// The program as iperf3, with these words, separated by blanks.
pub(crate) fn ours(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command
        .arg("iperf3")
        .args(words.split_whitespace())
        .env_remove("LINERATE_IPERF3_VERSION")
        .env_remove("LINERATE_RUN_DOCUMENT")
        .env_remove("LINERATE_RUN_RECORDS")
        .env("TZ", "UTC")
        .stdin(Stdio::null());
    command
}

/// Compares with a snapshot.
pub(crate) fn matches(text: &str, name: &str) {
    let path = format!("tests/iperf3/snapshots/{name}");
    let snapshot = snapbox::Data::read_from(path.as_ref(), Some(snapbox::data::DataFormat::Text));
    snapbox::Assert::new()
        .action_env("SNAPSHOTS")
        .normalize_paths(false)
        .eq(text.to_owned(), snapshot);
}
