//! Other tools' commands in a plan: their own flags, their own servers.
//!
//! A parameter is the name of an option: `parallel = 4` becomes `--parallel 4` of iperf3, `l = 10` becomes `-l 10` of
//! netperf, and `test.m` an option behind its `--`.

use std::collections::BTreeSet;

use linerate_lab::plan::{Fault, Known, Prepared, Ready, TaskSpec, Word, Work};
use linerate_measure::matrix::Iteration;
use linerate_measure::threshold::figures_of;
use linerate_personality::getopt::{Flag as GetoptFlag, Takes};
use linerate_personality::{ctstraffic, iperf3, netperf, qperf, secnetperf};

use super::workloads::Flag;
use crate::personality::run_document::RECORDS;

/// A tool, and how its options are written.
pub(super) struct Tool {
    /// Its name, as a command and as a workload.
    pub(super) name: &'static str,
    /// The words that start its server, up to its port.
    server: &'static [&'static str],
    /// A line of the server's output when it listens.
    ready: &'static str,
    /// What stands before the server's address in the client's command line.
    target: &'static str,
    /// What stands before the port in the client's.
    port: &'static str,
    /// The options by their names.
    options: fn() -> Vec<Offered>,
    /// Options that both ends must have.
    common: &'static [&'static str],
    /// The option with the length of a test, and its unit in nanoseconds.
    time: (&'static str, u64),
    /// Checks a client's words as the tool would.
    check: fn(&[String]) -> Result<(), String>,
}

/// An option of a tool.
struct Offered {
    name: String,
    takes_value: bool,
    /// How it is written, up to its value.
    written: String,
    /// Whether its value stands in the same word.
    is_joined: bool,
    /// Whether it stands behind `--`.
    is_of_test: bool,
}

const SECOND_NS: u64 = 1_000_000_000;
/// How long a test is whose command line says nothing.
const DEFAULT_NS: u64 = 10 * SECOND_NS;

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "iperf3",
        server: &["iperf3", "-s", "-p"],
        ready: "Server listening",
        target: "-c",
        port: "-p",
        options: || of_getopt(iperf3::flags::TABLE, &["client", "server", "port"], false),
        common: &[],
        time: ("time", SECOND_NS),
        check: |words| match crate::personality::iperf3::read(words) {
            Ok(_) => Ok(()),
            Err(_) => {
                Err("iperf3 refuses these options; `linerate iperf3` with them says why".to_owned())
            }
        },
    },
    Tool {
        name: "netperf",
        server: &["netserver", "-D", "-p"],
        ready: "Starting netserver",
        target: "-H",
        port: "-p",
        options: || {
            let taken = ["H", "p", "h", "V"];
            let mut all = of_getopt(netperf::flags::GLOBAL, &taken, false);
            all.extend(of_getopt(netperf::test_flags::TEST, &["h"], true));
            all
        },
        common: &[],
        time: ("l", SECOND_NS),
        check: |words| {
            let read = netperf::command_line::parse_command_line("netperf", words);
            read.map(drop).map_err(|said| first_line(&said.stderr))
        },
    },
    Tool {
        name: "secnetperf",
        server: &["secnetperf", "-port:"],
        ready: "Started!",
        target: "-target:",
        port: "-port:",
        options: || {
            let taken: BTreeSet<&str> = ["target", "server", "to", "bind", "port"].into();
            let flags = secnetperf::flags::FLAGS.iter().flat_map(|flag| flag.names);
            of_colons(flags.copied().filter(|name| !taken.contains(name)))
        },
        common: &[],
        time: ("run", SECOND_NS),
        check: |_| Ok(()),
    },
    Tool {
        name: "ctstraffic",
        server: &["ctstraffic", "-listen:*", "-port:"],
        ready: "Affinitized to",
        target: "-target:",
        port: "-port:",
        options: || {
            let taken: BTreeSet<&str> = ["Listen", "Target", "Port"].into();
            let flags = ctstraffic::flags::TABLE.iter().map(|flag| flag.name);
            of_colons(flags.filter(|name| !taken.contains(name)))
        },
        common: &[
            "bitspersecond",
            "bufferdepth",
            "datagrambytelimit",
            "framerate",
            "pattern",
            "protocol",
            "pullbytes",
            "pushbytes",
            "streamlength",
            "transfer",
        ],
        time: ("timelimit", SECOND_NS / 1000),
        check: |words| {
            let read = ctstraffic::command_line::parse_command_line(words);
            read.map(drop).map_err(|refusal| refusal.text)
        },
    },
    Tool {
        name: "qperf",
        server: &["qperf", "-s", "--listen-port"],
        ready: "starting server",
        target: "-c",
        port: "-p",
        options: || of_getopt(qperf::flags::TABLE, &["c", "s", "P", "p"], false),
        common: &[],
        time: ("t", SECOND_NS),
        check: |words| {
            let read = qperf::command_line::parse_command_line("qperf", words);
            read.map(drop).map_err(|said| first_line(&said.stderr))
        },
    },
];

