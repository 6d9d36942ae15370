//! The flags of `results`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use linerate_results::export::CdmVersion;

use super::index::{ServerArgs, cdm_version};

/// The flags of `results`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate stream HOST --store                  keep the run
  linerate results list                         the runs, the newest first
  linerate results show last                    what the newest came to
  linerate results diff RUN last                what differs between two
  linerate results plot last                    its goodput over time, in the terminal
  linerate results export last --csv > run.csv  all points of its series",
    after_help = "RUN is a run's name, the beginning of its name, its title, or last.
Every flag of a command: linerate results COMMAND --help"
)]
pub struct ResultsArgs {
    /// The store [default: LINERATE_STORE, or results.db in the user's data directory]
    #[arg(long, value_name = "FILE", global = true)]
    pub store: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: ResultsCommand,
}

/// What to do with results.
#[derive(Debug, Subcommand)]
pub enum ResultsCommand {
    /// List the runs, the newest first
    List(ListArgs),
    /// Show what a run was and came to
    Show(ShowArgs),
    /// Show what differs between two runs: what was asked, and the figures
    Diff(DiffArgs),
    /// Draw a metric over time, in the terminal or as SVG
    Plot(PlotArgs),
    /// Print all of runs, or copy them to a file of their own
    Export(ExportArgs),
    /// Copy the runs of other stores into this one
    Merge(MergeArgs),
    /// List what an index does not have yet, or send it
    Outbox(OutboxArgs),
    /// Print the last finished run of each title as OpenMetrics text, or push it to a collector
    Metrics(PushArgs),
    /// Remove runs
    Rm(RemoveArgs),
}

/// The flags of `results list`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate results list
  linerate results list --tag mtu=9000 --json")]
pub struct ListArgs {
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
    /// Only runs with this mark; repeatable
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = super::values::tag)]
    pub tags: Vec<(String, String)>,
}

/// The flags of `results show`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate results show last
  linerate results show nightly --json")]
pub struct ShowArgs {
    /// The run: its name or the beginning of it, its title, or last
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Print a JSON document
    #[arg(long)]
    pub json: bool,
}

/// The flags of `results diff`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate results diff 3f2a last")]
pub struct DiffArgs {
    /// The run to compare with
    #[arg(value_name = "A")]
    pub first: String,
    /// The run that is compared
    #[arg(value_name = "B")]
    pub second: String,
    /// Print a JSON document
    #[arg(long)]
    pub json: bool,
}

/// The flags of `results plot`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate results plot last
  linerate results plot last --metric linerate::rx-Gbps --breakout stream
  linerate results plot last --svg run.svg")]
pub struct PlotArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// What to draw, as SOURCE::TYPE [default: what the run is judged by]
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// A line for each value of this label: NAME, NAME=V1+V2 or NAME=r/PATTERN/; repeatable
    #[arg(long, value_name = "LABEL")]
    pub breakout: Vec<String>,
    /// How many points in time [default: as many as the picture has columns of dots]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub resolution: Option<u32>,
    /// Write an SVG picture to FILE; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub svg: Option<PathBuf>,
    /// Print the values as JSON, with unit and coverage
    #[arg(long)]
    pub json: bool,
}

/// The flags of `results export`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate results export last --csv > run.csv          a row for each point of each series
  linerate results export last > run.ndjson             documents and series, a line of JSON each
  linerate results export nightly --bundle nightly.db   a store of this run alone, in one file
  linerate results export last --opensearch https://search:9200 --ca ca.pem")]
pub struct ExportArgs {
    /// The runs
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Print comma-separated values: a row for each point of each series
    #[arg(long, group = "form")]
    pub csv: bool,
    /// Print a line of JSON for the run, each document and each series (the default)
    #[arg(long, group = "form")]
    pub ndjson: bool,
    /// Write a new store FILE that has these runs alone
    #[arg(long, value_name = "FILE", group = "form")]
    pub bundle: Option<PathBuf>,
    /// Write documents of the Common Data Model to this OpenSearch or Elasticsearch
    #[arg(long, value_name = "URL", group = "form")]
    pub opensearch: Option<String>,
    /// How the index is reached.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The version of the Common Data Model: v7dev to v10dev [default: the newest that the index has]
    #[arg(long, value_name = "VERSION", value_parser = cdm_version, requires = "opensearch")]
    pub cdm: Option<CdmVersion>,
    /// The sources whose series go to the index, such as linerate,mpstat [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "opensearch")]
    pub sources: Vec<String>,
    /// At most so many points a second go to the index [default: all]
    #[arg(long, value_name = "NUMBER", value_parser = positive_number, requires = "opensearch")]
    pub hz: Option<f64>,
    /// Write to FILE, as a whole or not at all
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bundle", "opensearch"])]
    pub output: Option<PathBuf>,
}

/// The flags of `results outbox`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate results outbox
  linerate results outbox --send https://search:9200 --ca ca.pem")]
pub struct OutboxArgs {
    /// Print a JSON array
    #[arg(long, conflicts_with = "send")]
    pub json: bool,
    /// Send what waits for the index of this address, and what it refused before
    #[arg(long, value_name = "URL")]
    pub send: Option<String>,
    /// How the index is reached.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The flags of `results metrics`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate results metrics                                    as OpenMetrics text
  linerate results metrics --otlp http://collector:4318       push it by OTLP over HTTP, once
  linerate results metrics last --otlp https://collector:4318/v1/metrics --ca ca.pem")]
pub struct PushArgs {
    /// The runs to push [default: the last finished run of each title]
    #[arg(value_name = "RUN", requires = "otlp")]
    pub runs: Vec<String>,
    /// Push to this collector of OpenTelemetry; the path is /v1/metrics where URL has none
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// Trust the certificates of FILE (PEM) at the collector [default: the system's]
    #[arg(long, value_name = "FILE", requires = "otlp")]
    pub ca: Option<PathBuf>,
    /// A file with `Basic USER:PASSWORD`, `Bearer TOKEN` or `ApiKey KEY` for the collector [default: LINERATE_OTLP_AUTH]
    #[arg(long, value_name = "FILE", requires = "otlp")]
    pub auth_file: Option<PathBuf>,
}

fn positive_number(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| number.is_finite() && (0.001..=1e6).contains(number))
        .ok_or_else(|| format!("'{text}' is no rate: give a number from 0.001 to 1000000"))
}

/// The flags of `results merge`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate results merge other.db
  linerate results merge --store all.db host-*.db")]
pub struct MergeArgs {
    /// The stores to copy from
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// The flags of `results rm`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate results rm 3f2a9c01b5d84e0f9b6c2d7e8a1f0c35")]
pub struct RemoveArgs {
    /// The runs, by their whole names
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
}
