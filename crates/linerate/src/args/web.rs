//! The flags of `web`.

use std::path::PathBuf;

use clap::Args;

/// The flags of `web`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate web                     the runs of the usual store, at http://127.0.0.1:5251/
  linerate web --store nightly.db  those of another store
  linerate web --port 0            at a free port
  linerate web --follow run.ndjson also a run that `linerate stream HOST --ndjson > run.ndjson` measures")]
pub struct WebArgs {
    /// The store [default: LINERATE_STORE, or results.db in the user's data directory]
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Also show the run whose records are being written to this file (--ndjson, LINERATE_RUN_RECORDS)
    #[arg(long, value_name = "FILE")]
    pub follow: Option<PathBuf>,
    /// TCP port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value = "5251")]
    pub port: u16,
}
