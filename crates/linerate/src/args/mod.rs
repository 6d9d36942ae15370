//! What can be typed: the one source of the parser, `--help`, man pages and completions.
//!
//! These types hold what was typed, not what it means: that is [`crate::planning`]'s.

mod compare;
mod connect;
mod hosts;
mod hunt;
mod identity;
mod index;
mod kubernetes;
mod link;
mod load;
mod loaded;
mod matrix;
mod media;
mod output;
mod proxy;
mod repeat;
mod report;
mod results;
mod run;
mod serve;
pub mod values;
mod web;

pub use compare::CompareArgs;
pub use connect::{ClosingName, ConnectRateArgs, HandshakeName, LifeArgs, PatternName};
pub use hosts::{HostsArgs, HostsCheckArgs, HostsCommand};
pub use hunt::HuntArgs;
pub use identity::IdentityArgs;
pub use index::{IndexArgs, ServerArgs};
pub use kubernetes::{
    CheckArgs, CleanArgs, ImageArgs, KubernetesArgs, KubernetesCommand, ManifestArgs,
};
pub use link::LinkArgs;
pub use load::{
    ActiveFlows, ArrivalsName, CipherName, ConnectArgs, LoadArgs, Omit, QuicVersionName, RrArgs,
    StreamArgs, VariantArgs,
};
pub use loaded::LoadedArgs;
pub use matrix::{MatrixArgs, OrderName};
pub use media::MediaArgs;
pub use output::OutputArgs;
pub use proxy::{ProxyArgs, ProxyCongestionName};
pub use repeat::RepeatArgs;
pub use report::ReportArgs;
pub use results::{
    DiffArgs, ExportArgs, ListArgs, MergeArgs, OutboxArgs, PlotArgs, PushArgs, RemoveArgs,
    ResultsArgs, ResultsCommand, ShowArgs,
};
pub use run::{KeyArgs, RunArgs};
pub use serve::ServeArgs;
pub use web::WebArgs;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "linerate",
    version,
    about = "Measure networks: throughput, loss, latency and connection rate",
    before_help = "Examples:
  linerate self                                  measure this machine, in 12 seconds
  linerate serve                                 serve clients, on port 5250
  linerate stream HOST                           TCP, to HOST, 10 seconds
  linerate stream HOST --down --tls --flows 8    TLS, from HOST, 8 connections
  linerate stream HOST --udp --rate 1G           UDP at 1 Gbit/s, with loss and jitter
  linerate media HOST --down                     video from HOST: frames late and lost
  linerate rr HOST --time 30s --json             request and response: latency, as JSON
  linerate connect HOST                          connections per second
  linerate hunt HOST                             the UDP rate at which loss begins
  linerate loaded HOST                           latency, idle and under load
  linerate compare 'stream HOST' 'stream HOST --tls'     which is faster, in pairs of runs
  linerate matrix plan.toml                      many measurements, on many hosts
  linerate link --profile geo                    a satellite link between two namespaces
  linerate proxy HOST:443 --alpn h3              end QUIC connections, and go on to HOST",
    after_help = render_after_help(),
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How the exit codes read in `--help`.
pub const EXIT_CODES: &str = "Exit codes:
  0 measured and valid        4 refused: a key is missing or wrong
  1 failed                    5 the server has no room for this test
  2 the request makes no      6 measured, but not to be trusted
    sense                     7 measured, but a threshold was not met
  3 server not reachable    130 interrupted: the partial result was printed";

/// What `--help` says last: the personalities and the exit codes.
fn render_after_help() -> String {
    format!("{}\n{EXIT_CODES}", crate::personality::render_overview())
}

