//! A command line as a whole: what may stand together, and what is missing.

use super::flags::{TABLE, Wrong};
use super::options::{
    AckFrequency, Buffers, Congestion, DEFAULT_PORT, DEFAULT_RUNTIME_S, DEFAULT_WINDOW_PACKETS,
    Files, Listen, Options, ProxyOptions, Role,
};
use crate::getopt::{Lexeme, Lexer, render_flags};

/// The exit code of a command line that can't be read, and of `-h`, as the original's.
pub const EXIT_USAGE: u8 = 1;

/// What was typed so far. The role of [`Typed::rest`] stands when all is read.
#[derive(Clone, Debug)]
pub struct Typed {
    /// `-c`.
    pub client: Option<String>,
    /// `-s`.
    pub server: bool,
    /// `-P`.
    pub proxy: Option<String>,
    /// `-h`.
    pub wants_help: bool,
    /// `-v`.
    pub wants_version: bool,
    /// Everything else.
    pub rest: Options,
}

impl Default for Typed {
    fn default() -> Self {
        let rest = Options {
            role: Role::Server,
            congestion: Congestion::default(),
            window_packets: DEFAULT_WINDOW_PACKETS,
            segments: false,
            interval_s: 1.0,
            prints_raw: false,
            buffers: Buffers::default(),
            acks: AckFrequency::default(),
            ends_with_first_byte: false,
            runtime_s: DEFAULT_RUNTIME_S,
            port: DEFAULT_PORT,
            listen: Listen::default(),
            proxy: ProxyOptions::default(),
            version: None,
            files: Files::default(),
        };
        let (client, proxy) = (None, None);
        Self { client, server: false, proxy, wants_help: false, wants_version: false, rest }
    }
}

/// What is said in place of doing anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// On standard output.
    pub stdout: String,
    /// On standard error.
    pub stderr: String,
    /// The exit code.
    pub exit_code: u8,
}

impl Said {
    fn complaint(stderr: String) -> Self {
        Self { stderr: stderr + "\n", exit_code: EXIT_USAGE, ..Self::default() }
    }

    fn remark(stdout: &str) -> Self {
        Self { stdout: format!("{stdout}\n"), exit_code: EXIT_USAGE, ..Self::default() }
    }
}

/// Reads a command line, without the program's name, which complaints of the lexer begin with. The
/// options come with a sentence about the first word that belongs to none.
///
/// # Errors
/// What is said of a command line that makes no sense, or asks for help or the version.
pub fn parse_command_line(name: &str, words: &[String]) -> Result<(Options, Option<String>), Said> {
    let mut typed = Typed::default();
    let mut stray = None;
    for lexeme in Lexer::new(TABLE, words) {
        let help = |error| Said {
            stdout: usage(name),
            stderr: format!("{name}: {error}\n"),
            exit_code: EXIT_USAGE,
        };
        let (flag, value) = match lexeme.map_err(help)? {
            Lexeme::Flag(flag, value) => (flag, value),
            Lexeme::Operand(word) => {
                stray.get_or_insert(word);
                continue;
            }
        };
        (flag.meaning)(&mut typed, value.as_deref().unwrap_or_default()).map_err(|wrong| {
            // The original names these two so, whichever way they were written.
            let called = if flag.long == "iw" { "--iw".to_owned() } else { flag.spelling() };
            Said::complaint(match wrong {
                Wrong::Value => format!("invalid argument passed to {called}"),
                Wrong::Because(sentence) => sentence.to_owned(),
            })
        })?;
        if typed.wants_help {
            return Err(Said { stdout: usage(name), exit_code: EXIT_USAGE, ..Said::default() });
        }
        if typed.wants_version {
            let stdout = format!("qperf {}\n", env!("CARGO_PKG_VERSION"));
            return Err(Said { stdout, ..Said::default() });
        }
    }
    let stray =
        stray.map(|word| format!("{name}: '{word}' belongs to no option and is not looked at\n"));
    conclude(name, typed).map(|options| (options, stray))
}

/// Finds out what the program is to be.
fn conclude(name: &str, typed: Typed) -> Result<Options, Said> {
    let role = match (typed.server, typed.client, typed.proxy) {
        (true, Some(_), _) => return Err(Said::remark("cannot use -c in server mode")),
        (true, None, Some(_)) => return Err(Said::remark("cannot use -P in server mode")),
        (false, Some(_), Some(_)) => return Err(Said::remark("cannot use -P in client mode")),
        (true, None, None) => Role::Server,
        (false, Some(host), None) => Role::Client(host),
        (false, None, Some(host)) => Role::Proxy(host),
        (false, None, None) => {
            return Err(Said { stdout: usage(name), exit_code: EXIT_USAGE, ..Said::default() });
        }
    };
    let options = Options { role, ..typed.rest };
    if matches!(options.role, Role::Proxy(_)) && options.files.events.is_some() {
        return Err(Said::complaint("--events is not supported in proxy mode".to_owned()));
    }
    Ok(options)
}

/// What `-h` tells.
pub fn usage(name: &str) -> String {
    let flags = render_flags(TABLE);
    format!(
        "Usage: {name} [-s | -P target | -c target] [options]\n\nOptions:\n{flags}\n\
         Sizes may end with k, m, g, t, p, e (powers of 1000) or K, M, G, T, P, E (of 1024).\n"
    )
}

/// What `help qperf` tells.
pub fn render_help() -> String {
    usage("qperf")
}

#[cfg(test)]
mod tests;
