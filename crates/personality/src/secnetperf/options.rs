//! What a command line means: the original's order of reading, its defaults and its refusals.

mod ids;
mod threads;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::colon_options::{
    ColonOptions, Quantity, means, parse_leading, parse_quantity, parse_u8, parse_u16, parse_u32,
};
use linerate_measure::plan::limits::QUIC_MTU_BYTES;
use linerate_wire::perf::DEFAULT_PORT;
use linerate_wire::perf::exchange::Shape;

use super::status;
pub use threads::{ThreadOptions, Urgency};

/// The most threads of a client.
pub const THREAD_LIMIT: u32 = 128;
/// The least bytes of a send.
const IO_SIZE_MIN: u32 = 256;

/// A command line that can't be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The exit code.
    pub status: u8,
    /// What is said.
    pub text: String,
    /// Whether the way to help is shown.
    pub points_to_help: bool,
}

impl Refusal {
    fn plain(text: String) -> Self {
        Self { status: status::INVALID, text, points_to_help: false }
    }

    /// A refusal that shows the way to help.
    pub fn helping(text: impl Into<String>) -> Self {
        Self { status: status::INVALID, text: text.into(), points_to_help: true }
    }
}

/// What was said of QUIC connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuicOptions {
    /// `-encrypt:0`: whether a client asks for packets in clear.
    pub clear: bool,
    /// `-cc:bbr`: whether the congestion control is BBR and not CUBIC.
    pub bbr: bool,
    /// `-ecn`: congestion marks on packets.
    pub ecn: bool,
    /// `-dscp`: the code point of packets.
    pub dscp: u8,
    /// `-pacing:0`: whether packets aren't spaced out.
    pub unpaced: bool,
    /// `-serverid`: the server's number in connection ids.
    pub server_id: Option<u32>,
    /// `-cibir`: the well-known start of connection ids, 1 to 6 bytes.
    pub mark: Option<Vec<u8>>,
    /// `-hystart`: HyStart++ with CUBIC.
    pub hystart: bool,
    /// `--draft-29`: whether a client speaks draft 29 and not version 1.
    pub draft_29: bool,
    /// `--mtu-limit`: the longest UDP payload of a client's packets.
    pub mtu_most_bytes: Option<u16>,
}

/// What a server waits before each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// How long, us; with chance, on average.
    pub mean_us: u32,
    /// Whether the waits are drawn by chance.
    pub varies: bool,
}

/// What both sides have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedOptions {
    /// `-cpu`, `-exec`, `-affinitize`, `-highpri`, `-pollidle`.
    pub threads: ThreadOptions,
    /// `-maxruntime`.
    pub max_runtime: Option<Duration>,
    /// `-watchdog`.
    pub watchdog: Option<Duration>,
    /// QUIC connections.
    pub quic: QuicOptions,
    /// Where a client's connections are written down.
    pub logs: Option<PathBuf>,
    /// Sentences about values that were replaced.
    pub warnings: Vec<String>,
}

/// What a server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// `-bind`, `-port`: where it listens.
    pub address: SocketAddr,
    /// `-stats`.
    pub stats: bool,
    /// `-delay`, `-delayType`.
    pub delay: Option<Delay>,
    /// `-cipher`: the mask of suites; 0: all.
    pub suites: u8,
    /// Sentences about values that were replaced.
    pub warnings: Vec<String>,
}

/// What a client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// `-target`: the server.
    pub target: String,
    /// 4, 6 or any.
    pub family: u16,
    /// `-port`.
    pub port: u16,
    /// `-inctarget`.
    pub numbered_names: bool,
    /// `None`: as many as the options of both sides say.
    pub threads: Option<u32>,
    /// `-bind`: local addresses.
    pub local: Vec<SocketAddr>,
    /// `-tcp`.
    pub tcp: bool,
    /// `-sendbuf`.
    pub copies: bool,
    /// Whether each connection has a UDP port of its own.
    pub own_ports: bool,
    /// `-ptput`.
    pub prints_throughput: bool,
    /// `-pctput`.
    pub prints_stream_throughput: bool,
    /// `-prate`.
    pub prints_rate: bool,
    /// `-pconn`.
    pub prints_connections: bool,
    /// `-plat`.
    pub prints_latency: bool,
    /// `-praw`.
    pub prints_raw: bool,
    /// `-pstream`.
    pub prints_waits: bool,
    /// `-oldformat`.
    pub old_format: bool,
    /// `-extraOutputFile`.
    pub extra_output_file: Option<String>,
    /// `-conns`.
    pub connections: u32,
    /// `-streams`.
    pub streams: u32,
    /// `-up`, `-down`, `-timed`, `-iosize`.
    pub shape: Shape,
    /// `-rconn`.
    pub repeats_connections: bool,
    /// `-rstream`.
    pub repeats_streams: bool,
    /// 0: until all is done.
    pub runtime_us: u64,
}

