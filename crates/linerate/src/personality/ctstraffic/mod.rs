//! Microsoft's ctsTraffic: its options, its output, its exit codes.
//!
//! docs/compat/ctstraffic.md says what is the same and what isn't. The crate `linerate-personality` has the table of
//! options, what they mean and all texts; [`tcp_plan`] and [`udp`] map options to the engine's plans, [`tcp_printer`]
//! and [`udp_printer`] what happens to lines on the [`console`] and in [`files`].

mod console;
mod document;
mod files;
mod record;
mod resolve;
mod tcp;
mod tcp_plan;
mod tcp_printer;
mod udp;
mod udp_printer;

use linerate_engine::error::Error;
use linerate_engine::event::Cancel;
use linerate_measure::EndReport;
use linerate_measure::dialect::ctstraffic::EndTotals;
use linerate_personality::ctstraffic::command_line::{CommandLine, parse_command_line};
use linerate_personality::ctstraffic::flags::Page;
use linerate_personality::ctstraffic::options::{Options, Protocol};
use linerate_personality::ctstraffic::{Refusal, exit, help};

use self::resolve::Found;
use super::stdout::{self, say};
use crate::output::narrate;
use crate::signals::stop_on_signals;

/// The tool's name.
pub(super) const NAME: &str = "ctsTraffic";

/// Does what a command line of `ctsTraffic` says; its exit code.
pub(super) fn perform(_name: &str, words: &[String]) -> u8 {
    let options = match parse_command_line(words) {
        Ok(CommandLine::Help(page)) => {
            say(&help::render_help(page));
            say(help::POINTER);
            return exit::USAGE;
        }
        Ok(CommandLine::Run(options)) => options,
        Err(refusal) => return refuse(&refusal),
    };
    for note in &options.notes {
        narrate(&format!("{NAME}: {note}\n"));
    }
    let cancel = Cancel::default();
    if let Err(error) = stop_on_signals(&cancel) {
        narrate(&format!("{NAME}: can't catch signals: {error}\n"));
    }
    match run(&options, words, &cancel) {
        Ok(code) => stdout::exit_code(code, exit::NOT_STARTED),
        Err(Failure::Refused(refusal)) => refuse(&refusal),
        Err(Failure::NotStarted(why)) => {
            narrate(&format!("{NAME}: {why}\n"));
            exit::NOT_STARTED
        }
    }
}

fn run(options: &Options, words: &[String], cancel: &Cancel) -> Result<u8, Failure> {
    let workload = match options.run.protocol {
        Protocol::Tcp => tcp::workload(options),
        Protocol::Udp => udp::workload(options)?,
    };
    let mut record =
        record::begin(options, workload, words, cancel).map_err(Failure::NotStarted)?;
    let found = Found::look_up(options).map_err(Failure::Refused);
    let ended = found.and_then(|found| match options.run.protocol {
        Protocol::Tcp => tcp::run(options, &found, &mut record, cancel),
        Protocol::Udp => udp::run(options, &found, &mut record, cancel),
    });
    match ended {
        Ok(end) => {
            let code = end.exit_code;
            record::finish(record, end, cancel);
            Ok(code)
        }
        Err(failure) => {
            record::fail(record, &failure);
            Err(failure)
        }
    }
}

/// What a run came to.
struct RunEnd {
    report: EndReport,
    totals: EndTotals,
    exit_code: u8,
}

/// Why a run could not begin.
enum Failure {
    /// The command line can't be done.
    Refused(Refusal),
    /// Something else stands in its way: an address that is in use, for example.
    NotStarted(String),
}

impl Failure {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) => exit::USAGE,
            Self::NotStarted(_) => exit::NOT_STARTED,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Refused(refusal) => &refusal.text,
            Self::NotStarted(why) => why,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::NotStarted(error.to_string())
    }
}

/// Says why a command line can't be done.
fn refuse(refusal: &Refusal) -> u8 {
    narrate(&refusal.render());
    say(help::POINTER);
    exit::USAGE
}

/// The general page of help.
pub(super) fn render_help() -> String {
    help::render_help(Page::General)
}
