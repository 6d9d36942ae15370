//! What can be typed after `connect`.

use clap::{Arg, Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

use super::load::ArrivalsName;
use super::{ConnectArgs, LoadArgs, OutputArgs, values};
use crate::completions::hosts;
use crate::host::HostPort;

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
    /// Bytes of a request
    #[arg(long, value_name = "BYTES", default_value = "1", value_parser = values::size, allow_hyphen_values = true, help_heading = "Load")]
    pub request: u32,
    /// Bytes of a response
    #[arg(long, value_name = "BYTES", default_value = "1", value_parser = values::size, allow_hyphen_values = true, help_heading = "Load")]
    pub response: u32,
    /// Who closes: fin (the client, in order), rst (the client, by a reset: no TIME-WAIT) or server
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
    /// Longest time of a connection before it counts as timed out
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

fn hidden(flag: Arg) -> Arg {
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

/// Who closes a connection, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClosingName {
    /// The client, in order (FIN)
    Fin,
    /// The client, at once (RST): no port waits in TIME-WAIT
    Rst,
    /// The server, in order
    Server,
}
