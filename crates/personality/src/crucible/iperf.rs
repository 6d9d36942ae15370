//! The driver of the benchmark `iperf`: what its parameters make of iperf3's command lines.

use serde_json::Value;

use super::document::list;
use super::parameter::{EngineRole, Setting};
use super::quirk::{Name, Reading};
use super::requirements::{Requirements, parse_requirements};

/// The benchmark's name.
pub const NAME: &str = "iperf";

/// The port of the first engine's server, less two.
const FIRST_PORT: u32 = 30_000;
/// The longest test in seconds, as iperf3 takes it.
const LONGEST_S: u64 = 86_400;
/// The longest time that is left out at the beginning, in seconds, as iperf3 takes it.
const LONGEST_OMIT_S: u64 = 600;
/// The test's duration where none is given, in seconds.
const DEFAULT_S: u64 = 10;

/// The rules of the parameters. A value that matches only by its beginning is refused ([`Name::PrefixValue`]).
const REQUIREMENTS: &str = r#"{
    "presets": {"basic": [
        {"arg": "time", "vals": ["60"]},
        {"arg": "protocol", "vals": ["tcp"]},
        {"arg": "ipv", "vals": ["4"]}
    ]},
    "validations": {
        "protocol": {"args": ["protocol"], "vals": "^(tcp|udp)$", "description": "tcp or udp"},
        "ipv": {"args": ["ipv"], "vals": "^[46]$", "description": "4 or 6"},
        "whole": {"args": ["time", "omit", "num-peers"], "vals": "[1-9][0-9]*",
            "description": "a whole number from 1"},
        "length": {"args": ["length"], "vals": "[1-9][0-9]*[KMGkmg]?",
            "description": "bytes, with K, M or G"},
        "bitrate": {"args": ["bitrate"], "vals": "[0-9]+(\\.[0-9]+)?[KMGTkmgt]?(/[0-9]+)?",
            "description": "bit/s, with K, M, G or T; 0: unlimited"},
        "max-loss-pct": {"args": ["max-loss-pct"], "vals": "([0-9]+(\\.[0-9]*)?|\\.[0-9]+)",
            "description": "percent"},
        "text": {"args": ["ifname", "remotehost", "passthru"], "vals": "^.+$"},
        "cpu-pin": {"args": ["cpu-pin"], "vals": "^(numa|cpu-numa)$",
            "description": "numa or cpu-numa"},
        "bitrate-range": {"args": ["bitrate-range"], "vals": "[0-9]+[KMG]-[0-9]+[KMG]",
            "description": "two bit rates with K, M or G, such as 50M-400M"}
    }
}"#;

/// The same with the original's patterns, most of which match a beginning.
const REQUIREMENTS_COMPAT: &str = r#"{
    "presets": {"basic": [
        {"arg": "time", "vals": ["60"]},
        {"arg": "protocol", "vals": ["tcp"]},
        {"arg": "ipv", "vals": ["4"]}
    ]},
    "validations": {
        "protocol": {"args": ["protocol"], "vals": "(tcp|udp)$"},
        "ipv": {"args": ["ipv"], "vals": "[46]$"},
        "whole": {"args": ["length", "time", "omit", "num-peers"], "vals": "[1-9][0-9]*"},
        "bitrate": {"args": ["bitrate"], "vals": "[0-9]*"},
        "max-loss-pct": {"args": ["max-loss-pct"], "vals": ["[1-9][0-9]*", "0?\\.[0-9]+", "0$"]},
        "text": {"args": ["ifname", "remotehost", "passthru"], "vals": ".+"},
        "cpu-pin": {"args": ["cpu-pin"], "vals": "(cpu-)?numa$"},
        "bitrate-range": {"args": ["bitrate-range"], "vals": "[0-9]*[KMG]-[0-9]*[KMG]"}
    }
}"#;

/// The rules of the benchmark's parameters.
///
/// # Errors
/// None: the rules are part of the program, and a test reads them.
pub fn requirements(reading: Reading) -> Result<Requirements, String> {
    let text = match reading {
        Reading::Strict => REQUIREMENTS,
        Reading::Compat => REQUIREMENTS_COMPAT,
    };
    parse_requirements(text).map_err(|fault| fault.text)
}

