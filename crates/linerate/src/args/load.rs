//! The flags of the commands that measure with a server.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use linerate_measure::Pacing;
use linerate_measure::plan::HostPort;

use super::{KeyArgs, OutputArgs, RepeatArgs, values};
use crate::completions::hosts;
use crate::cpus::Cpus;
use crate::sources::Sources;
use crate::start_time::StartAt;

/// The flags of `stream`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate stream HOST                              TCP, to HOST, 10 seconds
  linerate stream HOST --down --flows 8             from HOST, 8 connections
  linerate stream HOST --udp --rate 1G              UDP at 1 Gbit/s
  linerate stream HOST --udp --size 64,512,1400     one run per size, one table
  linerate stream HOST --bytes 10G --verify         10^10 bytes, each checked
  linerate stream [2001:db8::1]:5251 --json         IPv6, another port, JSON",
    after_help = "Every flag, and how numbers are written: linerate stream --help",
    after_long_help = super::UNITS
)]
pub struct StreamArgs {
    /// The server: name, address, NAME:PORT or [IPv6]:PORT
    #[arg(value_name = "HOST", value_parser = HostPort::parse, add = ArgValueCandidates::new(hosts))]
    pub host: HostPort,
    /// Which way the bytes go.
    #[command(flatten)]
    pub direction: DirectionArgs,
    /// Check every received byte against a pattern that depends on its position
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub verify: bool,
    /// Bytes of a send or of a datagram; a list: one run per size [default: 128Ki; 1448 with --udp, 1100 with
    /// --datagram]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::size, allow_hyphen_values = true, help_heading = "Load")]
    pub size: Vec<u32>,
    /// The rate that is kept.
    #[command(flatten)]
    pub rate: StreamRateArgs,
    /// Use one-way streams
    #[arg(
        long,
        requires = "quic",
        conflicts_with = "datagram",
        hide_short_help = true,
        help_heading = "QUIC"
    )]
    pub unidirectional: bool,
    /// How the bytes are moved.
    #[command(flatten)]
    pub variant: VariantArgs,
    /// End after so many bytes in each direction
    #[arg(long, value_name = "BYTES", value_parser = values::bytes, allow_hyphen_values = true, group = "end", help_heading = "Load", hide_short_help = true)]
    pub bytes: Option<u64>,
    /// TCP and TLS: where losses limit the run, make two more at lower rates, and tell random loss from a shallow
    /// buffer or a rate limit
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub explain: bool,
    /// The other flags of the load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// How to reach the server.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Where the result goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which way the bytes of a stream go.
#[derive(Args, Debug)]
pub struct DirectionArgs {
    /// From this machine to the server (default)
    #[arg(long, group = "direction", help_heading = "Load", hide_short_help = true)]
    pub up: bool,
    /// From the server to this machine
    #[arg(long, alias = "reverse", short_alias = 'R', group = "direction", help_heading = "Load")]
    pub down: bool,
    /// Both directions at once, on separate flows
    #[arg(long, alias = "bidir", group = "direction", help_heading = "Load")]
    pub both: bool,
    /// Both directions at once, a flow of each over one connection
    #[arg(long, group = "direction", help_heading = "Load", hide_short_help = true)]
    pub duplex: bool,
}

/// The rate that a stream keeps to.
#[derive(Args, Debug)]
pub struct StreamRateArgs {
    /// Rate of all flows of a direction together [default: none, as fast as possible: UDP floods]
    #[arg(long, value_name = "RATE", value_parser = values::rate, allow_hyphen_values = true, conflicts_with = "rate_per_flow", help_heading = "Load")]
    pub rate: Option<u64>,
    /// Rate of each flow [default: none]
    #[arg(long, aliases = ["bandwidth", "bitrate"], short_alias = 'b', value_name = "RATE", value_parser = values::rate, allow_hyphen_values = true, help_heading = "Load", hide_short_help = true)]
    pub rate_per_flow: Option<u64>,
}

/// How a stream's bytes are moved, if not by copies.
#[derive(Args, Debug)]
pub struct VariantArgs {
    /// TCP: lend pages to the kernel instead of copying bytes (MSG_ZEROCOPY)
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub zero_copy: bool,
    /// TCP: send from the page cache (sendfile), receive into /dev/null (splice), without copies
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub splice: bool,
    /// TCP: the receiver's kernel drops what arrives, unread (MSG_TRUNC)
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub discard: bool,
}

