//! What was typed, flag by flag, each value within the limits of the original.

use std::path::PathBuf;
use std::time::Duration;

use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::Failure;
use linerate_wire::iperf3::parameters::limits;

use super::amount::{RateFormat, Step, parse_amount, parse_any_base, parse_leading_float};
use super::dscp::parse_dscp;
use super::fault::wrong_unit;
use super::values::{amount, bounded, put, refuse, set, split_device, split_slash};

/// The port of iperf3.
pub const PORT_DEFAULT: u16 = 5201;

/// The longest test, in seconds; also of `--idle-timeout`.
pub(super) const DURATION_MAX_S: i64 = 86_400;

/// The longest of the timeouts that are told in milliseconds.
pub(super) const DURATION_MAX_MS: i64 = DURATION_MAX_S * 1000;

pub(super) const STREAMS_MAX: i64 = limits::PARALLEL as i64;
const OMIT_MAX_S: i64 = 600;
const BURST_MAX: i64 = 1000;
const MSS_MAX: i64 = 32_767;
const BUFFER_MAX_BYTES: u64 = 512 * 1024 * 1024;
const AFFINITY_MAX: i64 = 1024;
const RATE_INTERVAL_MAX_S: f64 = 60.0;
/// The time that a server's limit is averaged over unless told otherwise, seconds.
const RATE_INTERVAL_S: f64 = 5.0;
const FLOW_LABEL_MAX: i64 = 0xf_ffff;

/// Which end we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A client of this server.
    Client(String),
    /// A server.
    Server,
}

/// The sending end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The client.
    #[default]
    Up,
    /// The server.
    Down,
    /// Both.
    Both,
}

/// What was typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is a flag; the table of flags says what it does")]
pub struct Options {
    pub role: Option<Role>,
    pub port: Option<u16>,
    pub wants_version: bool,
    pub wants_help: bool,
    pub output: OutputOptions,
    pub server: ServerOptions,
    pub load: LoadOptions,
    pub payload: PayloadOptions,
    pub socket: SocketOptions,
    pub connection: ConnectionOptions,
    pub process: ProcessOptions,
    pub credentials: CredentialOptions,
}

/// What is printed, where and how.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is a flag; the table of flags says what it does")]
pub struct OutputOptions {
    pub format: RateFormat,
    /// None: the default, a second; zero: no intervals.
    pub interval_s: Option<f64>,
    pub verbose: bool,
    pub json: bool,
    pub json_stream: bool,
    pub json_stream_full: bool,
    pub log_file: Option<PathBuf>,
    pub force_flush: bool,
    pub timestamps: Option<String>,
    pub title: Option<String>,
    pub server_output: bool,
    pub debug: bool,
}

/// What a server allows, and how it runs.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is a flag; the table of flags says what it does")]
pub struct ServerOptions {
    pub daemon: bool,
    pub one_off: bool,
    pub bitrate_limit_bps: Option<u64>,
    pub bitrate_limit_interval_s: Option<f64>,
    pub idle_timeout_s: Option<u32>,
    pub max_duration_s: Option<u32>,
    pub most_tests: Option<usize>,
    pub private_key: Option<PathBuf>,
    pub users: Option<PathBuf>,
    pub time_skew_s: Option<u32>,
}

/// The load of a client's test, and when it ends.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is a flag; the table of flags says what it does")]
pub struct LoadOptions {
    pub udp: bool,
    pub bitrate_bps: Option<u64>,
    pub burst: Option<u32>,
    pub pacing_timer_us: Option<u32>,
    pub fq_rate_bps: Option<u64>,
    pub time_s: Option<u32>,
    pub bytes: Option<u64>,
    pub blocks: Option<u64>,
    /// None: what fits.
    pub length_bytes: Option<u32>,
    pub parallel: Option<u32>,
    pub direction: Direction,
    pub omit_s: u32,
}

/// What the streams carry.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is a flag; the table of flags says what it does")]
pub struct PayloadOptions {
    pub file: Option<PathBuf>,
    pub extra_data: Option<String>,
    pub counters_64bit: bool,
    pub repeating_payload: bool,
}

