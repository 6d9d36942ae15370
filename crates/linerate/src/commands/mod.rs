//! What each command does.

mod dry_run;
mod generate;
mod link;
mod measure;
mod own_machine;
mod serve;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};

use clap::Parser;
use linerate_engine::error::Error;
use linerate_measure::run::exit;

use crate::args::{Cli, Command};
use crate::output::narrate;
use crate::personality;
use crate::planning::{plans_from_connect, plans_from_rr, plans_from_stream};

/// Does what the command line says; the exit code.
pub(crate) fn perform(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(exit_code) = personality::perform(&arguments) {
        return exit_code;
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too. Where nobody reads them, nothing is lost.
            let _ = error.print();
            return if error.use_stderr() { exit::USAGE } else { exit::VALID };
        }
    };
    match dispatch(&cli.command) {
        Ok(exit_code) => exit_code,
        Err(failure) => {
            narrate(&format!("linerate: {}\n", failure.text));
            failure.exit_code
        }
    }
}

fn dispatch(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::OwnMachine(args) => own_machine::measure_own_machine(args),
        Command::Serve(args) => serve::serve(args),
        Command::Stream(args) => {
            measure::measure(plans_from_stream(args), &args.connect, &args.output)
        }
        Command::Rr(args) => measure::measure(plans_from_rr(args), &args.connect, &args.output),
        Command::Connect(args) => {
            measure::measure(plans_from_connect(args), &args.connect, &args.output)
        }
        Command::Link(args) => link::emulate(args),
        Command::Schema(args) => generate::print_schema(args),
        Command::Man(args) => generate::write_man_pages(args),
        Command::Completions(args) => generate::print_completions(args),
    }
}

/// Why a command ended without a result.
#[derive(Debug)]
pub(crate) struct Failure {
    exit_code: u8,
    text: String,
}

impl Failure {
    /// Something on this machine is in the way.
    fn here(text: impl Into<String>) -> Self {
        Self { exit_code: exit::FAILED, text: text.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { exit_code: error.exit_code(), text: error.to_string() }
    }
}

/// Writes data to standard output. A reader that has gone is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::here(format!("can't write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
