//! The flags of `compare`.

use std::path::PathBuf;

use clap::Args;
use linerate_measure::comparison::{Condition, MOST_VALUES};

/// The flags of `compare`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate compare \"stream HOST\" \"stream HOST --congestion bbr\"       15 pairs of runs
  linerate compare \"rr HOST\" \"rr HOST --busy-poll\" --pairs 30 --fail-if \"p99 > 10%\"
  linerate compare \"iperf3 -c HOST\" \"stream HOST --up\"               another tool's client beside ours
  linerate compare old.json new.json                                 stored runs (doubtful)",
    after_help = "Figures: goodput, transactions, connections, cpu, cpu-transaction, p50, p90, p99, p99.9,
establishment-p50, establishment-p99, first-byte-p50, first-byte-p99

Every flag: linerate compare --help"
)]
pub struct CompareArgs {
    /// What B is compared with: a command line in quotes, or a file with runs as --json prints them
    #[arg(value_name = "A")]
    pub a: String,
    /// The other command line or file
    #[arg(value_name = "B")]
    pub b: String,
    /// Pairs of runs, one of each command
    #[arg(long, value_name = "NUMBER", default_value = "15", value_parser = pairs, allow_hyphen_values = true)]
    pub pairs: usize,
    /// The seed that draws which command comes first in each pair [default: another one each time]
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Exit with 7 if B's figure differs from A's by more, with its whole interval; repeatable
    #[arg(long, value_name = "FIGURE < CHANGE%", value_parser = Condition::parse, allow_hyphen_values = true)]
    pub fail_if: Vec<Condition>,
    /// Print a JSON document
    #[arg(long, group = "format")]
    pub json: bool,
    /// Print a record of each run as it ends, then the document: a line of JSON each
    #[arg(long, group = "format", hide_short_help = true)]
    pub ndjson: bool,
    /// Write the result to FILE, as a whole or not at all
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write a page with pictures to FILE (HTML), with the document in it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub report: Option<PathBuf>,
    /// Print the result and errors only
    #[arg(long, hide_short_help = true)]
    pub quiet: bool,
}

fn pairs(text: &str) -> Result<usize, String> {
    let pairs = text.parse().ok().filter(|pairs| (1..=MOST_VALUES).contains(pairs));
    pairs.ok_or_else(|| format!("a number of pairs is from 1 to {MOST_VALUES}"))
}
