//! What a user asks for, beside what goes over the wire.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use linerate_measure::plan::Family;
use linerate_wire::iperf3::{PORT, Parameters};

use crate::socket::HandedSockets;

/// What a client does.
#[derive(Clone, Debug)]
pub struct TestPlan {
    /// `-c`.
    pub host: String,
    /// `-p`.
    pub port: u16,
    /// `-4`, `-6`.
    pub family: Option<Family>,
    /// `-B`, without a port.
    pub bind: Option<SocketAddr>,
    /// `--bind-dev`, or the device behind the address of `-B`.
    pub bind_device: Option<String>,
    /// `--cport`: the first stream's local port; the others count on from it.
    pub client_port: Option<u16>,
    /// What the server is told. A block size of 0 becomes the protocol's default when the server
    /// is reached, and the token is made from the credentials.
    pub parameters: Parameters,
    /// `-i`; `None`: no reports in between.
    pub interval: Option<Duration>,
    /// `-A`: the processor at this end.
    pub affinity: Option<u32>,
    /// `-F`: what is sent, or where to what is received goes.
    pub file: Option<PathBuf>,
    /// `--connect-timeout`.
    pub connect_timeout: Option<Duration>,
    /// `--rcv-timeout`.
    pub receive_timeout: Duration,
    /// `--snd-timeout`.
    pub send_timeout: Option<Duration>,
    /// `--cntl-ka`.
    pub keepalive: Option<Keepalive>,
    /// `--username` and what belongs to it.
    pub credentials: Option<Credentials>,
}

impl TestPlan {
    /// A test of the original's defaults against a host.
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port: PORT,
            family: None,
            bind: None,
            bind_device: None,
            client_port: None,
            parameters: Parameters::default(),
            interval: Some(Duration::from_secs(1)),
            affinity: None,
            file: None,
            connect_timeout: None,
            receive_timeout: RECEIVE_TIMEOUT,
            send_timeout: None,
            keepalive: None,
            credentials: None,
        }
    }
}

/// The default of `--rcv-timeout`.
pub const RECEIVE_TIMEOUT: Duration = Duration::from_secs(120);

/// How a silent control connection is probed; 0 leaves a part as it usually is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keepalive {
    /// Seconds of silence before the first probe.
    pub idle_s: u32,
    /// Seconds between probes.
    pub interval_s: u32,
    /// Probes without an answer that end the connection.
    pub count: u32,
}

impl Keepalive {
    /// With what is usual where nothing else is asked for.
    pub(super) fn completed(self) -> Self {
        let or = |asked: u32, usual: u32| if asked > 0 { asked } else { usual };
        Self {
            idle_s: or(self.idle_s, 10),
            interval_s: or(self.interval_s, 5),
            count: or(self.count, 3),
        }
    }

    /// How long a machine that has vanished goes unnoticed.
    pub(super) fn detection_time(self) -> Duration {
        let seconds = u64::from(self.idle_s) + u64::from(self.interval_s) * u64::from(self.count);
        Duration::from_secs(seconds)
    }
}

/// The client's user.
#[derive(Clone)]
pub struct Credentials {
    /// `--username`.
    pub username: String,
    /// The password.
    pub password: String,
    /// The server's public key, PEM.
    pub public_key_pem: String,
    /// How the token is padded.
    pub padding: Padding,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// How a token is padded before it is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// OAEP with SHA-1, from 3.17 on.
    #[default]
    Oaep,
    /// PKCS#1 v1.5, up to 3.16 and with `--use-pkcs1-padding`.
    Pkcs1,
}

/// What a server does.
#[derive(Clone, Debug)]
pub struct ServePlan {
    /// `-p`; 0: one of the system's choice.
    pub port: u16,
    /// `-4`, `-6`.
    pub family: Option<Family>,
    /// `-B`, without a port.
    pub bind: Option<SocketAddr>,
    /// `--bind-dev`.
    pub bind_device: Option<String>,
    /// `-i`; `None`: no reports in between.
    pub interval: Option<Duration>,
    /// `-A`.
    pub affinity: Option<u32>,
    /// `-F`.
    pub file: Option<PathBuf>,
    /// `-1`: one test, and no more.
    pub one_off: bool,
    /// `--idle-timeout`: with `one_off` the server ends when no client has come for so long.
    pub idle_timeout: Option<Duration>,
    /// `--rcv-timeout`.
    pub receive_timeout: Duration,
    /// `--snd-timeout`.
    pub send_timeout: Option<Duration>,
    /// `--cntl-ka`.
    pub keepalive: Option<Keepalive>,
    /// `--server-bitrate-limit`.
    pub rate_limit: Option<RateLimit>,
    /// `--server-max-duration`, seconds.
    pub max_duration_s: Option<u32>,
    /// `--authorized-users-path` and what belongs to it.
    pub authority: Option<Authority>,
    /// Sockets to serve on, in the place of own ones.
    pub handed: HandedSockets,
    /// Tests that may run at once; further clients get the error "busy".
    pub most_tests: usize,
}

impl Default for ServePlan {
    fn default() -> Self {
        Self {
            port: PORT,
            family: None,
            bind: None,
            handed: HandedSockets::default(),
            bind_device: None,
            interval: Some(Duration::from_secs(1)),
            affinity: None,
            file: None,
            one_off: false,
            idle_timeout: None,
            receive_timeout: RECEIVE_TIMEOUT,
            send_timeout: None,
            keepalive: None,
            rate_limit: None,
            max_duration_s: None,
            authority: None,
            most_tests: 64,
        }
    }
}

/// The most that tests may carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Bits per second of all of a test's streams.
    pub bps: u64,
    /// The time that the rate is measured over; the original's default is 5 s.
    pub interval: Duration,
}

/// The users that may test.
#[derive(Clone)]
pub struct Authority {
    /// The server's private key, PEM.
    pub private_key_pem: String,
    /// The users file: `user,sha256` lines; it is read again for each test.
    pub users_file: PathBuf,
    /// How far a client's clock may be off, seconds.
    pub time_skew_s: u32,
    /// How tokens are padded.
    pub padding: Padding,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Authority")
            .field("users_file", &self.users_file)
            .finish_non_exhaustive()
    }
}