/// The target, if there is one: the later name wins.
pub fn target<'a>(options: ColonOptions<'a>) -> Option<&'a str> {
    options.value_of_last(&["target", "server", "to", "remote", "peer"])
}

fn set(value: Option<&str>, to: &mut bool) {
    if let Some(value) = value {
        *to = parse_u8(value) != 0;
    }
}

/// A time in milliseconds where 0 is none.
fn milliseconds(value: Option<&str>) -> Option<Duration> {
    value.map(|value| u64::from(parse_u32(value))).filter(|ms| *ms > 0).map(Duration::from_millis)
}

impl SharedOptions {
    /// Reads what both sides have. `has_processor` tells whether the machine has the processor of
    /// this number.
    ///
    /// # Errors
    /// A processor, a scenario or a profile that there isn't.
    pub fn parse(
        options: ColonOptions<'_>,
        has_processor: impl Fn(u32) -> bool,
    ) -> Result<Self, Refusal> {
        let threads = ThreadOptions::parse(options, has_processor)?;
        let mut warnings = Vec::new();
        if let Some(name) = options.value("cc")
            && !means(name, "cubic")
            && !means(name, "bbr")
        {
            warnings.push(format!(
                "Failed to parse congestion control algorithm[{name}], use cubic as default"
            ));
        }
        let mut dscp = options.value("dscp").map_or(0, parse_u8);
        if dscp > 63 {
            warnings.push(format!("DSCP Value {dscp} is outside the valid range (0-63). Using 0."));
            dscp = 0;
        }
        let bbr = options.value("cc").is_some_and(|name| means(name, "bbr"));
        let clear = options.value("encrypt").is_some_and(|value| parse_u8(value) == 0);
        let mut ecn = false;
        set(options.value("ecn"), &mut ecn);
        let mut hystart = false;
        set(options.value("hystart"), &mut hystart);
        // Only a client is told how to send.
        let is_client = target(options).is_some();
        let unpaced =
            is_client && options.value("pacing").is_some_and(|value| parse_u8(value) == 0);
        Ok(Self {
            threads,
            max_runtime: milliseconds(options.value("maxruntime")),
            watchdog: milliseconds(options.value("watchdog")),
            quic: QuicOptions {
                clear,
                bbr,
                ecn,
                dscp,
                unpaced,
                // Only a server has a number.
                server_id: options.value("serverid").filter(|_| !is_client).map(parse_u32),
                // The reader of its side's options reports what is wrong with it.
                mark: ids::parse_mark(options).ok().flatten(),
                hystart,
                draft_29: false,
                mtu_most_bytes: None,
            },
            logs: None,
            warnings,
        })
    }

    /// Reads the options that begin with two dashes, which are ours.
    ///
    /// # Errors
    /// A limit that no packet can have.
    pub fn take_ours(&mut self, words: &[String]) -> Result<(), Refusal> {
        let told = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
        self.quic.draft_29 = words.iter().any(|word| word == "--draft-29");
        self.logs = told("--qlog:").map(PathBuf::from);
        self.quic.mtu_most_bytes = told("--mtu-limit:").map(parse_mtu_limit).transpose()?;
        Ok(())
    }
}

/// The longest UDP payload that a client's QUIC packets may have.
fn parse_mtu_limit(text: &str) -> Result<u16, Refusal> {
    let bounds = QUIC_MTU_BYTES;
    let bytes = text.parse().ok().filter(|bytes| bounds.contains(&u64::from(*bytes)));
    bytes.ok_or_else(|| {
        let (least, most) = (bounds.start(), bounds.end());
        let text =
            format!("'--mtu-limit' takes {least} to {most} bytes of UDP payload, not '{text}'!");
        Refusal::helping(text)
    })
}

