//! The flags of `run`, and those that no plan holds: secrets, and whom to trust.

use std::path::PathBuf;

use clap::Args;

use super::{OutputArgs, values};

/// Whose key the server must have, and the key that the client shows.
#[derive(Args, Clone, Debug, Default)]
pub struct KeyArgs {
    /// The fingerprint that the server's key must have [default: known or trusted on first use]
    #[arg(long, value_name = "FINGERPRINT", value_parser = values::fingerprint, hide_short_help = true)]
    pub server_key: Option<String>,
    /// Authority (PEM) that must vouch for the server's certificate and HOST [default: the key is known or
    /// trusted on first use]
    #[arg(long, value_name = "FILE", conflicts_with = "server_key", hide_short_help = true)]
    pub ca: Option<PathBuf>,
    /// Don't check the server's key: any host on the path may pose as the server
    #[arg(long, conflicts_with_all = ["server_key", "ca"], hide_short_help = true)]
    pub insecure: bool,
    /// The key shared with a server that asks for one (`serve --require-key`)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub key: Option<PathBuf>,
}

/// The flags of `run`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate stream HOST --udp --rate 1G --dry-run > plan.json
  linerate run plan.json                  what that command would measure
  linerate run plans.toml --json          all its plans, one after the other",
    after_help = "Every flag: linerate run --help"
)]
pub struct RunArgs {
    /// The plans: a file of TOML (its name ends with .toml) or of JSON, or - for JSON from standard input
    #[arg(value_name = "PLANS")]
    pub plans: PathBuf,
    /// Whose key the servers must have.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}