/// The first address of an interface, in what `ip -j address show dev NAME` prints.
pub fn find_address(json: &str, is_ipv6: bool) -> Option<String> {
    let family = if is_ipv6 { "inet6" } else { "inet" };
    let interfaces: Value = serde_json::from_str(json).ok()?;
    let addresses = interfaces.as_array()?.iter().filter_map(|one| one["addr_info"].as_array());
    let found = addresses.flatten().find(|address| address["family"] == family)?;
    found["local"].as_str().map(str::to_owned)
}

/// The interface of the default route, in what `ip -j route` prints; or that of the only route, in what
/// `ip -j route get` prints.
pub fn find_interface(json: &str, is_default: bool) -> Option<String> {
    let routes: Value = serde_json::from_str(json).ok()?;
    let found = routes.as_array()?.iter().find(|route| !is_default || route["dst"] == "default")?;
    found["dev"].as_str().map(str::to_owned)
}

/// Whether somebody listens on a TCP port, by a table of the kernel (proc(5): /proc/net/tcp and tcp6).
pub fn listens(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let is_port = columns.next().is_some_and(|address| address.ends_with(&port));
        // TCP_LISTEN of the kernel's net/tcp_states.h.
        is_port && columns.nth(1) == Some("0A")
    })
}

/// The processors that an engine is pinned to, out of those of a NUMA node in ascending order; none: it isn't pinned.
pub fn choose_cpus(pin: CpuPin, role: EngineRole, node: &[u32]) -> Vec<u32> {
    match (pin, role, node) {
        (CpuPin::Numa, _, node) => node.to_vec(),
        (CpuPin::CpuNuma, EngineRole::Server, [.., server, _]) => vec![*server],
        (CpuPin::CpuNuma, EngineRole::Client | EngineRole::All, [.., _, client]) => vec![*client],
        // A node with one processor has none to choose from.
        (CpuPin::CpuNuma, ..) => Vec::new(),
    }
}

/// A word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// A text.
    Text(String),
    /// The server's address.
    Address,
}

/// The processors that an engine runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPin {
    /// All processors of the interface's NUMA node.
    Numa,
    /// One of them: the last for the client, the one before it for the server.
    CpuNuma,
}

/// The range of a drop hunt: whole numbers in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The lower end.
    pub low: u64,
    /// The upper end.
    pub high: u64,
    /// `K`, `M` or `G`.
    pub unit: char,
}

/// The parameters of one engine.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineParameters {
    /// Seconds of the test.
    pub time_s: u64,
    /// Whether it is UDP.
    pub is_udp: bool,
    /// Whether it is IP version 6.
    pub is_ipv6: bool,
    /// The interface whose address the server tells.
    pub ifname: Option<String>,
    /// `--length`.
    pub length: Option<String>,
    /// `--bitrate`.
    pub bitrate: Option<String>,
    /// Seconds that are left out at the beginning.
    pub omit_s: u64,
    /// Further words for iperf3.
    pub passthru: Vec<String>,
    /// The processors.
    pub cpu_pin: Option<CpuPin>,
    /// The range of a drop hunt.
    pub range: Option<Range>,
    /// The loss that a hunt takes, in percent.
    pub max_loss_pct: f64,
    /// The server's address in place of the one that the server tells.
    pub remotehost: Option<String>,
    /// Engines that share the interface's interrupts.
    pub num_peers: u64,
}

impl Default for EngineParameters {
    fn default() -> Self {
        Self {
            time_s: DEFAULT_S,
            is_udp: false,
            is_ipv6: false,
            ifname: None,
            length: None,
            bitrate: None,
            omit_s: 0,
            passthru: Vec::new(),
            cpu_pin: None,
            range: None,
            max_loss_pct: 0.0,
            remotehost: None,
            num_peers: 0,
        }
    }
}

/// The port of an engine's server.
pub fn control_port(engine: u32) -> u16 {
    u16::try_from(FIRST_PORT + 2 * engine).unwrap_or(u16::MAX)
}

