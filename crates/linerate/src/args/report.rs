//! The flags of `report`.

use std::path::PathBuf;

use clap::Args;

/// The flags of `report`.
#[derive(Args, Clone, Debug)]
#[command(before_help = "Examples:
  linerate stream HOST --json --output run.json
  linerate report run.json --output run.html         a page with pictures, and with run.json in it
  linerate report last --output run.html             the newest run that was kept
  linerate report comparison.json > comparison.html
  linerate report run.html --extract > run.json      the document again, byte for byte
  linerate report run.html --plan | linerate run -   measure the same again")]
pub struct ReportArgs {
    /// A file: a run or a comparison as --json prints it, or a page; or a run that was kept: its name or
    /// the beginning of it, its title, or last
    #[arg(value_name = "FILE|RUN")]
    pub source: String,
    /// Write to FILE, as a whole or not at all [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the document alone, as it is in the page
    #[arg(long, group = "part")]
    pub extract: bool,
    /// Write the plans alone, for `linerate run`
    #[arg(long, group = "part")]
    pub plan: bool,
    /// The store [default: LINERATE_STORE, or results.db in the user's data directory]
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
}
