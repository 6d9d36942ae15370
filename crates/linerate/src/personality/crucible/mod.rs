//! Crucible: its files, command lines and output.
//!
//! docs/compat/crucible.md says what is the same and what isn't. The crate `linerate-personality` reads files and
//! command lines. [`plan`] makes the lab's plan of a run file, [`run`] has the lab carry it out, [`engine`] is what the
//! lab starts on each host, [`original`] drives the original iperf3 there, and [`get`] answers from the store.

mod engine;
mod get;
mod multiplex;
mod original;
mod plan;
mod run;
mod summary;
mod table;

use linerate_personality::crucible::command_line::{self, Command, EXIT_USAGE, parse_command_line};
use linerate_results::query;

use super::stdout::say;
use crate::commands;
use crate::output::narrate;

/// The tool's name.
const NAME: &str = "crucible";
/// The exit code of what can't be done.
const FAILED: u8 = 1;

/// Does what a command line of `crucible` says; its exit code.
pub(super) fn perform(name: &str, words: &[String]) -> u8 {
    let done = match parse_command_line(words) {
        Ok(Command::Help) => {
            say(&render_help());
            Ok(0)
        }
        Ok(Command::Multiplex(options)) => multiplex::perform(&options),
        Ok(Command::Run(options)) => run::perform(&options),
        Ok(Command::GetResult(options)) => get::print_result(&options),
        Ok(Command::GetMetric(options)) => get::print_metric(&options),
        Ok(Command::Engine(options)) => engine::perform(&options),
        Err(why) => {
            let why = format!("{why}; see `linerate {name} --help`");
            Err(Failure { why, exit_code: EXIT_USAGE })
        }
    };
    match done {
        Ok(exit_code) => exit_code,
        Err(Failure { why, exit_code }) if why.is_empty() => exit_code,
        Err(Failure { why, exit_code }) => {
            narrate(&format!("{NAME}: {why}\n"));
            exit_code
        }
    }
}

/// Options of all commands, and the quirks of files and of queries.
pub(super) fn render_help() -> String {
    let mut text = command_line::render_help();
    text.push_str("\nQueries with --compat, and by default not:\n");
    for (label, original) in query::QUIRKS {
        text.push_str(&format!("  {label}: {original}\n"));
    }
    text
}

/// Why a command line can't be done.
#[derive(Debug)]
struct Failure {
    /// A sentence.
    why: String,
    exit_code: u8,
}

impl Failure {
    fn new(why: impl ToString) -> Self {
        Self { why: why.to_string(), exit_code: FAILED }
    }

    /// Of a file or an option that says what can't be.
    fn usage(why: impl ToString) -> Self {
        Self { why: why.to_string(), exit_code: EXIT_USAGE }
    }
}

impl Failure {
    /// Of a native command. The reader of the output has gone where there is no sentence.
    fn of_command(failure: commands::Failure) -> Self {
        let (exit_code, why) = failure.into_parts();
        Self { why, exit_code }
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::new(why)
    }
}

impl From<linerate_engine::error::Error> for Failure {
    fn from(error: linerate_engine::error::Error) -> Self {
        Self::new(error)
    }
}