/// The parameters that an engine gets. A later one of the same name counts.
///
/// # Errors
/// A sentence that names the parameter.
pub fn read_options(
    settings: &[Setting],
    role: EngineRole,
    engine: u32,
    reading: Reading,
) -> Result<EngineParameters, String> {
    let mut options = EngineParameters::default();
    for setting in settings.iter().filter(|setting| setting.applies(role, engine)) {
        let val = setting.val.replace("%client-id%", &engine.to_string());
        options.take(&setting.arg, &val, engine, reading)?;
    }
    if options.range.is_some() && !options.is_udp {
        return Err("bitrate-range hunts for lost datagrams, so it needs protocol udp".to_owned());
    }
    Ok(options)
}

impl EngineParameters {
    fn take(&mut self, arg: &str, val: &str, engine: u32, reading: Reading) -> Result<(), String> {
        let whole = |most: u64| whole_of(arg, val, most, reading);
        match arg {
            "time" => self.time_s = whole(LONGEST_S)?,
            "omit" => self.omit_s = whole(LONGEST_OMIT_S)?,
            "num-peers" => self.num_peers = whole(u64::from(u32::MAX))?,
            "protocol" => self.is_udp = val == "udp",
            "ipv" => self.is_ipv6 = val == "6",
            "ifname" => self.ifname = Some(resolve_template(val, engine)?),
            "length" => self.length = Some(val.to_owned()),
            "bitrate" => self.bitrate = Some(val.to_owned()),
            "remotehost" => self.remotehost = Some(val.to_owned()),
            // Commas stand for blanks; a shell drops empty words.
            "passthru" => {
                let words = val.split([',', ' ']).filter(|word| !word.is_empty());
                self.passthru = words.map(str::to_owned).collect();
            }
            "cpu-pin" => {
                self.cpu_pin = Some(if val == "numa" { CpuPin::Numa } else { CpuPin::CpuNuma });
            }
            "bitrate-range" => self.range = Some(parse_range(val, reading)?),
            "max-loss-pct" => {
                self.max_loss_pct = leading_number(val).ok_or_else(|| {
                    format!("max-loss-pct is {val:?}, and has to be a number of percent")
                })?;
            }
            other => {
                let known = [
                    "time",
                    "protocol",
                    "ipv",
                    "ifname",
                    "length",
                    "bitrate",
                    "omit",
                    "passthru",
                    "cpu-pin",
                    "bitrate-range",
                    "max-loss-pct",
                    "remotehost",
                    "num-peers",
                ];
                return Err(format!(
                    "the benchmark iperf has no parameter {other:?}; known are {}",
                    list(&known)
                ));
            }
        }
        Ok(())
    }

    /// The client's words after the program's name; a hunt appends `--bitrate`. `server` is the server's number.
    pub fn client_words(&self, server: u32) -> Vec<Word> {
        let port = control_port(server).to_string();
        let mut words = texts(&["--format", "k", "-c"]);
        words.push(match &self.remotehost {
            Some(host) => Word::Text(host.clone()),
            None => Word::Address,
        });
        words.extend(texts(&["-p", &port]));
        if self.is_udp {
            words.extend(texts(&["--udp"]));
        }
        if let Some(length) = &self.length {
            words.extend(texts(&["--length", length]));
        }
        if self.omit_s > 0 {
            words.extend(texts(&["--omit", &self.omit_s.to_string()]));
        }
        words.extend(self.passthru.iter().cloned().map(Word::Text));
        if !self.passthru.iter().any(|word| sets_time(word)) {
            words.extend(texts(&["-t", &self.time_s.to_string()]));
        }
        if let Some(bitrate) = &self.bitrate {
            words.extend(texts(&["--bitrate", bitrate]));
        }
        if self.is_ipv6 {
            words.extend(texts(&["-6"]));
        }
        words
    }

    /// The server's words after the program's name.
    pub fn server_words(&self, engine: u32) -> Vec<String> {
        let port = control_port(engine).to_string();
        let mut words: Vec<String> =
            ["-s", "--format", "k", "-p", &port].iter().map(|word| (*word).to_owned()).collect();
        words.extend(self.passthru.iter().cloned());
        if self.is_ipv6 {
            words.push("-6".to_owned());
        }
        words
    }

