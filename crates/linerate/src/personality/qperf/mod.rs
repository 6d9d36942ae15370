//! qperf: its options, its output, its exit codes.
//!
//! docs/compat/qperf.md says what is the same and what isn't. The crate `linerate-personality` has the table of
//! options and all lines; [`plan`] maps options to the engine's plans, [`client`] and [`server`] run them and print
//! what happens.

mod client;
mod plan;
mod proxy;
mod record;
mod server;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use linerate_personality::qperf::command_line::parse_command_line;
use linerate_personality::qperf::options::{Options, Role};
use linerate_personality::qperf::output::OFFLOAD_LINE;

use super::stdout::{self, say};
use crate::output::narrate;
use crate::signals::stop_on_signals;

/// The tool's name.
const NAME: &str = "qperf";
/// The exit code of what can't be done, as the original's.
const FAILED: u8 = 1;

/// Does what a command line of `qperf` says; its exit code.
pub(super) fn perform(name: &str, words: &[String]) -> u8 {
    let (options, note) = match parse_command_line(name, words) {
        Ok(read) => read,
        Err(said) => {
            say(&said.stdout);
            narrate(&said.stderr);
            return said.exit_code;
        }
    };
    if let Some(note) = note {
        narrate(&note);
    }
    if options.segments {
        say(OFFLOAD_LINE);
    }
    let cancel = Cancel::default();
    if let Err(error) = stop_on_signals(&cancel) {
        narrate(&format!("{NAME}: can't catch signals: {error}\n"));
    }
    let code = match run(&options, words, &cancel) {
        Ok(()) => 0,
        Err(Failure { why, exit_code }) => {
            narrate(&format!("{NAME}: {why}\n"));
            exit_code
        }
    };
    let code = stdout::exit_code(code, FAILED);
    if cancel.requested() { exit::INTERRUPTED } else { code }
}

/// Tells that there was no room for so many lines, and for those that would have followed from them.
fn complain_of_dropped(count: u64) {
    narrate(&format!("{NAME}: output was read too slowly: at least {count} lines are lost\n"));
}

/// Tells that a file is not whole; a client's exit code says so, too.
fn complain(why: &str) {
    narrate(&format!("{NAME}: {why}\n"));
    stdout::note_loss();
}

fn run(options: &Options, words: &[String], cancel: &Cancel) -> Result<(), Failure> {
    match &options.role {
        Role::Client(host) => client::run(options, host, words, cancel),
        Role::Server => server::run(options, words, cancel),
        Role::Proxy(host) => proxy::run(options, host, cancel),
    }
}

/// Why a command line can't be done.
struct Failure {
    /// A sentence.
    why: String,
    exit_code: u8,
}

impl Failure {
    fn new(why: impl ToString) -> Self {
        Self { why: why.to_string(), exit_code: FAILED }
    }
}

impl From<linerate_engine::error::Error> for Failure {
    fn from(error: linerate_engine::error::Error) -> Self {
        Self::new(error)
    }
}

pub(super) use linerate_personality::qperf::command_line::render_help;
