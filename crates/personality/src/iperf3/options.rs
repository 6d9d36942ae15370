//! What was typed, flag by flag, each value within the limits of the original.

use std::path::PathBuf;
use std::time::Duration;

use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::Failure;
use linerate_wire::iperf3::parameters::limits;

use super::amount::{RateFormat, Step, parse_amount, parse_any_base, parse_leading_float};
use super::dscp::parse_dscp;
use super::fault::wrong_unit;
use super::flags::Id;
use super::most_tests::parse_most_tests;
use super::values::{
    amount, bounded, parse_interval, parse_keepalive, parse_port, small_amount, split_device,
    split_slash,
};

/// The port of iperf3.
pub const PORT_DEFAULT: u16 = 5201;

/// The longest test, in seconds; also of `--idle-timeout` and, in milliseconds, of the timeouts.
const DURATION_MAX_S: i64 = 86_400;

const STREAMS_MAX: i64 = limits::PARALLEL as i64;
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

/// Who sends.
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
    pub format: RateFormat,
    /// None: the default, a second; zero: no intervals.
    pub interval_s: Option<f64>,
    pub pid_file: Option<PathBuf>,
    pub file: Option<PathBuf>,
    pub affinity: Option<u32>,
    pub server_affinity: Option<u32>,
    pub bind: Option<String>,
    pub bind_device: Option<String>,
    pub verbose: bool,
    pub json: bool,
    pub json_stream: bool,
    pub json_stream_full: bool,
    pub log_file: Option<PathBuf>,
    pub force_flush: bool,
    pub timestamps: Option<String>,
    pub rcv_timeout_ms: Option<u32>,
    pub snd_timeout_ms: Option<u32>,
    /// Idle time, interval and count of the control connection's keepalive, each 0 for the
    /// system's own.
    pub keepalive: Option<[u32; 3]>,
    pub mptcp: bool,
    pub debug: bool,
    pub old_pacing: bool,
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
    pub pkcs1: bool,
    pub udp: bool,
    pub connect_timeout_ms: Option<u32>,
    pub bitrate_bps: Option<u64>,
    pub burst: Option<u32>,
    pub pacing_timer_us: Option<u32>,
    pub fq_rate_bps: Option<u64>,
    pub time_s: Option<u32>,
    pub bytes: Option<u64>,
    pub blocks: Option<u64>,
    /// None: what fits.
    pub length_bytes: Option<u32>,
    pub client_port: Option<u16>,
    pub parallel: Option<u32>,
    pub direction: Direction,
    pub window_bytes: Option<u32>,
    pub congestion: Option<String>,
    pub mss_bytes: Option<u16>,
    pub no_delay: bool,
    /// Some(true): IPv6 only.
    pub ipv6: Option<bool>,
    pub tos: u8,
    pub flow_label: Option<u32>,
    pub zero_copy: bool,
    pub skip_rx_copy: bool,
    pub omit_s: u32,
    pub title: Option<String>,
    pub extra_data: Option<String>,
    pub server_output: bool,
    pub counters_64bit: bool,
    pub gsro: bool,
    pub repeating_payload: bool,
    pub dont_fragment: bool,
    pub username: Option<String>,
    pub public_key: Option<PathBuf>,
    pub wants_version: bool,
    pub wants_help: bool,
    /// `-A n,m` is a client's, `-A n` either's.
    pub has_client_affinity: bool,
}

