//! From words to what was typed: the table before `--`, then the one behind it.

use linerate_measure::plan::Family;

use super::flags::{GLOBAL, Take};
use super::options::{Options, Stop};
use super::test_flags::TEST;
use super::{EXIT_USAGE, VERSION_LINE, blame};
use crate::getopt::{Flag, parse_words, render_flags};

/// What is said in place of doing anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// On standard output.
    pub stdout: String,
    /// On standard error.
    pub stderr: String,
    /// The exit code.
    pub exit_code: u8,
}

impl Said {
    /// A complaint about the command line.
    pub fn complaint(stderr: String) -> Self {
        Self { stdout: String::new(), stderr, exit_code: EXIT_USAGE }
    }
}

/// Reads a command line, without the program's name, which complaints begin with. The options come
/// with sentences about what is not looked at or has no effect.
///
/// # Errors
/// What is said of a command line that makes no sense, or asks for help or the version.
pub fn parse_command_line(name: &str, words: &[String]) -> Result<(Options, Vec<String>), Said> {
    let mut options = Options::default();
    // getopt collects stray words behind the options, where those of the test begin.
    let rest = take_flags(name, GLOBAL, words, &mut options)?;
    match options.stop {
        Some(Stop::Help) => return Err(Said::complaint(usage())),
        Some(Stop::Version) => {
            let stdout = VERSION_LINE.to_owned();
            return Err(Said { stdout, stderr: String::new(), exit_code: 0 });
        }
        Some(Stop::TestHelp) | None => {}
    }
    if options.family == Some(Family::Ipv6) && !options.control.names_host {
        // The name may stand for the IPv4 address alone.
        "::1".clone_into(&mut options.control.host);
    }
    let strays = take_flags(name, TEST, &rest, &mut options)?;
    if options.stop == Some(Stop::TestHelp) {
        let stdout = test_usage();
        return Err(Said { stdout, stderr: String::new(), exit_code: EXIT_USAGE });
    }
    let ends = [&options.local, &options.remote];
    let has_interval = ends.iter().any(|end| end.interval_us.is_some());
    let is_paced = ends.iter().any(|end| end.burst.is_some());
    let mut notes: Vec<String> = strays
        .iter()
        .map(|word| format!("{name}: '{word}' belongs to no option and is not looked at\n"))
        .collect();
    if has_interval && !is_paced {
        notes.push(format!("{name}: -w has no effect without -b\n"));
    }
    Ok((options, notes))
}

/// Does what the flags say; the words that are none.
fn take_flags(
    name: &str,
    flags: &[Flag<Take>],
    words: &[String],
    options: &mut Options,
) -> Result<Vec<String>, Said> {
    let lexed = parse_words(flags, words)
        .map_err(|error| Said::complaint(format!("{name}: {error}\n{}", usage())))?;
    for (flag, value) in lexed.flags {
        (flag.meaning)(options, value.as_deref().unwrap_or_default())
            .map_err(|sentence| Said::complaint(blame(name, flag.short, &sentence)))?;
    }
    Ok(lexed.operands)
}

const SYNOPSIS: &str = "\nUsage: netperf [global options] -- [test options]\n";

/// What `-h` behind `--` tells.
fn test_usage() -> String {
    format!("{SYNOPSIS}\nTest options:\n{}", render_flags(TEST))
}

/// What `-h` tells.
pub fn usage() -> String {
    format!(
        "{SYNOPSIS}\
         \nGlobal options:\n{}\
         \nTest options:\n{}\
         \nTests: TCP_STREAM TCP_MAERTS TCP_SENDFILE TCP_RR TCP_CRR TCP_CC TCP_MSS UDP_STREAM UDP_RR\n\
         OMNI UUID LOC_CPU REM_CPU\n\
         \nOptions that take a pair set both halves with `a`, one with `a,` or `,b`; -b -D -F -H -I -L -p\n\
         -w, and -H -L -m -M of a test, set only the first with `a`. Sizes may end with K, M, G (1024) or\n\
         k, m, g (1000), and b; -1 is the default of most options.\n",
        render_flags(GLOBAL),
        render_flags(TEST),
    )
}
