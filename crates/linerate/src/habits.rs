//! Flags of iperf3 and similar tools that users give to linerate's own commands.
//!
//! A flag that means the same is an alias of linerate's flag (`alias` in [`crate::args`]). For any other flag, the error
//! names linerate's flag, and the command line of `linerate iperf3` that takes iperf3's flag.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::args::Cli;

/// linerate's flags and their aliases.
const ALIASES: [(&str, &[&str]); 6] = [
    ("--time", &["--duration"]),
    ("--flows", &["--parallel", "-P"]),
    ("--down", &["--reverse", "-R"]),
    ("--both", &["--bidir"]),
    ("--rate-per-flow", &["--bandwidth", "--bitrate", "-b"]),
    ("--json", &["-J"]),
];

/// iperf3's flags, and what linerate has instead.
const FLAGS: [(&[&str], &str); 19] = [
    (
        &["-u"],
        "--udp chooses UDP, and without --rate it sends as fast as possible (iperf3: 1 Mbit/s)",
    ),
    (
        &["-R", "--reverse", "--bidir"],
        "only `linerate stream` has a direction (--up, --down, --both)",
    ),
    (
        &["-b", "--bandwidth", "--bitrate"],
        "`linerate stream` has --rate for all flows together, and --rate-per-flow",
    ),
    (&["-n"], "--bytes ends a test after so many bytes; k is 1000, Ki is 1024"),
    (&["-k", "--blockcount"], "--count ends a test after so many sends or transactions"),
    (&["-l", "--length", "--len"], "--size sets the size of a send; k is 1000, Ki is 1024"),
    (&["-w"], "--window sets the socket buffers; k is 1000, Ki is 1024"),
    (&["-M", "--set-mss"], "--mss sets the maximum segment size"),
    (&["-C"], "--congestion sets the congestion control"),
    (
        &["-Z", "--zerocopy"],
        "--splice sends from the page cache (sendfile), --zero-copy uses MSG_ZEROCOPY",
    ),
    (&["-N", "--nodelay"], "--no-delay switches off Nagle's algorithm"),
    (&["-S", "--tos"], "--dscp sets the upper six bits of the type of service"),
    (&["-O"], "--omit excludes a warm-up"),
    (&["-A", "--affinity"], "--cpu sets the processors of the threads"),
    (&["-B"], "--bind sets the local address"),
    (&["-T"], "--title stores a title in the result"),
    (&["-f", "--format"], "text output chooses the unit, and --json has plain numbers"),
    (&["--logfile"], "--output writes the result to a file"),
    (&["--get-server-output"], "every result contains both ends"),
];

/// Flags of iperf3's server, and what `serve` has instead.
const FLAGS_OF_SERVE: [(&[&str], &str); 6] = [
    (&["-s", "--server"], "`linerate serve` is always a server"),
    (&["-1"], "--one-off serves one test"),
    (
        &["-D", "--daemon"],
        "to run it in the background, use a service manager or `linerate serve &`",
    ),
    (&["-B"], "--bind sets the local address"),
    (&["-A", "--affinity"], "--cpu sets the processors of the threads"),
    (&["--logfile"], "the log goes to standard output"),
];

/// The commands that measure with a host.
const MEASURING: [&str; 4] = ["stream", "media", "rr", "connect"];

/// Other tools' names of commands, and linerate's commands.
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
        "iperf 2 uses another protocol; `linerate stream HOST` measures throughput",
    ),
];

/// The words of a measuring command, with `-c HOST` as HOST, and without `-b 0` (in iperf3: no limit of the rate).
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

/// The error text for a flag or command of another tool, or of another command; `None` for any other error.
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
    if typed == "--explain" {
        return Some(format!(
            "{command} has no '--explain': only `linerate stream` over TCP and TLS has losses that further runs explain"
        ));
    }
    let measures = MEASURING.contains(&command);
    if measures && typed.parse::<u16>().is_ok() {
        return Some(format!("'{typed}': give the port as HOST:{typed} or with --port {typed}"));
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

/// linerate's flag, if a text begins with one.
fn flag_in(sentence: &str) -> Option<&str> {
    sentence.split([' ', ',']).next()?.strip_prefix("--")
}

fn has_flag(command: &str, flag: &str) -> bool {
    let all = Cli::command();
    let flags = all.find_subcommand(command).into_iter().flat_map(|found| found.get_arguments());
    flags.filter_map(|argument| argument.get_long()).any(|long| long == flag)
}

/// An error without a suggestion that differs too much from the typed flag.
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

/// An error's text with each flag as it was typed, also if the typed flag is an alias.
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

/// The most letters by which a suggestion may differ from the typed flag (Levenshtein distance).
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
