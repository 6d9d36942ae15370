//! The command lines of other tools: the same options, output and exit codes, with our engine
//! behind them.
//!
//! `linerate netperf ...` and a link of the name `netperf` to this program do the same. A
//! personality is a table of flags (the crate `linerate-personality`), a map from flags to a plan of its dialect, and
//! printers.

mod crucible;
mod ctstraffic;
pub mod iperf3;
pub mod netperf;
mod qperf;
mod recorder;
pub mod run_document;
pub mod secnetperf;
mod stdout;
mod verdict_line;

use std::ffi::OsString;
use std::path::Path;

use linerate_personality::iperf3::help;
use linerate_personality::netperf::{command_line, server_flags};
use linerate_personality::secnetperf::flags;

use crate::output::narrate;
use stdout::say;

/// A tool whose command line we speak.
#[derive(Clone, Copy, Debug)]
pub struct Personality {
    /// Its name, as a command of ours and as the name of a link.
    pub name: &'static str,
    /// What it is, for help.
    pub about: &'static str,
    /// Does what a command line says: the tool's name first, then the words. Returns the
    /// tool's exit code.
    pub perform: fn(name: &str, words: &[String]) -> u8,
    /// What is typed most, a line each.
    pub examples: &'static str,
    /// Its options.
    pub render_help: fn() -> String,
}

/// All of them.
pub const PERSONALITIES: &[Personality] = &[
    Personality {
        name: "iperf3",
        about: "throughput, loss and jitter, with iperf3's clients and servers",
        perform: iperf3::perform,
        examples: "linerate iperf3 -s\n\
                   linerate iperf3 -c HOST -P 4 -t 30\n\
                   linerate iperf3 -c HOST -u -b 100M -R\n\
                   linerate iperf3 -c HOST -J",
        render_help: help::render_help,
    },
    Personality {
        name: "netperf",
        about: "netperf 2.7, against its netserver or ours",
        perform: netperf::perform,
        examples: "linerate netperf -H HOST -t TCP_STREAM -l 30\n\
                   linerate netperf -H HOST -t TCP_RR -- -r 1,1 -k MEAN_LATENCY,P99_LATENCY\n\
                   linerate netperf -H HOST -t UDP_STREAM -- -m 1472",
        render_help: command_line::usage,
    },
    Personality {
        name: "netserver",
        about: "netserver 2.7, for its netperf or ours",
        perform: netperf::perform_server,
        examples: "linerate netserver\n\
                   linerate netserver -D -4 -p 12866",
        render_help: server_flags::server_usage,
    },
    Personality {
        name: "secnetperf",
        about: "MsQuic's secnetperf: the perf dialect",
        perform: secnetperf::perform,
        examples: "linerate secnetperf -exec:maxtput\n\
                   linerate secnetperf -target:HOST -exec:maxtput -down:10s\n\
                   linerate secnetperf -target:HOST -scenario:rps -run:10s",
        render_help: flags::render_help,
    },
    Personality {
        name: "ctstraffic",
        about: "Microsoft's ctsTraffic 2.0: verified transfers, and media streams",
        perform: ctstraffic::perform,
        examples: "linerate ctstraffic -listen:*\n\
                   linerate ctstraffic -target:HOST -connections:100 -transfer:1000000\n\
                   linerate ctstraffic -target:HOST -pattern:duplex -timelimit:30000",
        render_help: ctstraffic::render_help,
    },
    Personality {
        name: "qperf",
        about: "qperf: downloads over QUIC, with its clients and servers",
        perform: qperf::perform,
        examples: "linerate qperf -s --tls-cert server.crt --tls-key server.key\n\
                   linerate qperf -c HOST -t 30 -i 0.1 --print-raw\n\
                   linerate qperf -c HOST -e",
        render_help: qperf::render_help,
    },
    Personality {
        name: "crucible",
        about: "Crucible's matrices, run files and queries of results",
        perform: crucible::perform,
        examples: "linerate crucible multiplex --input mv-params.json\n\
                   linerate crucible run run-file.json\n\
                   linerate crucible get result --run ID",
        render_help: crucible::render_help,
    },
];

/// Does what a command line says if it is another tool's; its exit code.
pub(crate) fn perform(arguments: &[OsString]) -> Option<u8> {
    let (personality, words) = find(arguments)?;
    let mut read = Vec::with_capacity(words.len());
    for (place, word) in words.iter().enumerate() {
        let Some(word) = word.to_str() else {
            let (name, place) = (personality.name, place + 1);
            narrate(&format!("{name}: argument {place} is not UTF-8: {}\n", word.display()));
            return Some(1);
        };
        read.push(word.to_owned());
    }
    stdout::begin(personality.name);
    let exit_code = (personality.perform)(personality.name, &read);
    Some(stdout::exit_code(exit_code, 1))
}

/// The options of the tool that `help TOOL` names.
pub(crate) fn help(arguments: &[OsString]) -> Option<String> {
    let [_, help, name] = arguments else { return None };
    let named = PERSONALITIES.iter().find(|personality| name == personality.name)?;
    (help == "help").then(|| (named.render_help)())
}

/// The personality that is meant by the program's name or by the first word, and its own words.
fn find(arguments: &[OsString]) -> Option<(&'static Personality, &[OsString])> {
    // A link may be named as the original is, which no system of its home tells from other cases.
    let named = |name: &str| {
        PERSONALITIES.iter().find(|personality| match personality.name {
            "ctstraffic" => name.eq_ignore_ascii_case("ctstraffic"),
            own => own == name,
        })
    };
    let (program, rest) = arguments.split_first()?;
    if let Some(found) = Path::new(program).file_name()?.to_str().and_then(named) {
        return Some((found, rest));
    }
    let (first, rest) = rest.split_first()?;
    Some((first.to_str().and_then(named)?, rest))
}

/// The personalities as `--help` lists them.
pub fn render_overview() -> String {
    let width = PERSONALITIES.iter().map(|personality| personality.name.len()).max().unwrap_or(0);
    let mut text =
        "Other tools' command lines, as a command or as a link of that name:\n".to_owned();
    for Personality { name, about, .. } in PERSONALITIES {
        text.push_str(&format!("  {name:width$}  {about}\n"));
    }
    text
}
