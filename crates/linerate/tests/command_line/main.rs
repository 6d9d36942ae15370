//! The command line as a user meets it: help, generated pages, and every bad input with its
//! sentence and exit code. Nothing here needs a server but the matrices, which start their own.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod bad_input;
mod generated;
mod habits;
mod help;
mod index;
mod matrix;
mod matrix_resume;
mod opensearch_server;
mod otlp;
mod output_file;
mod own_figures;
mod report;
mod results;
mod seeds;
mod web;

#[path = "../ports/quiet.rs"]
mod quiet;
#[path = "../skipped/mod.rs"]
mod skipped;

use std::path::Path;
use std::process::{Command, Stdio};

/// How a command ended and what it said.
pub(crate) struct Ended {
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program with these words, separated by blanks, in a home of its own.
pub(crate) fn run(words: &str) -> Ended {
    run_in(tempfile::tempdir().unwrap().path(), words)
}

/// Likewise, with this directory as home and working directory.
pub(crate) fn run_in(directory: &Path, words: &str) -> Ended {
    let output = command(directory, words).output().unwrap();
    Ended {
        exit_code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The program with these words, not yet started; help is wrapped at 100 columns.
pub(crate) fn command(directory: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command
        .args(words.split_whitespace())
        .current_dir(directory)
        .env_clear()
        .env("HOME", directory)
        .env("COLUMNS", "100")
        .stdin(Stdio::null());
    command
}
