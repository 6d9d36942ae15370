//! What can be typed after `connect`.

use clap::{Arg, Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use linerate_measure::plan::HostPort;
use linerate_measure::step::Size;

use super::load::ArrivalsName;
use super::{ConnectArgs, LoadArgs, OutputArgs, values};
use crate::completions::hosts;

/// The flags of `connect`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate connect HOST                             connect, 1 byte out, 1 byte back, close; again
  linerate connect HOST --close rst --flows 100     100 at once, closed by resets
  linerate connect HOST --rate 5k                   5000 a second, each begun when it is due
  linerate connect HOST --source-ports 1024-65535   more ports than the kernel would choose from
  linerate connect HOST --tls --time 30s            TLS handshakes, half a minute",
    after_help = "Every flag, and how numbers are written: linerate connect --help",
    after_long_help = super::UNITS,
    // Refused with a sentence: they need connections that stay.
    mut_arg("udp", hidden),
    mut_arg("datagram", hidden),
    mut_arg("streams", hidden),
    mut_arg("busy_poll", hidden)
)]
pub struct ConnectRateArgs {
    /// The server: name, address, NAME:PORT or [IPv6]:PORT
    #[arg(value_name = "HOST", value_parser = HostPort::parse, add = ArgValueCandidates::new(hosts))]
    pub host: HostPort,
    /// What each connection carries.
    #[command(flatten)]
    pub life: LifeArgs,
    /// Which end closes: fin (the client, in order), rst (the client, by a reset: no TIME-WAIT) or server
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value = "fin",
        hide_possible_values = true,
        help_heading = "Load"
    )]
    pub close: ClosingName,
    /// Connections per second of all flows together, each begun when it is due (open loop)
    #[arg(long, value_name = "N", value_parser = values::per_second, allow_hyphen_values = true, help_heading = "Load")]
    pub rate: Option<f64>,
    /// Spacing of connections: even (default), or poisson (random)
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
    /// TLS handshake: full (default), resumed (with a ticket of an earlier connection) or early (resumed,
    /// with the request in the first packets: 0-RTT)
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        hide_possible_values = true,
        help_heading = "TLS (in QUIC too)",
        hide_short_help = true
    )]
    pub handshake: Option<HandshakeName>,
    /// Time limit of a connection; with --transfer or --hold, the longest time without progress
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::duration, allow_hyphen_values = true, help_heading = "Load", hide_short_help = true)]
    pub timeout: u64,
    /// Local ports to use, LOW-HIGH [default: the kernel's choice]
    #[arg(long, value_name = "LO-HI", value_parser = values::port_range, allow_hyphen_values = true, help_heading = "Connection", hide_short_help = true)]
    pub source_ports: Option<(u16, u16)>,
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

/// What each connection carries, and how long it stays open then.
#[derive(Args, Debug)]
pub struct LifeArgs {
    /// Bytes of a request
    #[arg(long, value_name = "BYTES", default_value = "1", value_parser = values::size, allow_hyphen_values = true, help_heading = "Load")]
    pub request: u32,
    /// Bytes of a response
    #[arg(long, value_name = "BYTES", default_value = "1", value_parser = values::size, allow_hyphen_values = true, help_heading = "Load")]
    pub response: u32,
    /// Bytes of a transfer on each connection, or LOW..HIGH: replaces request and response
    #[arg(long, value_name = "BYTES", value_parser = values::byte_range, conflicts_with_all = ["request", "response"], help_heading = "Load", hide_short_help = true)]
    pub transfer: Option<Size>,
    /// Direction of a transfer: push (to the server), pull (from it), pushpull (in turns) or duplex (both at once)
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value = "push",
        hide_possible_values = true,
        requires = "transfer",
        help_heading = "Load",
        hide_short_help = true
    )]
    pub pattern: PatternName,
    /// Bytes of the client's turns with --pattern pushpull
    #[arg(long, value_name = "BYTES", default_value = "1Mi", value_parser = values::size, requires = "transfer", allow_hyphen_values = true, help_heading = "Load", hide_short_help = true)]
    pub push_bytes: u32,
    /// Bytes of the server's turns with --pattern pushpull
    #[arg(long, value_name = "BYTES", default_value = "1Mi", value_parser = values::size, requires = "transfer", allow_hyphen_values = true, help_heading = "Load", hide_short_help = true)]
    pub pull_bytes: u32,
    /// Bytes of one send or receive of a transfer, BYTES or LOW..HIGH
    #[arg(long, value_name = "BYTES", value_parser = values::byte_range, requires = "transfer", help_heading = "Load", hide_short_help = true)]
    pub buffer: Option<Size>,
    /// Send a pattern in transfers and check every byte
    #[arg(long, requires = "transfer", help_heading = "Load", hide_short_help = true)]
    pub verify: bool,
    /// Seed for sizes drawn from LOW..HIGH: the same seed gives the same sizes
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::count, requires = "transfer", allow_hyphen_values = true, help_heading = "Load", hide_short_help = true)]
    pub seed: u64,
    /// How long each connection stays open before it is closed
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_hyphen_values = true, help_heading = "Load", hide_short_help = true)]
    pub hold: Option<u64>,
}

pub(super) fn hidden(flag: Arg) -> Arg {
    flag.hide(true)
}

/// The TLS handshake of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HandshakeName {
    /// With the server's certificate (default)
    Full,
    /// With a ticket of an earlier connection
    Resumed,
    /// With such a ticket, and the request in the first packets (0-RTT)
    Early,
}

/// Which end sends the bytes of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PatternName {
    /// The client (default)
    Push,
    /// The server
    Pull,
    /// Both in turns
    Pushpull,
    /// Both at once, each one half
    Duplex,
}

/// Which end closes a connection, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClosingName {
    /// The client, in order (FIN)
    Fin,
    /// The client, at once (RST): no port waits in TIME-WAIT
    Rst,
    /// The server, in order
    Server,
}
