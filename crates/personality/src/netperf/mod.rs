//! netperf's command line and netserver's: [`flags`] and [`test_flags`] are the tables before and
//! after `--`, [`server_flags`] is netserver's, [`options`] what was typed, [`command_line`] how it
//! is read.

pub mod command_line;
pub mod flags;
pub mod number;
pub mod options;
pub mod server_flags;
pub mod test_flags;
pub mod unit;

/// The release whose command line and messages we speak, as `-V` tells it.
pub const VERSION_LINE: &str = "Netperf version 2.7.1\n";

/// The exit code of a command line that can't be read.
pub const EXIT_USAGE: u8 = 1;

/// What is said of a flag whose value makes no sense: `letter` is the flag's, if it has one.
fn blame(name: &str, letter: Option<char>, sentence: &str) -> String {
    let letter = letter.map(|letter| format!("-{letter}: ")).unwrap_or_default();
    format!("{name}: {letter}{sentence}\n")
}
