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

use linerate_engine::event::Cancel;
use linerate_personality::ctstraffic::command_line::{CommandLine, parse_command_line};
use linerate_personality::ctstraffic::flags::Page;
use linerate_personality::ctstraffic::options::{Options, Protocol};
use linerate_personality::ctstraffic::{Refusal, exit, help};

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
        Err(refusal) => refuse(&refusal),
    }
}

fn run(options: &Options, words: &[String], cancel: &Cancel) -> Result<u8, Refusal> {
    match options.run.protocol {
        Protocol::Tcp => tcp::run(options, words, cancel),
        Protocol::Udp => udp::run(options, words, cancel),
    }
}

/// Says why a run could not begin; the exit code.
fn not_started(why: &str) -> u8 {
    narrate(&format!("{NAME}: {why}\n"));
    exit::NOT_STARTED
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