    /// How long the client's program runs, in seconds, without set-up.
    pub fn expected_s(&self) -> u64 {
        let time_s = self.passthru_time_s().unwrap_or(self.time_s);
        (time_s + self.omit_s).saturating_mul(self.range.map_or(1, |range| range.steps()))
    }

    /// The time that words of the passthru set.
    fn passthru_time_s(&self) -> Option<u64> {
        let mut words = self.passthru.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let value = match word {
                "-t" | "--time" => words.next()?,
                other => match other.strip_prefix("-t").or(other.strip_prefix("--time=")) {
                    Some(value) => value,
                    None => continue,
                },
            };
            return value.parse().ok();
        }
        None
    }
}

impl Range {
    /// The most steps that a hunt takes.
    pub fn steps(&self) -> u64 {
        let mut width = self.high.saturating_sub(self.low);
        let mut steps = 0;
        while width >= 2 {
            width = width.div_ceil(2);
            steps += 1;
        }
        steps
    }
}

/// Whether a word of the passthru sets the time.
fn sets_time(word: &str) -> bool {
    word.starts_with("-t") || word.starts_with("--time")
}

fn texts(words: &[&str]) -> Vec<Word> {
    words.iter().map(|word| Word::Text((*word).to_owned())).collect()
}

/// A whole number; with quirks what follows its digits is ignored.
fn whole_of(arg: &str, val: &str, most: u64, reading: Reading) -> Result<u64, String> {
    let digits = match reading {
        Reading::Strict => val,
        Reading::Compat => val.trim_end_matches(|character: char| !character.is_ascii_digit()),
    };
    digits
        .parse()
        .ok()
        .filter(|number| *number <= most)
        .ok_or_else(|| format!("{arg} is {val:?}, and has to be a whole number up to {most}"))
}

/// The number that a text begins with.
fn leading_number(text: &str) -> Option<f64> {
    let end = text
        .char_indices()
        .find(|(_, character)| !character.is_ascii_digit() && *character != '.')
        .map_or(text.len(), |(index, _)| index);
    text.get(..end)?.parse().ok()
}

/// Reads the range of a hunt.
fn parse_range(val: &str, reading: Reading) -> Result<Range, String> {
    let wrong =
        || format!("bitrate-range is {val:?}, and has to be two bit rates, such as 50M-400M");
    let (low, high) = val.split_once('-').ok_or_else(wrong)?;
    let end = |text: &str| {
        let unit = text.chars().next_back().filter(|unit| "KMG".contains(*unit))?;
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        // Steps are computed in 64 bits.
        (number <= u64::from(u32::MAX)).then_some((number, unit))
    };
    let (low, unit) = end(low).ok_or_else(wrong)?;
    let (high, second_unit) = end(high).ok_or_else(wrong)?;
    if unit != second_unit && !reading.is_compat() {
        return Err(Name::SecondUnit.refuse(&format!("bitrate-range is {val:?}")));
    }
    if low > high {
        return Err(format!("bitrate-range is {val:?}, which begins above its end"));
    }
    Ok(Range { low, high, unit })
}

/// An interface's name, in which `%id:{"1":"a","2":"b"}%` stands for what belongs to the engine.
fn resolve_template(text: &str, engine: u32) -> Result<String, String> {
    const MARK: &str = "%id:";
    let Some((before, rest)) = text.split_once(MARK) else { return Ok(text.to_owned()) };
    let wrong = |why: &str| format!("ifname is {text:?}: {why}");
    let (table, after) =
        rest.rsplit_once('%').ok_or_else(|| wrong("%id: lacks the % that ends it"))?;
    let table: Value =
        serde_json::from_str(table).map_err(|_| wrong("what follows %id: isn't a JSON object"))?;
    let own = table
        .get(engine.to_string())
        .and_then(Value::as_str)
        .ok_or_else(|| wrong(&format!("there is no name for engine {engine}")))?;
    Ok(format!("{before}{own}{after}"))
}

#[cfg(test)]
mod tests;
