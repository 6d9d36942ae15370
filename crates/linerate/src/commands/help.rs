//! `-h`, which has 40 rows at most, and `--help`, which has every flag.

use std::ffi::OsString;
use std::io;

use clap::CommandFactory;

use crate::args::Cli;
use crate::output::Style;

/// The help that a command line asks for.
pub(super) fn render_help(arguments: &[OsString]) -> String {
    let is_whole = arguments.get(1).is_some_and(|word| word == "help")
        || arguments.iter().any(|word| word == "--help");
    let mut all = Cli::command();
    all.build();
    let words = arguments.iter().skip(1).filter(|word| *word != "help");
    // A command may have commands of its own.
    let named = words
        .filter_map(|word| word.to_str())
        .fold(&all, |command, word| command.find_subcommand(word).unwrap_or(command));
    let mut command = named.clone();
    command = command.mut_args(|flag| match flag.get_id() == "help" {
        true => flag.help("Print help: -h the most used flags, --help all"),
        false => flag,
    });
    if is_whole {
        // The parser's own long form has two lines and more for every flag.
        command = command.mut_args(|flag| flag.hide_short_help(false));
        if let Some(text) = command.get_after_long_help().cloned() {
            command = command.after_help(text);
        }
    } else {
        command = command.mut_args(|flag| match flag.is_positional() {
            true => flag,
            false => flag.help_heading("Options"),
        });
    }
    let help = command.render_help();
    match Style::of(&io::stdout()) {
        Style::Coloured => help.ansi().to_string(),
        Style::Plain => help.to_string(),
    }
}
