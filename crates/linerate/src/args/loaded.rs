//! What can be typed after `loaded`.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use linerate_measure::plan::HostPort;

use super::{ConnectArgs, OutputArgs, values};
use crate::completions::hosts;

/// The flags of `loaded`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate loaded HOST                      idle, up, down, both; 35 seconds at most
  linerate loaded HOST --quic               the load over QUIC
  linerate loaded HOST --congestion bbr     how much of the queue a sender leaves empty
  linerate loaded HOST --time 20s --json    longer phases, as JSON",
    after_help = "Every flag, and how numbers are written: linerate loaded --help",
    after_long_help = super::UNITS,
    // Refused with a sentence.
    mut_arg("csv", super::connect::hidden),
    mut_arg("ndjson", super::connect::hidden),
    mut_arg("verbose", super::connect::hidden),
    mut_arg("live", super::connect::hidden),
    mut_arg("report", super::connect::hidden),
    mut_arg("start_at", super::connect::hidden)
)]
pub struct LoadedArgs {
    /// The server: name, address, NAME:PORT or [IPv6]:PORT
    #[arg(value_name = "HOST", value_parser = HostPort::parse, add = ArgValueCandidates::new(hosts))]
    pub host: HostPort,
    /// The longest a phase with a load is measured; it ends early where goodput and latency are steady
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = values::duration, allow_hyphen_values = true, help_heading = "Phases")]
    pub time: u64,
    /// How long the idle phase is measured
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::duration, allow_hyphen_values = true, help_heading = "Phases")]
    pub idle_time: u64,
    /// Warm-up of a load before it is measured: the queue fills
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::duration, allow_hyphen_values = true, help_heading = "Phases")]
    pub omit: u64,
    /// TCP (default)
    #[arg(long, group = "loaded_transport", help_heading = "Load", hide_short_help = true)]
    pub tcp: bool,
    /// TLS 1.3 over TCP
    #[arg(long, group = "loaded_transport", help_heading = "Load")]
    pub tls: bool,
    /// QUIC: each flow a stream
    #[arg(long, group = "loaded_transport", help_heading = "Load")]
    pub quic: bool,
    /// Refused with a sentence.
    #[arg(long, group = "loaded_transport", hide = true)]
    pub udp: bool,
    /// Flows of the load in each direction
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::small_count, allow_hyphen_values = true, help_heading = "Load")]
    pub flows: u32,
    /// Congestion control of the load, at both ends [default: cubic, or reno where this user may not use it]
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub congestion: Option<String>,
    /// How to reach the server.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Where the result goes.
    #[command(flatten)]
    pub output: OutputArgs,
}