/// The socket options of streams.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is a flag; the table of flags says what it does")]
pub struct SocketOptions {
    pub mptcp: bool,
    pub window_bytes: Option<u32>,
    pub congestion: Option<String>,
    pub mss_bytes: Option<u16>,
    pub no_delay: bool,
    pub tos: u8,
    pub flow_label: Option<u32>,
    pub zero_copy: bool,
    pub skip_rx_copy: bool,
    pub gsro: bool,
    pub dont_fragment: bool,
    pub old_pacing: bool,
}

/// Addresses, and the time limits of connections.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is a flag; the table of flags says what it does")]
pub struct ConnectionOptions {
    pub bind: Option<String>,
    pub bind_device: Option<String>,
    pub client_port: Option<u16>,
    /// Some(true): IPv6 only.
    pub ipv6: Option<bool>,
    pub connect_timeout_ms: Option<u32>,
    pub rcv_timeout_ms: Option<u32>,
    pub snd_timeout_ms: Option<u32>,
    /// Idle time, interval and count of the control connection's keepalive, each 0 for the
    /// system's own.
    pub keepalive: Option<[u32; 3]>,
}

/// The process.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is a flag; the table of flags says what it does")]
pub struct ProcessOptions {
    pub pid_file: Option<PathBuf>,
    pub affinity: Option<u32>,
    pub server_affinity: Option<u32>,
    /// `-A n,m` is a client's, `-A n` either's.
    pub has_client_affinity: bool,
}

/// The user of a client.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is a flag; the table of flags says what it does")]
pub struct CredentialOptions {
    pub username: Option<String>,
    pub public_key: Option<PathBuf>,
    pub pkcs1: bool,
}

