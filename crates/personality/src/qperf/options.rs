//! What was typed, as a value.

use std::path::PathBuf;

pub use linerate_wire::qperf::DEFAULT_PORT;

/// How long a client receives, seconds.
pub const DEFAULT_RUNTIME_S: u32 = 10;
/// The initial congestion window, packets.
pub const DEFAULT_WINDOW_PACKETS: u32 = 10;
/// Each buffer, bytes.
pub const DEFAULT_BUFFER_BYTES: u64 = 1 << 20;

/// What the program is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// `-c HOST`: a client of this server.
    Client(String),
    /// `-s`: a server.
    Server,
    /// `-P HOST`: a proxy to this server.
    Proxy(String),
}

/// The congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// NewReno (RFC 9002).
    #[default]
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
}

impl Congestion {
    /// The name that `--cc` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
        }
    }
}

/// A version of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Version 1 (RFC 9000).
    Rfc1,
    /// Draft 29.
    Draft29,
}

/// Sizes of buffers, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// `-q`: receive windows of QUIC, those of a stream and of a connection.
    pub quic_bytes: u64,
    /// `-u`: the UDP socket's buffers.
    pub udp_bytes: u64,
    /// `-b`: what a proxy holds for each direction.
    pub proxy_bytes: u64,
}

impl Default for Buffers {
    fn default() -> Self {
        let (quic_bytes, udp_bytes) = (DEFAULT_BUFFER_BYTES, DEFAULT_BUFFER_BYTES);
        Self { quic_bytes, udp_bytes, proxy_bytes: DEFAULT_BUFFER_BYTES }
    }
}

/// What the peer is asked for in acknowledging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// The longest delay of an acknowledgement, ms; `None`: the extension is off.
    pub max_delay_ms: Option<u32>,
    /// The first request follows this packet number.
    pub first_packet: u64,
    /// An acknowledgement for each such fraction of the congestion window.
    pub window_fraction: u32,
}

impl Default for AckFrequency {
    fn default() -> Self {
        Self { max_delay_ms: Some(25), first_packet: 1_000, window_fraction: 8 }
    }
}

/// What a server or a proxy listens with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// `--listen-addr`, or behind `-s`: the address or name; absent: all IPv4 addresses.
    pub address: Option<String>,
    /// `--listen-port`; absent: a server's `-p`, or the default.
    pub port: Option<u16>,
    /// `--tls-cert`: the certificate, PEM.
    pub certificate: PathBuf,
    /// `--tls-key`: its private key, PEM.
    pub key: PathBuf,
    /// `--session-cache`: where the last session is kept for the next start.
    pub session_cache: Option<PathBuf>,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            address: None,
            port: None,
            certificate: "server.crt".into(),
            key: "server.key".into(),
            session_cache: None,
        }
    }
}

/// What a proxy does beside the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyOptions {
    /// `--alpn`: the application protocol of both sides.
    pub alpn: Option<String>,
    /// `--wait-for-svr`: a client's handshake waits for that with the target.
    pub waits_for_server: bool,
}

/// Where things are written or kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// `-l`: TLS secrets are appended here.
    pub tls_log: Option<PathBuf>,
    /// `--session`: the client's session for the next start.
    pub session: Option<PathBuf>,
    /// `--events`: transport events, a JSON object a line.
    pub events: Option<PathBuf>,
    /// `--qlog`: the directory of qlog files, one a connection.
    pub qlog: Option<PathBuf>,
}

/// A command line of qperf.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What the program is to be.
    pub role: Role,
    /// `--cc`.
    pub congestion: Congestion,
    /// `-w`: the initial congestion window, packets.
    pub window_packets: u32,
    /// `-g`: segmentation offload.
    pub segments: bool,
    /// `-i`: seconds between reports.
    pub interval_s: f64,
    /// `--print-raw`: rates without prefixes.
    pub prints_raw: bool,
    /// Sizes of buffers.
    pub buffers: Buffers,
    /// What the peer is asked for in acknowledging.
    pub acks: AckFrequency,
    /// `-e`: end with the first byte.
    pub ends_with_first_byte: bool,
    /// `-t`: how long a client receives, seconds.
    pub runtime_s: u32,
    /// `-p`: the server's port, for a client or a proxy.
    pub port: u16,
    /// What a server or a proxy listens with.
    pub listen: Listen,
    /// What a proxy does.
    pub proxy: ProxyOptions,
    /// `--quic-version`; absent: version 1, and a server takes both.
    pub version: Option<Version>,
    /// Where things are written or kept.
    pub files: Files,
}

impl Options {
    /// The port to listen on: a server's `-p` is the original's word for it.
    pub fn listen_port(&self) -> u16 {
        let own = if self.role == Role::Server { self.port } else { DEFAULT_PORT };
        self.listen.port.unwrap_or(own)
    }
}
