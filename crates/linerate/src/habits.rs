//! Words of iperf3 and its kin that users type at our own commands.
//!
//! A word that means the same is an alias of our flag (`alias` in [`crate::args`]). One that means something else gets a
//! sentence with our word and the command line of `linerate iperf3` that takes it as it is.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::args::Cli;

/// Our flags and their aliases.
const ALIASES: [(&str, &[&str]); 6] = [
    ("--time", &["--duration"]),
    ("--flows", &["--parallel", "-P"]),
    ("--down", &["--reverse", "-R"]),
    ("--both", &["--bidir"]),
    ("--rate-per-flow", &["--bandwidth", "--bitrate", "-b"]),
    ("--json", &["-J"]),
];

/// Flags of iperf3 that mean something else here, and what they are here.
const FLAGS: [(&[&str], &str); 19] = [
    (
        &["-u"],
        "UDP is --udp, which sends as fast as it can where no --rate is given; iperf3's -u keeps to 1 Mbit/s",
    ),
    (&["-R", "--reverse", "--bidir"], "a direction has only `linerate stream`"),
    (
        &["-b", "--bandwidth", "--bitrate"],
        "`linerate stream` has --rate, for all flows together, and --rate-per-flow",
    ),
    (&["-n"], "--bytes ends a test, and k is 1000 there, Ki 1024"),
    (&["-k", "--blockcount"], "--count ends a test"),
    (&["-l", "--length", "--len"], "--size is the size of a send, and k is 1000 there, Ki 1024"),
    (&["-w"], "--window sets the socket buffers, and k is 1000 there, Ki 1024"),
    (&["-M", "--set-mss"], "--mss sets the largest segment"),
    (&["-C"], "--congestion names the congestion control"),
    (
        &["-Z", "--zerocopy"],
        "--splice sends from the page cache (sendfile), --zero-copy lends pages",
    ),
    (&["-N", "--nodelay"], "--no-delay sends small segments at once"),
    (&["-S", "--tos"], "--dscp marks packets: the upper six bits of a type of service"),
    (&["-O"], "--omit leaves a warm-up out"),
    (&["-A", "--affinity"], "--cpu chooses the processors of the threads"),
    (&["-B"], "--bind chooses the local address"),
    (&["-T"], "--title keeps a title with the result"),
    (&["-f", "--format"], "text has the unit that fits, and --json plain numbers"),
    (&["--logfile"], "--output writes the result to a file"),
    (&["--get-server-output"], "every result has both ends"),
];

/// Flags of iperf3's server, and what they are for `serve`.
const FLAGS_OF_SERVE: [(&[&str], &str); 6] = [
    (&["-s", "--server"], "it is a server"),
    (&["-1"], "--one-off serves one test"),
    (&["-D", "--daemon"], "a service manager, or `linerate serve &`, keeps it in the background"),
    (&["-B"], "--bind chooses the local address"),
    (&["-A", "--affinity"], "--cpu chooses the processors of the threads"),
    (&["--logfile"], "its log goes to standard output"),
];

/// The commands that measure with a host.
const MEASURING: [&str; 4] = ["stream", "media", "rr", "connect"];

/// What another tool's word for a command is here.
const COMMANDS: [(&[&str], &str); 3] = [
    (
        &["client", "-c", "--client"],
        "`linerate stream HOST` measures throughput, `rr` latency and `connect` connections a second against \
         `linerate serve`",
    ),
    (
        &["server", "-s", "--server"],
        "`linerate serve` is the server of stream, media, rr and connect",
    ),
    (
        &["iperf", "iperf2"],
        "iperf 2 has another protocol; `linerate stream HOST` measures throughput",
    ),
];

/// The words of a command line with `-c HOST` as HOST, where a server is all it can mean, and without `-b 0`, which means no
/// rate in iperf3.
pub(crate) fn as_ours(mut words: Vec<OsString>) -> Vec<OsString> {
    let is = |word: Option<&OsString>, names: &[&str]| {
        word.and_then(|word| word.to_str()).is_some_and(|word| names.contains(&word))
    };
    if !is(words.get(1), &MEASURING) {
        return words;
    }
    if let Some(at) = words.iter().position(|word| is(Some(word), &["-c", "--client"])) {
        words.remove(at);
    } else if let Some(word) =
        words.iter_mut().find(|word| word.as_encoded_bytes().starts_with(b"--client="))
    {
        *word = word.to_string_lossy().trim_start_matches("--client=").into();
    }
    let no_rate = |at: &usize| {
        is(words.get(*at), &["-b", "--bandwidth", "--bitrate"]) && is(words.get(at + 1), &["0"])
    };
    if let Some(at) = (2..words.len()).find(no_rate) {
        words.drain(at..at + 2);
    }
    words
}