/// How numbers with units read in `--help`.
pub const UNITS: &str = "Units:
  sizes      1500, 64k (1000), 64Ki (1024), 10G       rates  500M, 10G, 2.5Gbit/s
  durations  500ms, 10s, 1h; a plain number is seconds";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this machine: a server of its own on loopback and the standard set of tests
    #[command(name = "self")]
    OwnMachine(SelfArgs),
    /// Serve any number of clients, on one port number, TCP and UDP
    Serve(ServeArgs),
    /// Measure bulk transfer with a server
    Stream(StreamArgs),
    /// Measure media streams with a server: frames, playout, delay variation
    Media(MediaArgs),
    /// Measure request and response with a server: rate and latency
    Rr(RrArgs),
    /// Measure connections with a server: how many per second, and how long each takes
    Connect(ConnectRateArgs),
    /// Search the highest rate that keeps limits on loss or latency
    Hunt(HuntArgs),
    /// Measure latency while the path is idle, and while it is filled in each direction
    Loaded(LoadedArgs),
    /// Measure the plans of a file: those that --dry-run prints, or your own
    Run(RunArgs),
    /// Compare two commands in pairs of runs, or two files of stored runs
    Compare(CompareArgs),
    /// Measure a matrix of parameters over many hosts, by a plan
    Matrix(MatrixArgs),
    /// List, show, compare, draw and export runs that were kept
    Results(ResultsArgs),
    /// Write a page with pictures of a run, a comparison or a matrix: one HTML file
    Report(ReportArgs),
    /// Serve the pages of a store to browsers on this machine
    Web(WebArgs),
    /// Emulate a path: delay, rate, loss, reordering, corruption, between namespaces or as a relay
    Link(LinkArgs),
    /// Carry QUIC connections on to a target, as a performance-enhancing proxy
    Proxy(ProxyArgs),
    /// Show what works on the hosts of a plan, and what doesn't
    Hosts(HostsArgs),
    /// Serve `linerate matrix` on a host, which starts it by itself
    Agent,
    /// Prepare and clean a cluster of Kubernetes, in which plans can have pods
    Kubernetes(KubernetesArgs),
    /// Write the image of linerate for pods: OCI layout and `docker load` archive in one
    Image(ImageArgs),
    /// Print the JSON Schemas of plan, sample, run, link report, matrix, comparison, repeats and loaded
    Schema(SchemaArgs),
    /// Write the man pages into a directory
    Man(ManArgs),
    /// Print the completions for a shell
    Completions(CompletionsArgs),
}

/// The flags of `self`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate self                     TCP up and down, TLS, QUIC; TCP, UDP and QUIC rr; UDP stream
  linerate self --time 10s          10 seconds each
  linerate self --json              the runs as an array of JSON documents
  linerate self --dry-run           the plans of the tests, which `linerate run` reads")]
pub struct SelfArgs {
    /// Length of each test
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::duration, allow_hyphen_values = true)]
    pub time: u64,
    /// Print the runs as a JSON array
    #[arg(long)]
    pub json: bool,
    /// Also write a page with pictures of all runs to FILE (HTML), with the documents in it
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub report: Option<PathBuf>,
    /// Keep the runs in a store, results.db in the user's data directory or FILE, for `linerate results`
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = crate::store::USUAL)]
    pub store: Option<PathBuf>,
    /// Print the result and errors only
    #[arg(long)]
    pub quiet: bool,
    /// Print the plan of each test and the steps of its flows as JSON, and measure nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The flags of `schema`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate schema                   all of them, as one object
  linerate schema run               the schema of `linerate stream --json`")]
pub struct SchemaArgs {
    /// One schema only: of a plan, of a sample (one end, one interval), of a run (the result), of the
    /// report of `link`, of the plan of `matrix`, of a comparison, of several runs (`--repeat`), or of
    /// latency under load (`loaded`)
    #[arg(value_enum)]
    pub document: Option<SchemaName>,
}

/// A document that has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// What was asked.
    Plan,
    /// What one end counted in one interval.
    Sample,
    /// What came out.
    Run,
    /// What an emulated link did.
    Link,
    /// The plan of a matrix.
    Matrix,
    /// How two commands compare.
    Comparison,
    /// What several runs of one plan come to.
    Repeats,
    /// Latency under load.
    Loaded,
}

/// The flags of `man`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate man /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Where to write them; it is made if it doesn't exist
    pub directory: PathBuf,
}

/// The flags of `completions`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate completions bash > /etc/bash_completion.d/linerate   the shell then asks the program itself")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