impl ServerOptions {
    /// Reads what a server does; the machine has so many processors.
    ///
    /// # Errors
    /// The first value that makes no sense.
    pub fn parse(options: ColonOptions<'_>, processors: u64) -> Result<Self, Refusal> {
        let mut warnings = Vec::new();
        let mut stats = false;
        set(options.value("stats"), &mut stats);
        let address = match options.value("bind") {
            Some(text) => parse_address(text, DEFAULT_PORT).ok_or_else(|| {
                Refusal::helping(format!(
                    "Failed to decode IP address: '{text}'!\nMust be *, a IPv4 or a IPv6 address."
                ))
            })?,
            None => everywhere(options.value("port").map_or(DEFAULT_PORT, parse_u16)),
        };
        ids::parse_mark(options)?;
        let delay = options.value("delay").map(|text| parse_quantity(text, processors).value);
        let mut varies = false;
        if let Some(kind) = options.value("delayType").filter(|_| delay.is_some_and(|us| us > 0)) {
            varies = means(kind, "variable");
            if !varies && !means(kind, "fixed") {
                warnings.push(format!(
                    "Failed to parse DelayType[{kind}] parameter. Using fixed DelayType."
                ));
            }
        }
        let mean_us = delay.map_or(0, |us| u32::try_from(us).unwrap_or(u32::MAX));
        Ok(Self {
            address,
            stats,
            delay: (mean_us > 0).then_some(Delay { mean_us, varies }),
            suites: options.value("cipher").map_or(0, parse_u8),
            warnings,
        })
    }
}

fn everywhere(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)
}

/// `*`, IPv4 or IPv6, with or without a port.
fn parse_address(text: &str, default_port: u16) -> Option<SocketAddr> {
    if text == "*" {
        return Some(everywhere(default_port));
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(address, default_port));
    }
    let (host, port) = text.rsplit_once(':')?;
    let port = parse_leading(port) as u16;
    let host = match host.strip_prefix('[') {
        Some(inside) => IpAddr::V6(inside.strip_suffix(']')?.parse().ok()?),
        None => IpAddr::V4(host.parse().ok()?),
    };
    Some(SocketAddr::new(host, port))
}

impl ClientOptions {
    /// What holds before anything is said, and what a scenario presets.
    fn preset(scenario: Option<&str>, processors: u64) -> Self {
        let mut preset = Self {
            target: String::new(),
            family: 0,
            port: DEFAULT_PORT,
            numbered_names: true,
            threads: None,
            local: Vec::new(),
            tcp: false,
            copies: false,
            own_ports: false,
            prints_throughput: false,
            prints_stream_throughput: false,
            prints_rate: false,
            prints_connections: false,
            prints_latency: false,
            prints_raw: false,
            prints_waits: false,
            old_format: false,
            extra_output_file: None,
            connections: 1,
            streams: 0,
            shape: Shape { upload: 0, download: 0, timed: false, block_bytes: 65_536 },
            repeats_connections: false,
            repeats_streams: false,
            runtime_us: 0,
        };
        let Some(scenario) = scenario else { return preset };
        let many = 16 * processors as u32;
        if means(scenario, "upload") {
            preset.shape = Shape { upload: 12_000_000, timed: true, ..preset.shape };
            preset.prints_throughput = true;
        } else if means(scenario, "download") {
            preset.shape = Shape { download: 12_000_000, timed: true, ..preset.shape };
            preset.prints_throughput = true;
        } else if means(scenario, "hps") {
            preset.connections = many;
            preset.runtime_us = 12_000_000;
            preset.repeats_connections = true;
            preset.prints_rate = true;
        } else {
            preset.shape = Shape { upload: 512, download: 4000, ..preset.shape };
            preset.runtime_us = 20_000_000;
            preset.repeats_streams = true;
            preset.prints_latency = true;
            if means(scenario, "rps-multi") {
                preset.connections = many;
            }
            if means(scenario, "rps") {
                preset.streams = 100;
            }
        }
        preset
    }