/// A sentence for a user who typed a word of another tool's; None for any other error.
pub(crate) fn explain(error: &Error, words: &[OsString]) -> Option<String> {
    let typed = match error.kind() {
        ErrorKind::UnknownArgument => text_of(error, ContextKind::InvalidArg)?,
        ErrorKind::InvalidSubcommand => text_of(error, ContextKind::InvalidSubcommand)?,
        _ => return None,
    };
    let find = |rows: &[(&[&str], &'static str)]| {
        rows.iter().find(|(names, _)| names.contains(&typed)).map(|(_, sentence)| *sentence)
    };
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let is_command = !command.starts_with('-') && error.kind() == ErrorKind::UnknownArgument;
    if !is_command {
        let sentence = find(&COMMANDS)?;
        return Some(format!(
            "'{typed}': {sentence}; `linerate iperf3 ...` takes iperf3's own flags, such as -c HOST and -s"
        ));
    }
    let measures = MEASURING.contains(&command);
    if measures && typed.parse::<u16>().is_ok() {
        return Some(format!(
            "'{typed}': the port goes with the host, as HOST:{typed}, or behind --port"
        ));
    }
    if command == "serve" {
        let sentence = find(&FLAGS_OF_SERVE)?;
        return Some(format!(
            "{command} has no '{typed}': {sentence}. `linerate iperf3 -s {typed} ...` takes iperf3's flags and serves its \
             clients"
        ));
    }
    let sentence = find(&FLAGS).filter(|_| measures)?;
    let where_it_is = match flag_in(sentence) {
        Some(flag) if !has_flag(command, flag) => "; in `linerate stream`,",
        _ => ":",
    };
    Some(format!(
        "{command} has no '{typed}'{where_it_is} {sentence}. `linerate iperf3 -c HOST {typed} ...` takes iperf3's flags and \
         speaks to its servers"
    ))
}

/// The flag of ours that a sentence begins with.
fn flag_in(sentence: &str) -> Option<&str> {
    sentence.split([' ', ',']).next()?.strip_prefix("--")
}

fn has_flag(command: &str, flag: &str) -> bool {
    let all = Cli::command();
    let flags = all.find_subcommand(command).into_iter().flat_map(|found| found.get_arguments());
    flags.filter_map(|argument| argument.get_long()).any(|long| long == flag)
}

/// An error without a tip that is no correction of a slip: a flag that shares some letters helps nobody.
pub(crate) fn without_far_tips(mut error: Error) -> Error {
    let tips = [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    ];
    for (typed, suggested) in tips {
        let near = |tip: &str| {
            text_of(&error, typed).is_some_and(|word| {
                let word = word.split('=').next().unwrap_or(word);
                strsim::levenshtein(word, tip) <= MOST_EDITS
                    || word.replace('-', "") == tip.replace('-', "")
            })
        };
        let is_far = match error.get(suggested) {
            Some(ContextValue::String(tip)) => !near(tip),
            Some(ContextValue::Strings(tips)) => !tips.iter().any(|tip| near(tip)),
            _ => false,
        };
        if is_far {
            error.remove(suggested);
            // The usage is drawn around the suggestion.
            error.remove(ContextKind::Usage);
        }
        error.remove(ContextKind::Suggested);
    }
    error
}

/// An error's text with each flag as it was typed, where that was an alias.
pub(crate) fn as_typed(mut text: String, words: &[OsString]) -> String {
    let is_typed = |name: &&&str| {
        words.iter().filter_map(|word| word.to_str()).any(|word| match name.as_bytes() {
            [b'-', b'-', ..] => word.split('=').next() == Some(**name),
            _ => word.starts_with(**name) && !word.starts_with("--"),
        })
    };
    for (ours, aliases) in ALIASES {
        if is_typed(&&ours) {
            continue;
        }
        if let Some(alias) = aliases.iter().find(is_typed) {
            text = replace_flag(&text, ours, alias);
        }
    }
    text
}

/// Replaces a flag, but not the beginning of a longer one.
fn replace_flag(text: &str, flag: &str, alias: &str) -> String {
    let mut parts = text.split(flag);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let goes_on = part.starts_with(|letter: char| letter == '-' || letter.is_alphanumeric());
        replaced.push_str(if goes_on { flag } else { alias });
        replaced.push_str(part);
    }
    replaced
}

fn text_of(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// So many letters may be wrong in a slip of the finger (Levenshtein distance).
const MOST_EDITS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_flag_is_not_renamed_by_its_beginning() {
        let text = "--rate-per-flow goes with --flows <N>, '--flows' alone";
        assert_eq!(replace_flag(text, "--flow", "-x"), text);
        assert_eq!(
            replace_flag(text, "--flows", "-P"),
            "--rate-per-flow goes with -P <N>, '-P' alone"
        );
    }
}