/// The flags of `rr`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate rr HOST                                  TCP, 1 byte out, 1 byte back
  linerate rr HOST --udp --busy-poll                UDP, polling without sleep
  linerate rr HOST --request 64 --response 16Ki     small request, large response
  linerate rr HOST --size 1,64,1024                 one run per size, one table
  linerate rr HOST --rate 10k --arrivals poisson    10,000 a second, answered or not
  linerate rr HOST --outstanding 16                 up to 16 requests at once
  linerate rr HOST --tls --flows 100 --time 30s     100 TLS connections",
    after_help = "Every flag, and how numbers are written: linerate rr --help",
    after_long_help = super::UNITS
)]
pub struct RrArgs {
    /// The server: name, address, NAME:PORT or [IPv6]:PORT
    #[arg(value_name = "HOST", value_parser = HostPort::parse, add = ArgValueCandidates::new(hosts))]
    pub host: HostPort,
    /// Bytes of a request [default: 1; datagrams 16]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, help_heading = "Load")]
    pub request: Option<u32>,
    /// Bytes of a response [default: 1; datagrams 16]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, help_heading = "Load")]
    pub response: Option<u32>,
    /// Bytes of both request and response; a list: one run per size
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::size, allow_hyphen_values = true, conflicts_with_all = ["request", "response"], help_heading = "Load", hide_short_help = true)]
    pub size: Vec<u32>,
    /// Requests per second of all flows together, each sent when it is due (open loop) [default: each sent
    /// after the previous response]
    #[arg(long, value_name = "N", value_parser = values::per_second, allow_hyphen_values = true, help_heading = "Load")]
    pub rate: Option<f64>,
    /// Spacing of requests: even (default), or poisson, random as from many independent users
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        hide_possible_values = true,
        requires = "rate",
        help_heading = "Load",
        hide_short_help = true
    )]
    pub arrivals: Option<ArrivalsName>,
    /// Concurrent requests in each flow [default: 1; 65536 with --rate]
    #[arg(long, value_name = "N", value_parser = values::small_count, allow_hyphen_values = true, help_heading = "Load")]
    pub outstanding: Option<u32>,
    /// Flows with a request under way at a time, or all; others wait for a turn of 16 requests [default: all;
    /// above 1000 flows of TCP or TLS without --rate, 100 for each thread]
    #[arg(long, value_name = "N", value_parser = values::active_flows, allow_hyphen_values = true, help_heading = "Load", hide_short_help = true)]
    pub active: Option<ActiveFlows>,
    /// UDP and datagrams: time until a transaction without a response counts as lost [default: 200ms]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_hyphen_values = true, help_heading = "Load", hide_short_help = true)]
    pub timeout: Option<u64>,
    /// The other flags of the load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// How to reach the server.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Where the result goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How many flows may have a request on its way at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveFlows {
    /// Every flow.
    All,
    /// So many.
    Most(u32),
}

/// The warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omit {
    /// Looked for in the intervals when all is over.
    Auto,
    /// So many nanoseconds.
    Time(u64),
}

impl Default for Omit {
    fn default() -> Self {
        Self::Time(0)
    }
}

/// The spacing of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsName {
    /// At equal distances (default)
    Even,
    /// At random, as from many independent users
    Poisson,
}