    /// Reads what a client does; the machine has so many processors.
    ///
    /// # Errors
    /// The first value that makes no sense, or a combination that can't be.
    pub fn parse(
        options: ColonOptions<'_>,
        target: &str,
        processors: u64,
    ) -> Result<Self, Refusal> {
        let mut said = Self::preset(options.value("scenario"), processors);
        said.target = target.to_owned();
        said.family = options.value_of_first(&["ip", "af"]).map_or(0, parse_u16);
        said.port = options.value("port").map_or(DEFAULT_PORT, parse_u16);
        set(options.value_of_last(&["incrementtarget", "inctarget"]), &mut said.numbered_names);
        let cibir = ids::parse_mark(options)?;
        let quantity = |names: &[&str]| {
            options.value_of_last(names).map(|text| parse_quantity(text, processors))
        };
        let count = |names: &[&str], to: &mut u32| {
            if let Some(Quantity { value, .. }) = quantity(names) {
                *to = u32::try_from(value).unwrap_or(u32::MAX);
            }
        };
        let mut threads = 0;
        count(&["threads", "workers"], &mut threads);
        said.threads = quantity(&["threads", "workers"]).map(|_| threads.clamp(1, THREAD_LIMIT));
        said.read_local_addresses(options)?;
        said.read_prints(options);
        count(&["conns"], &mut said.connections);
        count(&["requests", "streams"], &mut said.streams);
        if let Some(text) = options.value("iosize") {
            said.shape.block_bytes = parse_u32(text);
        }
        if said.shape.block_bytes < IO_SIZE_MIN {
            return Err(Refusal::helping("'iosize' too small'!"));
        }
        said.read_amounts(options, processors);
        set(options.value_of_last(&["rconn", "rc"]), &mut said.repeats_connections);
        set(options.value_of_last(&["rstream", "rs"]), &mut said.repeats_streams);
        said.check(options, cibir.is_some())?;
        Ok(said)
    }

    fn read_local_addresses(&mut self, options: ColonOptions<'_>) -> Result<(), Refusal> {
        let Some(list) = options.value("bind") else { return Ok(()) };
        for text in list.split(',').take(self.threads.unwrap_or(THREAD_LIMIT) as usize) {
            let address = parse_address(text, 0).ok_or_else(|| {
                Refusal::helping(format!(
                    "Failed to decode bind IP address: '{text}'!\n\
                     Must be *, a IPv4 or a IPv6 address."
                ))
            })?;
            self.local.push(address);
        }
        Ok(())
    }

    fn read_prints(&mut self, options: ColonOptions<'_>) {
        set(options.value("tcp"), &mut self.tcp);
        set(options.value("sendbuf"), &mut self.copies);
        // Local addresses are shared in the original too.
        let shares = options.value("share").is_some_and(|value| parse_u8(value) != 0);
        self.own_ports = !shares && self.local.is_empty();
        set(options.value("ptput"), &mut self.prints_throughput);
        set(options.value("pctput"), &mut self.prints_stream_throughput);
        set(options.value("prate"), &mut self.prints_rate);
        set(options.value_of_last(&["pconnection", "pconn"]), &mut self.prints_connections);
        set(options.value_of_last(&["platency", "plat"]), &mut self.prints_latency);
        set(options.value("praw"), &mut self.prints_raw);
        set(options.value("pstream"), &mut self.prints_waits);
        set(options.value("oldformat"), &mut self.old_format);
        self.extra_output_file = options.value("extraOutputFile").map(str::to_owned);
    }

    /// How much, or how long: whether the amounts are times is said by the last one that is given.
    fn read_amounts(&mut self, options: ColonOptions<'_>, processors: u64) {
        set(options.value("timed"), &mut self.shape.timed);
        let quantity = |names: &[&str]| {
            options.value_of_first(names).map(|text| parse_quantity(text, processors))
        };
        if let Some(Quantity { value, is_time }) = quantity(&["upload", "up", "request"]) {
            (self.shape.upload, self.shape.timed) = (value, is_time);
        }
        if let Some(Quantity { value, is_time }) = quantity(&["download", "down", "response"]) {
            (self.shape.download, self.shape.timed) = (value, is_time);
        }
        if let Some(Quantity { value, .. }) = quantity(&["runtime", "time", "run"]) {
            self.runtime_us = value;
        }
    }

    fn check(&mut self, options: ColonOptions<'_>, cibir: bool) -> Result<(), Refusal> {
        if (self.repeats_connections || self.repeats_streams) && self.runtime_us == 0 {
            return Err(Refusal::helping("Must specify a 'runtime' if using a repeat parameter!"));
        }
        if self.tcp {
            if options.value("encrypt").is_some_and(|value| parse_u8(value) == 0) {
                return Err(Refusal::helping("TCP mode doesn't support disabling encryption!"));
            }
            if cibir {
                return Err(Refusal::helping("TCP mode doesn't support CIBIR!"));
            }
        }
        if (self.shape.upload > 0 || self.shape.download > 0) && self.streams == 0 {
            self.streams = 1;
        }
        if self.repeats_streams && self.streams == 0 {
            return Err(Refusal::helping("Must specify a 'streams' if using 'rstream'!"));
        }
        let asks_for_ring = options.value("io").is_some_and(|value| means(value, "iouring"));
        if asks_for_ring && !self.tcp {
            let text = "iouring is not supported on this build".to_owned();
            return Err(Refusal { status: status::UNSUPPORTED, text, points_to_help: true });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
