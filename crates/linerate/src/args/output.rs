//! The flags that say where results go and what they look like.

use std::path::PathBuf;

use clap::Args;

/// The flags that say where results go and what they look like.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print a JSON document, or an array for several runs
    #[arg(long, short_alias = 'J', group = "format")]
    pub json: bool,
    /// Print records as they happen, a line of JSON each: started, sample, finished, error
    #[arg(long, group = "format", hide_short_help = true)]
    pub ndjson: bool,
    /// Print comma-separated values: a row for each sample of each end, then a summary row
    #[arg(long, group = "format", hide_short_help = true)]
    pub csv: bool,
    /// Write the result to FILE, as a whole or not at all
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write a page with pictures to FILE (HTML), with the document in it
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run", hide_short_help = true)]
    pub report: Option<PathBuf>,
    /// Keep the run in a store, results.db in the user's data directory or FILE, for `linerate results`
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = crate::store::USUAL, hide_short_help = true)]
    pub store: Option<PathBuf>,
    /// Print the result and errors only
    #[arg(long, hide_short_help = true)]
    pub quiet: bool,
    /// Show the run on the whole terminal while it goes on: rates, flows, times
    #[arg(long, conflicts_with_all = ["quiet", "dry_run"], hide_short_help = true)]
    pub live: bool,
    /// End with exit code 6 where the result is doubtful, not only where it is invalid
    #[arg(long, hide_short_help = true)]
    pub strict: bool,
    /// Also print all that both ends counted and ran on: sockets, kernels
    #[arg(long, short_alias = 'V')]
    pub verbose: bool,
    /// Print the plan and the steps of each flow as JSON, and measure nothing
    #[arg(long, hide_short_help = true)]
    pub dry_run: bool,
    /// A title, kept with the result
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub title: Option<String>,
    /// A mark, kept with the result; repeatable
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = super::values::tag, hide_short_help = true)]
    pub tags: Vec<(String, String)>,
}