impl Options {
    /// The port, or iperf3's own.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(PORT_DEFAULT)
    }

    /// Streams in each direction.
    pub fn streams(&self) -> u32 {
        self.load.parallel.unwrap_or(1)
    }

    /// Whether the host is given and what it is.
    pub fn host(&self) -> Option<&str> {
        match &self.role {
            Some(Role::Client(host)) => Some(host),
            _ => None,
        }
    }

    /// The server's host, and the device behind its `%`.
    pub fn host_and_device(&self) -> (String, Option<String>) {
        split_device(self.host().unwrap_or_default())
    }

    /// The time between reports; None: no reports.
    pub fn interval(&self) -> Option<Duration> {
        let seconds = self.output.interval_s.unwrap_or(1.0);
        (seconds > 0.0).then(|| Duration::from_secs_f64(seconds))
    }

    /// The most that a server's test may transfer, bit/s, and the time that this is averaged over.
    pub fn rate_limit(&self) -> Option<(u64, Duration)> {
        let bps = self.server.bitrate_limit_bps.filter(|bps| *bps > 0)?;
        let seconds = self.server.bitrate_limit_interval_s.filter(|seconds| *seconds > 0.0);
        Some((bps, Duration::from_secs_f64(seconds.unwrap_or(RATE_INTERVAL_S))))
    }

    pub(super) fn take_client(&mut self, host: &str) -> Result<(), Failure> {
        if self.role == Some(Role::Server) {
            return refuse(Code::SERVER_CLIENT);
        }
        self.role = Some(Role::Client(host.to_owned()));
        Ok(())
    }

    pub(super) fn take_server(&mut self, _: &str) -> Result<(), Failure> {
        if self.host().is_some() {
            return refuse(Code::SERVER_CLIENT);
        }
        self.role = Some(Role::Server);
        Ok(())
    }

    pub(super) fn take_format(&mut self, value: &str) -> Result<(), Failure> {
        let letter = value.chars().next().and_then(RateFormat::parse);
        self.output.format = letter.ok_or(Failure::of(Code::BAD_FORMAT))?;
        Ok(())
    }

    pub(super) fn take_affinity(&mut self, value: &str) -> Result<(), Failure> {
        let (own, server) = match value.split_once(',') {
            Some((own, server)) => (own, Some(server)),
            None => (value, None),
        };
        self.process.affinity = Some(bounded(own, 0, AFFINITY_MAX, Code::AFFINITY)?);
        if let Some(server) = server {
            self.process.server_affinity = Some(bounded(server, 0, AFFINITY_MAX, Code::AFFINITY)?);
            self.process.has_client_affinity = true;
        }
        Ok(())
    }

    /// `host%dev` is a host and a device, but for a link-local address, whose scope it is.
    pub(super) fn take_bind(&mut self, value: &str) -> Result<(), Failure> {
        let (host, device) = split_device(value);
        if device.is_some() {
            self.connection.bind_device = device;
        }
        self.connection.bind = Some(host);
        Ok(())
    }

    pub(super) fn take_json_stream(&mut self, _: &str) -> Result<(), Failure> {
        self.output.json = true;
        set(&mut self.output.json_stream)
    }

    pub(super) fn take_mptcp(&mut self, _: &str) -> Result<(), Failure> {
        self.load.udp = false;
        set(&mut self.socket.mptcp)
    }

    pub(super) fn take_bitrate_limit(&mut self, value: &str) -> Result<(), Failure> {
        let (rate, interval) = split_slash(value);
        if let Some(interval) = interval {
            let seconds = parse_leading_float(interval).map_or(0.0, |(value, _)| value);
            if seconds != 0.0 && !(0.1..=RATE_INTERVAL_MAX_S).contains(&seconds) {
                return refuse(Code::RATE_INTERVAL);
            }
            self.server.bitrate_limit_interval_s = Some(seconds);
        }
        put(&mut self.server.bitrate_limit_bps, amount(rate, Step::Decimal))
    }

    pub(super) fn take_bitrate(&mut self, value: &str) -> Result<(), Failure> {
        let (rate, burst) = split_slash(value);
        if let Some(burst) = burst {
            self.load.burst = Some(bounded(burst, 1, BURST_MAX, Code::BURST)?);
        }
        put(&mut self.load.bitrate_bps, amount(rate, Step::Decimal))
    }

    pub(super) fn take_length(&mut self, value: &str) -> Result<(), Failure> {
        let bytes = match parse_amount(value, Step::Binary) {
            // A negative length is too large for the original, which counts from above.
            None if value.trim_start().starts_with('-') => return refuse(Code::BLOCK_SIZE),
            None => return Err(wrong_unit(value)),
            Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
        };
        self.load.length_bytes = Some(bytes).filter(|bytes| *bytes > 0);
        Ok(())
    }

    pub(super) fn take_direction(&mut self, direction: Direction) -> Result<(), Failure> {
        if ![Direction::Up, direction].contains(&self.load.direction) {
            return refuse(Code::REVERSE_BIDIRECTIONAL);
        }
        self.load.direction = direction;
        Ok(())
    }

    pub(super) fn take_window(&mut self, value: &str) -> Result<(), Failure> {
        let bytes = amount(value, Step::Binary)?;
        if bytes > BUFFER_MAX_BYTES {
            return refuse(Code::BUFFER_SIZE);
        }
        self.socket.window_bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
        Ok(())
    }

    pub(super) fn take_mss(&mut self, value: &str) -> Result<(), Failure> {
        let bytes = bounded(value, 0, MSS_MAX, Code::MSS)?;
        self.socket.mss_bytes = u16::try_from(bytes).ok().filter(|bytes| *bytes > 0);
        Ok(())
    }

    pub(super) fn take_tos(&mut self, value: &str) -> Result<(), Failure> {
        let tos = parse_any_base(value).and_then(|tos| u8::try_from(tos).ok());
        self.socket.tos = tos.ok_or(Failure::of(Code::BAD_TOS))?;
        Ok(())
    }

    pub(super) fn take_dscp(&mut self, value: &str) -> Result<(), Failure> {
        self.socket.tos = parse_dscp(value).ok_or(Failure::of(Code::DSCP))?;
        Ok(())
    }

    pub(super) fn take_flow_label(&mut self, value: &str) -> Result<(), Failure> {
        let label = parse_any_base(value).filter(|label| (1..=FLOW_LABEL_MAX).contains(label));
        let label = label.ok_or(Failure::of(Code::SET_FLOW_LABEL))?;
        self.socket.flow_label = u32::try_from(label).ok();
        Ok(())
    }

    pub(super) fn take_omit(&mut self, value: &str) -> Result<(), Failure> {
        self.load.omit_s = bounded(value, 0, OMIT_MAX_S, Code::OMIT)?;
        Ok(())
    }
}
