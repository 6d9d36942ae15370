//! Crucible: its files and command lines.
//!
//! docs/compat/crucible.md says what is the same and what isn't. The crate `linerate-personality` reads files and
//! command lines.

mod multiplex;

use linerate_personality::crucible::command_line::{Command, EXIT_USAGE, parse_command_line};

use super::stdout::say;
use crate::output::narrate;

/// The tool's name.
const NAME: &str = "crucible";

/// Does what a command line of `crucible` says; its exit code.
pub(super) fn perform(name: &str, words: &[String]) -> u8 {
    let done = match parse_command_line(words) {
        Ok(Command::Help(text)) => {
            say(&text);
            return 0;
        }
        Ok(Command::Multiplex(options)) => multiplex::perform(&options),
        Ok(_) => Err(Failure { why: String::new(), exit_code: 1 }),
        Err(why) => {
            let why = format!("{why}; see `linerate {name} --help`");
            Err(Failure { why, exit_code: EXIT_USAGE })
        }
    };
    match done {
        Ok(exit_code) => exit_code,
        Err(Failure { why, exit_code }) => {
            narrate(&format!("{NAME}: {why}\n"));
            exit_code
        }
    }
}

/// Why a command line can't be done.
struct Failure {
    /// A sentence.
    why: String,
    exit_code: u8,
}

pub(super) use linerate_personality::crucible::command_line::render_help;
