//! The flags of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use linerate_measure::plan::LocalAddress;

use super::{IdentityArgs, values};
use crate::cpus::Cpus;

/// The flags of `serve`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate serve                                    listen on port 5250, TCP and UDP
  linerate serve --require-key key                  admit only holders of the key in file `key`
  linerate serve --max-tests 1 --max-time 60s       one test at a time, of a minute at most
  linerate serve --one-off --idle-timeout 60s       end after one test, or after 60 s without one
  linerate serve --port 0 --ndjson                  any free port; the first record names it",
    after_help = "Every flag, and how numbers are written: linerate serve --help",
    after_long_help = super::UNITS
)]
pub struct ServeArgs {
    /// The port to listen on, TCP and UDP; 0: any free one
    #[arg(long, short, value_name = "PORT", default_value_t = linerate_measure::plan::DEFAULT_PORT)]
    pub port: u16,
    /// The address to listen on, such as fe80::1%eth0 [default: all, IPv4 and IPv6]
    #[arg(long, value_name = "ADDRESS", value_parser = values::address)]
    pub bind: Option<LocalAddress>,
    /// The network device to listen on [default: any]
    #[arg(long, value_name = "DEVICE", hide_short_help = true)]
    pub bind_device: Option<String>,
    /// Processors for the load's threads: 0,2-5 or numa:INTERFACE (those near it) [default: all that it may run on]
    #[arg(long, value_name = "LIST", value_parser = Cpus::parse, hide_short_help = true)]
    pub cpu: Option<Cpus>,
    /// Most concurrent tests; further clients are refused
    #[arg(long, value_name = "N", default_value = "64", value_parser = values::positive_count, allow_hyphen_values = true)]
    pub max_tests: u32,
    /// Most payload per second of all tests together; a test without --rate is refused, rr and connect too
    /// [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = values::positive_rate, allow_hyphen_values = true)]
    pub max_rate: Option<u64>,
    /// Longest time of a test [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, allow_hyphen_values = true)]
    pub max_time: Option<u64>,
    /// End after one test
    #[arg(long)]
    pub one_off: bool,
    /// End after so long without a test
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, allow_hyphen_values = true)]
    pub idle_timeout: Option<u64>,
    /// Allow clients' --busy-poll to poll without sleeping at this end; one processor stays free
    #[arg(long, hide_short_help = true)]
    pub busy_poll: bool,
    /// Admit only clients that hold the key in FILE (any 1 to 4096 bytes)
    #[arg(long, value_name = "FILE")]
    pub require_key: Option<PathBuf>,
    /// The key and certificate that clients see.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// A page for monitoring systems.
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Print records as they happen, a line of JSON each
    #[arg(long, hide_short_help = true)]
    pub ndjson: bool,
    /// Print the listening address, then errors only
    #[arg(long)]
    pub quiet: bool,
}

/// The flags of the page for monitoring systems.
#[derive(Args, Debug)]
pub struct MetricsArgs {
    /// Tell the last finished run of each title at http://ADDRESS:PORT/metrics, as OpenMetrics text
    #[arg(long, value_name = "ADDRESS:PORT", hide_short_help = true)]
    pub metrics: Option<SocketAddr>,
    /// The store that --metrics reads [default: LINERATE_STORE, or results.db in the user's data directory]
    #[arg(long, value_name = "FILE", requires = "metrics", hide_short_help = true)]
    pub store: Option<PathBuf>,
}