fn of_getopt<M: Copy>(table: &[GetoptFlag<M>], taken: &[&str], is_of_test: bool) -> Vec<Offered> {
    let offered = table.iter().filter_map(|flag| {
        let letter = flag.short.map(String::from);
        let name = if flag.long.is_empty() { letter? } else { flag.long.to_owned() };
        let dashes = if flag.long.is_empty() { "-" } else { "--" };
        let is_taken = taken.contains(&name.as_str());
        let prefix = if is_of_test { "test." } else { "" };
        (!is_taken).then(|| Offered {
            takes_value: !matches!(flag.takes, Takes::Nothing),
            written: format!("{dashes}{name}"),
            is_joined: false,
            is_of_test,
            name: format!("{prefix}{}", name.replace('-', "_")),
        })
    });
    offered.collect()
}

fn of_colons<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Offered> {
    let offered = names.map(|name| Offered {
        name: name.to_ascii_lowercase(),
        takes_value: true,
        written: format!("-{name}:"),
        is_joined: true,
        is_of_test: false,
    });
    offered.collect()
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}

impl Tool {
    pub(super) fn of_name(name: &str) -> Option<&'static Self> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    pub(super) fn parameters(&self) -> Vec<String> {
        let options = (self.options)();
        let own = options.iter().map(|option| option.name.clone());
        let of_server = options.iter().filter(|one| !one.is_of_test);
        own.chain(of_server.map(|option| format!("server.{}", option.name))).collect()
    }

    pub(super) fn prepare(&self, iteration: &Iteration) -> Result<Prepared, Fault> {
        let options = (self.options)();
        let (mut server, mut client) = (self.begin_server(), self.begin_client());
        let mut of_test: Vec<Word> = Vec::new();
        let mut expected_ns = DEFAULT_NS;
        for setting in &iteration.settings {
            let (name, is_of_server) = match setting.name.strip_prefix("server.") {
                Some(name) => (name, true),
                None => (setting.name.as_str(), false),
            };
            let Some(option) = options.iter().find(|option| option.name == name) else { continue };
            let fault = |why| Fault { parameter: Some(setting.name.clone()), why };
            let words = option.write(&setting.value).map_err(fault)?;
            if name == self.time.0 && !is_of_server {
                let count: f64 = setting.value.parse().unwrap_or(0.0);
                expected_ns = (count.max(0.0) * self.time.1 as f64) as u64;
            }
            let common = self.common.contains(&name);
            match (is_of_server, option.is_of_test) {
                (true, _) => server.extend(words),
                (false, true) => of_test.extend(words),
                (false, false) if common => {
                    server.extend(words.iter().cloned());
                    client.extend(words);
                }
                (false, false) => client.extend(words),
            }
        }
        if !of_test.is_empty() {
            client.push("--".into());
            client.extend(of_test);
        }
        self.check_client(&client)?;
        let mut client = TaskSpec::new(client, Ready::AtOnce);
        client.environment.insert(RECORDS.to_owned(), "fd:1".to_owned());
        let server = TaskSpec::new(server, Ready::Text(self.ready.to_owned()));
        Ok(Prepared {
            work: Work { server, client },
            search: None,
            expected_ns,
            longest_ns: None,
            figures: figures_of(None),
            needs_port: true,
        })
    }

    /// The server's words up to its port.
    fn begin_server(&self) -> Vec<Word> {
        let mut words: Vec<Word> = self.server.iter().map(|word| Word::from(*word)).collect();
        add(&mut words, Known::Port);
        words
    }

    fn begin_client(&self) -> Vec<Word> {
        let mut words: Vec<Word> = vec![self.name.into(), self.target.into()];
        add(&mut words, Known::Address);
        words.push(self.port.into());
        add(&mut words, Known::Port);
        words
    }

    fn check_client(&self, words: &[Word]) -> Result<(), Fault> {
        let (address, key) = ("127.0.0.1".to_owned(), String::new());
        let reached =
            linerate_lab::plan::Reached { address, port: 5201, key, ..Default::default() };
        let words: Vec<String> = words.iter().skip(1).map(|word| word.complete(&reached)).collect();
        (self.check)(&words).map_err(|why| Fault { parameter: None, why })
    }
}

/// Adds what is known later: to the last word if that ends with a colon, else as a word of its own.
fn add(words: &mut Vec<Word>, known: Known) {
    match words.last_mut() {
        Some(last) if last.text.ends_with(':') => last.then = Some(known),
        _ => words.push(known.into()),
    }
}

impl Offered {
    fn write(&self, value: &str) -> Result<Vec<Word>, String> {
        Ok(match Flag::of(value, self.takes_value)? {
            Flag::Off => Vec::new(),
            Flag::Alone => vec![self.written.clone().into()],
            Flag::With(value) if self.is_joined => vec![format!("{}{value}", self.written).into()],
            Flag::With(value) => vec![self.written.clone().into(), value.into()],
        })
    }
}
