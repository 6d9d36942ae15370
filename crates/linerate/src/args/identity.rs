//! The flags of a server's own key.

use std::path::PathBuf;

use clap::Args;

/// The flags of a server's own key.
#[derive(Args, Clone, Debug)]
pub struct IdentityArgs {
    /// Where the own key of `serve` and `proxy` is kept [default: ~/.local/state/linerate]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub identity: Option<PathBuf>,
    /// Certificate (PEM), followed by those that vouch for it [default: the own key]
    #[arg(
        long,
        value_name = "FILE",
        requires = "key",
        conflicts_with = "identity",
        hide_short_help = true
    )]
    pub cert: Option<PathBuf>,
    /// The private key of --cert, in PEM
    #[arg(long, value_name = "FILE", requires = "cert", hide_short_help = true)]
    pub key: Option<PathBuf>,
}
