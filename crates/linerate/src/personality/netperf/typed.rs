//! What was typed, before anyone asks what it comes to.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use linerate_engine::netperf::{ControlPlan, EndPlan, TestOptions};
use linerate_measure::plan::Family;

use super::unit::Unit;
use linerate_personality::getopt::{Flag, Takes};

/// What a flag does with its argument.
pub(super) type Act = fn(&mut Typed, &str) -> Result<(), String>;

/// A flag: its letter, for sentences, and what it does. One without a letter can do nothing wrong.
#[derive(Clone, Copy)]
pub(super) struct Deed {
    pub(super) letter: Option<char>,
    pub(super) act: Act,
}

/// A flag with a value.
pub(super) const fn takes(
    short: char,
    value_name: &'static str,
    help: &'static str,
    act: Act,
) -> Flag<Deed> {
    Flag::letter(short, Takes::Value, value_name, help, Deed { letter: Some(short), act })
}

/// A flag that has the next word as its value if it looks like one.
pub(super) const fn takes_if(
    short: char,
    is_value: fn(&str) -> bool,
    value_name: &'static str,
    help: &'static str,
    act: Act,
) -> Flag<Deed> {
    Flag::letter(
        short,
        Takes::NextIf(is_value),
        value_name,
        help,
        Deed { letter: Some(short), act },
    )
}

/// A flag without a value.
pub(super) const fn bare(short: char, help: &'static str, act: Act) -> Flag<Deed> {
    Flag::letter(short, Takes::Nothing, "", help, Deed { letter: Some(short), act })
}

/// A flag of ours, which has a name and no letter.
pub(super) const fn ours(long: &'static str, help: &'static str, act: Act) -> Flag<Deed> {
    Flag::name(long, help, Deed { letter: None, act })
}

/// What is said of a flag whose value makes no sense.
pub(super) fn blame(name: &str, letter: Option<char>, sentence: &str) -> String {
    let letter = letter.map(|letter| format!("-{letter}: ")).unwrap_or_default();
    format!("{name}: {letter}{sentence}\n")
}

/// A host of the data connection as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataHost {
    pub(super) name: String,
    /// The leading bits of its address that stay; absent: all.
    pub(super) fixed_bits: Option<u32>,
}

/// What the flags say so far.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub(super) control: ControlPlan,
    /// Whether `-H` was given.
    pub(super) names_host: bool,
    /// The test's name in capitals.
    pub(super) test: String,
    pub(super) family: Option<Family>,
    pub(super) local: EndPlan,
    pub(super) remote: EndPlan,
    pub(super) options: TestOptions,
    /// `-R`, where it was given.
    pub(super) routed: Option<bool>,
    /// `-l`: seconds, or minus the bytes or transactions.
    pub(super) length: i64,
    pub(super) wait_s: u32,
    pub(super) request_bytes: Option<u32>,
    pub(super) response_bytes: Option<u32>,
    pub(super) burst: u32,
    pub(super) source_ports: Option<(u16, u16)>,
    pub(super) timeout_ns: Option<u64>,
    pub(super) local_burst: Option<u32>,
    pub(super) remote_burst: Option<u32>,
    pub(super) local_interval_us: Option<u32>,
    pub(super) remote_interval_us: Option<u32>,
    pub(super) file: Option<String>,
    /// Family of the data connection as told (`-4`, `-6` after `--`).
    pub(super) data_family: Option<Family>,
    /// The data connection's addresses as told (`-L`, `-H` after `--`).
    pub(super) data_local: Option<DataHost>,
    pub(super) data_host: Option<DataHost>,
    /// `-N`: there is no netserver.
    pub(super) alone: bool,
    pub(super) busy_poll: bool,
    pub(super) omni: OmniTyped,
    pub(super) shown: Shown,
    pub(super) repeat: Repeat,
    /// What stands in the way of asking for anything: help, version, an option that we don't do.
    pub(super) stop: Option<Stop>,
}

/// What the options of omni tests say about the kind of test.
#[derive(Clone, Debug, Default)]
pub(super) struct OmniTyped {
    /// `-d`: where data goes; the last one counts.
    pub(super) told: Option<Direction>,
    /// Where sizes say that data goes, while no `-d` does.
    pub(super) implied: Direction,
    /// `-c`: a connection for each transaction.
    pub(super) connects: bool,
    /// `-T` or `-t`.
    pub(super) udp: Option<bool>,
    /// The `-d` that says neither direction.
    pub(super) aimless: Option<String>,
    /// The number that `-T` names a protocol with.
    pub(super) numbered: Option<String>,
}

/// Where a test's data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Direction {
    /// Whether the client sends.
    pub(super) sends: bool,
    /// Whether it receives.
    pub(super) receives: bool,
}

impl Direction {
    /// Adds what the sizes of one option say.
    pub(super) fn add(&mut self, sends: bool, receives: bool) {
        self.sends |= sends;
        self.receives |= receives;
    }
}

/// How the result is shown.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) unit: Option<Unit>,
    pub(super) headers: bool,
    pub(super) verbosity: u32,
    pub(super) brand: Option<String>,
    /// `-D`, in seconds.
    pub(super) interim_s: Option<f64>,
    pub(super) statistics: bool,
    /// Whether latencies are shown with their nanoseconds.
    pub(super) fine_latency: bool,
    pub(super) uuid: Option<String>,
    /// How many times `-d` stood there.
    pub(super) debug: u32,
    pub(super) selected: Option<Selected>,
    /// The address that `-L` named, as it was written.
    pub(super) local_host: Option<String>,
    pub(super) binds_cpu: bool,
}

