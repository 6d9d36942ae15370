//! What can be typed after `hunt`.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use linerate_measure::hunt::LatencyLimit;
use linerate_measure::plan::HostPort;

use super::{ConnectArgs, OutputArgs, values};
use crate::completions::hosts;

/// The flags of `hunt`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate hunt HOST                          UDP, at most 0.1 % loss
  linerate hunt HOST --rate 10M..500M         between two rates
  linerate hunt HOST --rate 80M --loss 0.01%  does one rate keep a limit?
  linerate hunt HOST --latency p99=1ms        requests per second over TCP
  linerate hunt HOST --compat --rate 50M..1G  the Crucible benchmark's search",
    after_help = "Every flag, and how numbers are written: linerate hunt --help",
    after_long_help = super::UNITS,
    // Refused with a sentence, except with --trial: a hunt has many trials, and prints these.
    mut_arg("csv", super::connect::hidden),
    mut_arg("verbose", super::connect::hidden),
    mut_arg("start_at", super::connect::hidden)
)]
pub struct HuntArgs {
    /// The server: name, address, NAME:PORT or [IPv6]:PORT
    #[arg(value_name = "HOST", value_parser = HostPort::parse, add = ArgValueCandidates::new(hosts))]
    pub host: HostPort,
    /// Rates to search between, of requests per second; or one to judge [default: 1M..10G; requests 10..1M]
    #[arg(long, value_name = "LOW..HIGH", allow_hyphen_values = true, help_heading = "Hunt")]
    pub rate: Option<String>,
    /// The most that may be lost, or fail [default: 0.1%; with --compat 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent, allow_hyphen_values = true, help_heading = "Hunt")]
    pub loss: Option<f64>,
    /// The most that a percentile of latency may be: p99=1ms; repeatable
    #[arg(long, value_name = "pN=TIME", value_parser = values::latency_limit, help_heading = "Hunt")]
    pub latency: Vec<LatencyLimit>,
    /// Search the highest rate of requests instead of a stream's
    #[arg(long, help_heading = "Hunt")]
    pub requests: bool,
    /// Search as the Crucible iperf benchmark does: each rate once and for the whole --time, never the ends
    #[arg(
        long,
        conflicts_with_all = ["latency", "requests"],
        help_heading = "Hunt",
        hide_short_help = true
    )]
    pub compat: bool,
    /// The longest a trial takes where its verdict doesn't need longer; with --compat and a limit of 0 its length
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = values::duration, allow_hyphen_values = true, help_heading = "Hunt", hide_short_help = true)]
    pub time: u64,
    /// Only make one trial: the load of the hunt at this rate for this time, printed as stream and rr print theirs
    #[arg(
        long,
        value_name = "RATE:TIME",
        allow_hyphen_values = true,
        help_heading = "Hunt",
        hide_short_help = true
    )]
    pub trial: Option<String>,
    /// The stream goes from the server to this machine
    #[arg(long, conflicts_with_all = ["requests", "latency"], help_heading = "Load")]
    pub down: bool,
    /// UDP (default of streams)
    #[arg(long, group = "hunt_transport", help_heading = "Load", hide_short_help = true)]
    pub udp: bool,
    /// TCP (default of requests)
    #[arg(long, group = "hunt_transport", help_heading = "Load", hide_short_help = true)]
    pub tcp: bool,
    /// TLS 1.3 over TCP (requests)
    #[arg(long, group = "hunt_transport", help_heading = "Load", hide_short_help = true)]
    pub tls: bool,
    /// QUIC: datagrams of a stream, or requests
    #[arg(long, group = "hunt_transport", help_heading = "Load")]
    pub quic: bool,
    /// Flows that share the rate
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::small_count, allow_hyphen_values = true, help_heading = "Load", hide_short_help = true)]
    pub flows: u32,
    /// Bytes of a datagram, request and response [default: those of stream and rr]
    #[arg(long, value_name = "BYTES", value_parser = values::size, allow_hyphen_values = true, help_heading = "Load")]
    pub size: Option<u32>,
    /// How to reach the server.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Where the result goes.
    #[command(flatten)]
    pub output: OutputArgs,
}