impl Options {
    /// The port, or iperf3's own.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(PORT_DEFAULT)
    }

    /// Streams in each direction.
    pub fn streams(&self) -> u32 {
        self.parallel.unwrap_or(1)
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
        let seconds = self.interval_s.unwrap_or(1.0);
        (seconds > 0.0).then(|| Duration::from_secs_f64(seconds))
    }

    /// The most that a server's test may transfer, bit/s, and the time that this is averaged over.
    pub fn rate_limit(&self) -> Option<(u64, Duration)> {
        let bps = self.bitrate_limit_bps.filter(|bps| *bps > 0)?;
        let seconds = self.bitrate_limit_interval_s.filter(|seconds| *seconds > 0.0);
        Some((bps, Duration::from_secs_f64(seconds.unwrap_or(RATE_INTERVAL_S))))
    }

    /// Takes one flag with its value.
    pub(super) fn apply(&mut self, id: Id, value: &str) -> Result<(), Failure> {
        if self.apply_switch(id) {
            return Ok(());
        }
        match id {
            Id::Client => {
                if self.role == Some(Role::Server) {
                    return Err(Failure::of(Code::SERVER_CLIENT));
                }
                self.role = Some(Role::Client(value.to_owned()));
            }
            Id::Server => {
                if self.host().is_some() {
                    return Err(Failure::of(Code::SERVER_CLIENT));
                }
                self.role = Some(Role::Server);
            }
            Id::Port => self.port = Some(parse_port(value)?),
            Id::Format => {
                let letter = value.chars().next().and_then(RateFormat::parse);
                self.format = letter.ok_or(Failure::of(Code::BAD_FORMAT))?;
            }
            Id::Interval => self.interval_s = Some(parse_interval(value)?),
            Id::Affinity => self.apply_affinity(value)?,
            Id::Timestamps => {
                self.timestamps = Some(if value.is_empty() { "%c " } else { value }.to_owned());
            }
            Id::RcvTimeout => {
                let value = bounded(value, 100, DURATION_MAX_S * 1000, Code::RECEIVE_TIMEOUT)?;
                self.rcv_timeout_ms = Some(value);
            }
            Id::SndTimeout => {
                let value = bounded(value, 0, DURATION_MAX_S * 1000, Code::SEND_TIMEOUT)?;
                self.snd_timeout_ms = Some(value);
            }
            Id::Keepalive => self.keepalive = Some(parse_keepalive(value)?),
            Id::Sctp | Id::XBind | Id::Nstreams => return Err(Failure::of(Code::NO_SCTP)),
            _ => {
                if !self.apply_text(id, value) && !self.apply_server_value(id, value)? {
                    self.apply_client_value(id, value)?;
                }
            }
        }
        Ok(())
    }

    /// A flag that takes no value, or one that is not looked at.
    fn apply_switch(&mut self, id: Id) -> bool {
        let switch = match id {
            Id::Verbose => &mut self.verbose,
            Id::Json => &mut self.json,
            Id::JsonStream => {
                self.json = true;
                &mut self.json_stream
            }
            Id::JsonStreamFull => &mut self.json_stream_full,
            Id::ForceFlush => &mut self.force_flush,
            Id::Mptcp => {
                self.udp = false;
                &mut self.mptcp
            }
            Id::Debug => &mut self.debug,
            Id::OldPacing => &mut self.old_pacing,
            Id::Version => &mut self.wants_version,
            Id::Help => &mut self.wants_help,
            Id::Daemon => &mut self.daemon,
            Id::OneOff => &mut self.one_off,
            Id::Pkcs1 => &mut self.pkcs1,
            Id::Udp => &mut self.udp,
            Id::NoDelay => &mut self.no_delay,
            Id::ZeroCopy => &mut self.zero_copy,
            Id::SkipRxCopy => &mut self.skip_rx_copy,
            Id::GetServerOutput => &mut self.server_output,
            Id::Counters64 => &mut self.counters_64bit,
            Id::Gsro => &mut self.gsro,
            Id::Repeating => &mut self.repeating_payload,
            Id::DontFragment => &mut self.dont_fragment,
            Id::Version4 | Id::Version6 => {
                self.ipv6 = Some(id == Id::Version6);
                return true;
            }
            _ => return false,
        };
        *switch = true;
        true
    }

    /// A flag whose value is a name, a path or a text.
    fn apply_text(&mut self, id: Id, value: &str) -> bool {
        let path = match id {
            Id::PidFile => &mut self.pid_file,
            Id::File => &mut self.file,
            Id::LogFile => &mut self.log_file,
            Id::PrivateKey => &mut self.private_key,
            Id::Users => &mut self.users,
            Id::PublicKey => &mut self.public_key,
            _ => return self.apply_name(id, value),
        };
        *path = Some(PathBuf::from(value));
        true
    }

    fn apply_name(&mut self, id: Id, value: &str) -> bool {
        let name = match id {
            Id::Bind => {
                // `host%dev` is a host and a device, but for a link-local address, whose scope it is.
                let (host, device) = split_device(value);
                if device.is_some() {
                    self.bind_device = device;
                }
                self.bind = Some(host);
                return true;
            }
            Id::BindDev => &mut self.bind_device,
            Id::Congestion => &mut self.congestion,
            Id::Title => &mut self.title,
            Id::ExtraData => &mut self.extra_data,
            Id::Username => &mut self.username,
            _ => return false,
        };
        *name = Some(value.to_owned());
        true
    }

    fn apply_server_value(&mut self, id: Id, value: &str) -> Result<bool, Failure> {
        match id {
            Id::BitrateLimit => {
                let (rate, interval) = split_slash(value);
                if let Some(interval) = interval {
                    let seconds = parse_leading_float(interval).map_or(0.0, |(value, _)| value);
                    if seconds != 0.0 && !(0.1..=RATE_INTERVAL_MAX_S).contains(&seconds) {
                        return Err(Failure::of(Code::RATE_INTERVAL));
                    }
                    self.bitrate_limit_interval_s = Some(seconds);
                }
                self.bitrate_limit_bps = Some(amount(rate, Step::Decimal)?);
            }
            Id::IdleTimeout => {
                self.idle_timeout_s = Some(bounded(value, 1, DURATION_MAX_S, Code::IDLE_TIMEOUT)?);
            }
            Id::MaxDuration => {
                self.max_duration_s = Some(bounded(value, 0, DURATION_MAX_S, Code::DURATION)?);
            }
            Id::MaxTests => self.most_tests = Some(parse_most_tests(value)?),
            Id::TimeSkew => {
                self.time_skew_s = Some(bounded(value, 1, i64::from(u32::MAX), Code::SKEW)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn apply_client_value(&mut self, id: Id, value: &str) -> Result<(), Failure> {
        match id {
            Id::ConnectTimeout => self.connect_timeout_ms = Some(small_amount(value)?),
            Id::Bitrate => {
                let (rate, burst) = split_slash(value);
                if let Some(burst) = burst {
                    self.burst = Some(bounded(burst, 1, BURST_MAX, Code::BURST)?);
                }
                self.bitrate_bps = Some(amount(rate, Step::Decimal)?);
            }
            Id::PacingTimer => self.pacing_timer_us = Some(small_amount(value)?),
            Id::FqRate => self.fq_rate_bps = Some(amount(value, Step::Decimal)?),
            Id::Time => self.time_s = Some(bounded(value, 0, DURATION_MAX_S, Code::DURATION)?),
            Id::Bytes => self.bytes = Some(amount(value, Step::Binary)?),
            Id::Blocks => self.blocks = Some(amount(value, Step::Binary)?),
            Id::Length => {
                let bytes = match parse_amount(value, Step::Binary) {
                    // A negative length is too large for the original, which counts from above.
                    None if value.trim_start().starts_with('-') => {
                        return Err(Failure::of(Code::BLOCK_SIZE));
                    }
                    None => return Err(wrong_unit(value)),
                    Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
                };
                self.length_bytes = Some(bytes).filter(|bytes| *bytes > 0);
            }
            Id::ClientPort => self.client_port = Some(parse_port(value)?),
            Id::Parallel => {
                self.parallel = Some(bounded(value, 1, STREAMS_MAX, Code::NUM_STREAMS)?);
            }
            Id::Reverse | Id::Bidir => {
                let direction = if id == Id::Bidir { Direction::Both } else { Direction::Down };
                if ![Direction::Up, direction].contains(&self.direction) {
                    return Err(Failure::of(Code::REVERSE_BIDIRECTIONAL));
                }
                self.direction = direction;
            }
            Id::Window => {
                let bytes = amount(value, Step::Binary)?;
                let bytes = Some(bytes).filter(|bytes| *bytes <= BUFFER_MAX_BYTES);
                let bytes = bytes.ok_or(Failure::of(Code::BUFFER_SIZE))?;
                self.window_bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            }
            _ => self.apply_header_value(id, value)?,
        }
        Ok(())
    }

    fn apply_header_value(&mut self, id: Id, value: &str) -> Result<(), Failure> {
        match id {
            Id::Mss => {
                let bytes = bounded(value, 0, MSS_MAX, Code::MSS)?;
                self.mss_bytes = u16::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            }
            Id::Tos => {
                let tos = parse_any_base(value).and_then(|tos| u8::try_from(tos).ok());
                self.tos = tos.ok_or(Failure::of(Code::BAD_TOS))?;
            }
            Id::Dscp => self.tos = parse_dscp(value).ok_or(Failure::of(Code::DSCP))?,
            Id::FlowLabel => {
                let label =
                    parse_any_base(value).filter(|label| (1..=FLOW_LABEL_MAX).contains(label));
                let label = label.ok_or(Failure::of(Code::SET_FLOW_LABEL))?;
                self.flow_label = u32::try_from(label).ok();
            }
            Id::Omit => self.omit_s = bounded(value, 0, OMIT_MAX_S, Code::OMIT)?,
            _ => {}
        }
        Ok(())
    }

    fn apply_affinity(&mut self, value: &str) -> Result<(), Failure> {
        let (own, server) = match value.split_once(',') {
            Some((own, server)) => (own, Some(server)),
            None => (value, None),
        };
        self.affinity = Some(bounded(own, 0, AFFINITY_MAX, Code::AFFINITY)?);
        if let Some(server) = server {
            self.server_affinity = Some(bounded(server, 0, AFFINITY_MAX, Code::AFFINITY)?);
            self.has_client_affinity = true;
        }
        Ok(())
    }
}
