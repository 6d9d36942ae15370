//! What can be typed after `media`.

use clap::{Arg, Args};
use clap_complete::engine::ArgValueCandidates;
use linerate_measure::plan::HostPort;

use super::{ConnectArgs, LoadArgs, OutputArgs, values};
use crate::completions::hosts;

/// The flags of `media`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate media HOST                               to HOST, 2 Mbit/s, 60 frames a second
  linerate media HOST --down --rate 25M             from HOST, as a player of video gets it
  linerate media HOST --flows 1000 --time 30s       1000 streams, half a minute
  linerate media HOST --fps 50 --buffer-depth 80ms  frames later than 80 ms are late
  linerate media HOST --size 200,600,1400           one run per size of datagrams, one table",
    after_help = "Every flag, and how numbers are written: linerate media --help",
    after_long_help = super::UNITS,
    // Refused with a sentence: they don't go with UDP, or not with frames.
    mut_args(|arg| if is_of_others(&arg) { arg.hide(true) } else { arg })
)]
pub struct MediaArgs {
    /// The server: name, address, NAME:PORT or [IPv6]:PORT
    #[arg(value_name = "HOST", value_parser = HostPort::parse, add = ArgValueCandidates::new(hosts))]
    pub host: HostPort,
    /// From this machine to the server (default)
    #[arg(long, group = "direction", help_heading = "Load", hide_short_help = true)]
    pub up: bool,
    /// From the server to this machine
    #[arg(long, alias = "reverse", short_alias = 'R', group = "direction", help_heading = "Load")]
    pub down: bool,
    /// Both directions at once, on separate flows
    #[arg(long, alias = "bidir", group = "direction", help_heading = "Load")]
    pub both: bool,
    /// Check every received byte against a pattern that depends on its position
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub verify: bool,
    /// Rate of each flow
    #[arg(long, value_name = "RATE", default_value = "2M", value_parser = values::rate, allow_hyphen_values = true, help_heading = "Load")]
    pub rate: u64,
    /// Frames per second of each flow
    #[arg(long, value_name = "N", default_value = "60", value_parser = values::small_count, allow_hyphen_values = true, help_heading = "Load")]
    pub fps: u32,
    /// Bytes of a datagram at most; a list: one run per size [default: 1448]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::size, allow_hyphen_values = true, help_heading = "Load")]
    pub size: Vec<u32>,
    /// How long the receiver holds frames back before it plays the first
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = values::duration, allow_hyphen_values = true, help_heading = "Load")]
    pub buffer_depth: u64,
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

/// Whether a flag of the load is of other transports, or ends a load otherwise than by time.
fn is_of_others(arg: &Arg) -> bool {
    const FLAGS: [&str; 8] =
        ["tcp", "tls", "udp", "quic", "count", "no_delay", "congestion", "mss"];
    let heading = arg.get_help_heading().unwrap_or_default();
    FLAGS.contains(&arg.get_id().as_str())
        || heading.starts_with("QUIC")
        || heading.starts_with("TLS")
}
