//! The flags of `matrix`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use linerate_measure::order::Order;

use super::index::IndexArgs;

/// The flags of `matrix`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate matrix plan.toml --dry-run     its cells, command lines and expected time
  linerate matrix plan.toml --check       opens every host, and measures nothing
  linerate matrix plan.toml               measures, keeps results in the store
  linerate matrix plan.toml --resume RUN  goes on where that run ended or died
  linerate schema matrix                  what a plan may have",
    after_help = "Exit codes besides those of `linerate --help`:
  6 measured; a threshold is undecided or a cell is not to be trusted
  7 measured; a threshold was not met"
)]
pub struct MatrixArgs {
    /// The plan: a file of TOML (its name ends with .toml) or of JSON, or - for JSON from standard input
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// Print hosts, pairs, cells, command lines and the expected time, and touch no host
    #[arg(long, conflicts_with_all = ["check", "resume"])]
    pub dry_run: bool,
    /// Open every host, print what it is and how far its clock is off, and measure nothing
    #[arg(long, conflicts_with = "resume")]
    pub check: bool,
    /// Go on with a run of this plan, begun with the same --samples and --order: its name in the store, or last
    #[arg(long, value_name = "RUN")]
    pub resume: Option<String>,
    /// Samples of each point, in place of the plan's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub samples: Option<u32>,
    /// Order of the cells, in place of the plan's: interleaved, sample, iteration or random
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    pub order: Option<OrderName>,
    /// The store's file [default: $LINERATE_STORE, else results.db of the user's data directory]
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// The index that results go to, too.
    #[command(flatten)]
    pub index: IndexArgs,
    /// Print one JSON document
    #[arg(long, group = "format")]
    pub json: bool,
    /// Print records as they happen, a line of JSON each
    #[arg(long, group = "format")]
    pub ndjson: bool,
    /// Print the result and errors only
    #[arg(long)]
    pub quiet: bool,
}

/// An order of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderName {
    /// Rounds that hold each point once, shuffled.
    Interleaved,
    /// All samples of a point, then the next point.
    Sample,
    /// The first sample of each point, then the second.
    Iteration,
    /// Drawn at random.
    Random,
}

impl From<OrderName> for Order {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Interleaved => Self::Interleaved,
            OrderName::Sample => Self::Sample,
            OrderName::Iteration => Self::Iteration,
            OrderName::Random => Self::Random,
        }
    }
}