/// What `-k`, `-o` or `-O` asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) layout: Layout,
    /// The list, a file's name, `all` or `?`; empty for the default.
    pub(super) list: String,
}

/// How selected figures are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// `NAME=value`, one a line (`-k`).
    KeyValue,
    /// One line of headings, one of values (`-o`).
    Csv,
    /// Blocks of columns with four lines of headings (`-O`).
    Columns,
}

/// How often the test is repeated, and when it is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Repeat {
    /// Iterations; absent: `-i` and `-I` said nothing so far.
    pub(super) iterations: Option<IterationBounds>,
    /// 95 or 99.
    pub(super) level_percent: Option<u32>,
    pub(super) width_percent: Option<f64>,
    pub(super) result_only: bool,
}

/// How many iterations there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IterationBounds {
    pub(super) most: u32,
    pub(super) least: u32,
}

impl Repeat {
    /// What `-i` says. Who asks for more at least than at most gets the former.
    pub(super) fn bound(&mut self, most: Option<u32>, least: Option<u32>) {
        let before = self.iterations.unwrap_or(IterationBounds { most: 1, least: 1 });
        let least = least.unwrap_or(before.least);
        let most = most.unwrap_or(before.most).max(least);
        let few = |iterations: u32| iterations.clamp(3, 30);
        self.iterations = Some(IterationBounds { most: few(most), least: few(least) });
    }

    /// What `-I` says of iterations where `-i` did not.
    pub(super) fn bound_as_usual(&mut self) {
        self.iterations.get_or_insert(IterationBounds { most: 10, least: 3 });
    }
}

/// Why there is nothing to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// `-h`.
    Help,
    /// `-h` behind `--`.
    TestHelp,
    /// `-V`.
    Version,
}

impl Default for Typed {
    fn default() -> Self {
        let plain = EndPlan::default();
        Self {
            control: ControlPlan {
                host: "localhost".to_owned(),
                port: super::CONTROL_PORT,
                ..ControlPlan::default()
            },
            names_host: false,
            test: "TCP_STREAM".to_owned(),
            family: None,
            local: plain.clone(),
            remote: plain,
            options: TestOptions::default(),
            routed: None,
            length: 10,
            wait_s: 0,
            request_bytes: None,
            response_bytes: None,
            burst: 0,
            source_ports: None,
            timeout_ns: None,
            local_burst: None,
            remote_burst: None,
            local_interval_us: None,
            remote_interval_us: None,
            file: None,
            data_family: None,
            data_local: None,
            data_host: None,
            alone: false,
            busy_poll: false,
            omni: OmniTyped::default(),
            shown: Shown {
                unit: None,
                headers: true,
                verbosity: 1,
                brand: None,
                interim_s: None,
                statistics: false,
                fine_latency: false,
                uuid: None,
                debug: 0,
                selected: None,
                local_host: None,
                binds_cpu: false,
            },
            repeat: Repeat::default(),
            stop: None,
        }
    }
}

/// Reads the family beside a host: text with a 6 is IPv6, `inet` or text with a 4 is IPv4, `unspec`
/// and `0` are either.
pub(super) fn parse_family(text: &str) -> Result<Option<Family>, String> {
    let lower = text.to_ascii_lowercase();
    if lower.contains('6') {
        Ok(Some(Family::Ipv6))
    } else if lower.contains("inet") || lower.contains('4') {
        Ok(Some(Family::Ipv4))
    } else if lower.contains("unspec") || lower == "0" {
        Ok(None)
    } else {
        Err(format!("'{text}' is no address family: 4, 6, inet, inet6 or unspec"))
    }
}

/// An address, or a name's first address of this family, and of the preferred one if it has any.
pub(super) fn resolve(
    host: &str,
    family: Option<Family>,
    preferred: Option<Family>,
) -> io::Result<SocketAddr> {
    let found = resolve_all(host, family)?;
    let preferred = |address: &&SocketAddr| Some(family_of(address.ip())) == preferred;
    found.iter().find(preferred).or(found.first()).copied().ok_or_else(unsupported)
}

pub(super) fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 }
}

/// All its addresses of this family, one at least.
pub(super) fn resolve_all(host: &str, family: Option<Family>) -> io::Result<Vec<SocketAddr>> {
    let mut found: Vec<SocketAddr> = (host, 0).to_socket_addrs()?.collect();
    found.retain(|address| family.is_none_or(|told| told == family_of(address.ip())));
    if found.is_empty() { Err(unsupported()) } else { Ok(found) }
}

/// The ends of a connection between two hosts with these addresses: the first local one of a family that the
/// remote host has, too, and the first remote one of that. Where they share none, each end's first.
pub(super) fn choose_ends(
    locals: &[SocketAddr],
    remotes: &[SocketAddr],
) -> Option<(Option<SocketAddr>, SocketAddr)> {
    let reached = |local: &SocketAddr| {
        let mut same = remotes.iter().filter(|remote| remote.is_ipv4() == local.is_ipv4());
        same.next().map(|remote| (Some(*local), *remote))
    };
    let firsts = || remotes.first().map(|remote| (locals.first().copied(), *remote));
    locals.iter().find_map(reached).or_else(firsts)
}

/// What the C library says of a name without an address of the family asked for.
pub(super) fn unsupported() -> io::Error {
    io::Error::other("Address family for hostname not supported")
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::resolve;

    #[test]
    fn a_link_local_address_keeps_its_interface() {
        // Loopback is the first one everywhere.
        match resolve("fe80::1%lo", None, None).unwrap() {
            SocketAddr::V6(found) => assert_eq!(found.scope_id(), 1),
            other @ SocketAddr::V4(_) => panic!("{other}"),
        }
    }
}