/// The flags of the load that `stream`, `rr` and `connect` share.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// TCP (default)
    #[arg(long, group = "transport", hide_short_help = true)]
    pub tcp: bool,
    /// TLS 1.3 over TCP
    #[arg(long, group = "transport")]
    pub tls: bool,
    /// UDP
    #[arg(long, group = "transport")]
    pub udp: bool,
    /// QUIC: each flow a stream
    #[arg(long, group = "transport")]
    pub quic: bool,
    /// Length of the measurement, without warm-up [default: 10s]
    #[arg(long, short, alias = "duration", value_name = "TIME", value_parser = values::duration, allow_hyphen_values = true, group = "end")]
    pub time: Option<u64>,
    /// End after so many sends or transactions, all flows together
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true, group = "end", hide_short_help = true)]
    pub count: Option<u64>,
    /// Flows, in each direction with --both
    #[arg(long, alias = "parallel", short_alias = 'P', value_name = "N", default_value = "1", value_parser = values::small_count, allow_hyphen_values = true)]
    pub flows: u32,
    /// Threads at each end [default: one per processor, at most one per flow]
    #[arg(long, value_name = "N", value_parser = values::small_count, allow_hyphen_values = true, hide_short_help = true)]
    pub threads: Option<u32>,
    /// Warm-up, excluded from every sum; auto: found afterwards and left out of the rate
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::omit, allow_hyphen_values = true, hide_short_help = true)]
    pub omit: Omit,
    /// Length of a sample [default: 1s; with --omit auto a hundredth of --time, at least 20ms]
    #[arg(long, short, value_name = "TIME", value_parser = values::duration, allow_hyphen_values = true, hide_short_help = true)]
    pub interval: Option<u64>,
    /// Poll without sleeping; at the server this needs `serve --busy-poll`
    #[arg(long, hide_short_help = true)]
    pub busy_poll: bool,
    /// Send small segments at once (TCP_NODELAY); rr always does
    #[arg(long, hide_short_help = true)]
    pub no_delay: bool,
    /// Congestion control, at both ends [default: the kernel's; QUIC: cubic]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub congestion: Option<String>,
    /// Socket buffers, at both ends (SO_SNDBUF and SO_RCVBUF) [default: the kernel's]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, hide_short_help = true)]
    pub window: Option<u32>,
    /// Largest TCP segment, at both ends [default: what the path carries]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, hide_short_help = true)]
    pub mss: Option<u32>,
    /// Differentiated-services code point of every packet, 0 to 63 [default: 0]
    #[arg(long, value_name = "N", value_parser = values::dscp, allow_hyphen_values = true, hide_short_help = true)]
    pub dscp: Option<u8>,
    /// UDP and QUIC: one system call per datagram, without segmentation offload
    #[arg(long, hide_short_help = true)]
    pub no_offload: bool,
    /// Use QUIC datagrams (RFC 9221), which may be lost, instead of streams
    #[arg(long, requires = "quic", hide_short_help = true, help_heading = "QUIC")]
    pub datagram: bool,
    /// Flows per connection, each a stream [default: 1]
    #[arg(long, value_name = "N", value_parser = values::small_count, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub streams: Option<u32>,
    /// Initial congestion window, at both ends [default: 12000]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub initial_window: Option<u32>,
    /// Flow-control window of each stream [default: 8Mi]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub stream_window: Option<u32>,
    /// Flow-control window of a connection, all streams together [default: 64Mi]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub connection_window: Option<u32>,
    /// Length of every full UDP payload [default: discovered, up to 8972]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub mtu: Option<u32>,
    /// Cipher: aes128 (QUIC's default), aes256 or chacha20
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "TLS (in QUIC too)"
    )]
    pub cipher: Option<CipherName>,
    /// Protocol name that both ends announce (ALPN) [default: none; QUIC: linerate]
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = "TLS (in QUIC too)")]
    pub alpn: Option<String>,
    /// Acknowledge at least every N packets [default: the receiver decides]
    #[arg(long, value_name = "N", value_parser = values::small_count, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub ack_packets: Option<u32>,
    /// Longest delay of an acknowledgement [default: 25ms]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub ack_delay: Option<u64>,
    /// Acknowledge at once after N packets out of order; 0: never [default: the receiver decides]
    #[arg(long, value_name = "N", value_parser = values::small_count, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub ack_reordering: Option<u32>,
    /// Send packets without ECN marks
    #[arg(long, hide_short_help = true, help_heading = "QUIC")]
    pub no_ecn: bool,
    /// Pacing of packets: on (default), off, or a RATE for each connection
    #[arg(long, value_name = "on|off|RATE", value_parser = values::pacing, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub pacing: Option<Pacing>,
    /// End a connection that receives nothing for so long [default: 4s]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub idle_timeout: Option<u64>,
    /// Longest UDP payload that discovery tries [default: what the interface carries, 8972 at most]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, hide_short_help = true, help_heading = "QUIC")]
    pub mtu_limit: Option<u32>,
    /// QUIC version: v1 (default) or draft-29
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "QUIC"
    )]
    pub quic_version: Option<QuicVersionName>,
    /// How often.
    #[command(flatten)]
    pub repeat: RepeatArgs,
}

/// A version of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QuicVersionName {
    /// Version 1 (default)
    V1,
    /// Draft 29
    #[value(name = "draft-29")]
    Draft29,
}

/// The cipher of records and packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CipherName {
    /// AES-128-GCM
    Aes128,
    /// AES-256-GCM
    Aes256,
    /// ChaCha20-Poly1305
    Chacha20,
}

/// How to reach the server, and from where.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct ConnectArgs {
    /// The server's port, TCP and UDP [default: 5250]
    #[arg(long, short, value_name = "PORT", value_parser = values::port, allow_hyphen_values = true)]
    pub port: Option<u16>,
    /// IPv4 only [default: the family of the first address of HOST]
    #[arg(short = '4', group = "family", hide_short_help = true)]
    pub ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', group = "family", hide_short_help = true)]
    pub ipv6: bool,
    /// Local address of connections; several, or a prefix (127.0.0.0/29), are used in turn
    #[arg(long, value_name = "ADDRESS", value_parser = Sources::parse, hide_short_help = true)]
    pub bind: Option<Sources>,
    /// Network device of every connection [default: the route's]
    #[arg(long, value_name = "DEVICE", hide_short_help = true)]
    pub bind_device: Option<String>,
    /// Processors for this end's threads: 0,2-5 or numa:INTERFACE (`serve` has its own) [default: all that it may run
    /// on]
    #[arg(long, value_name = "LIST", value_parser = Cpus::parse, hide_short_help = true)]
    pub cpu: Option<Cpus>,
    /// Whose key the server must have.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Append the secrets of the load's connections to a file [default: what the variable
    /// SSLKEYLOGFILE names]
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "TLS (in QUIC too)")]
    pub keylog: Option<PathBuf>,
    /// Write a qlog file for each connection into this directory
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = "QUIC")]
    pub qlog: Option<PathBuf>,
    /// Wait until no other client measures against this server
    #[arg(long, hide_short_help = true)]
    pub exclusive: bool,
    /// Start the load at this time: RFC 3339, or @SECONDS since 1970; - for a line of standard input, which is read
    /// while all flows stand
    #[arg(long, value_name = "TIME", value_parser = StartAt::parse, allow_hyphen_values = true, hide_short_help = true)]
    pub start_at: Option<StartAt>,
}
