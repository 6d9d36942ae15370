//! The flags of `link`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::values;

/// The flags of `link`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate link --profile geo                       two namespaces, a satellite between them
  ip netns exec linerate-right linerate serve       be measured on one side of it
  ip netns exec linerate-left linerate stream 10.77.0.2       measure from the other
  linerate link path.toml --time 60s --json         a path from a file, and its report
  linerate link --profile lte --relay 127.0.0.1:6000=127.0.0.1:5250      without privileges",
    after_help = super::UNITS
)]
pub struct LinkArgs {
    /// The file that describes the link, in TOML (docs/link.md)
    #[arg(value_name = "FILE", conflicts_with = "profile")]
    pub file: Option<PathBuf>,
    /// A link that has a name: geo, leo, lte, wifi, dsl, interop, interop-longrtt,
    /// interop-transferloss, interop-handshakeloss, interop-transfercorruption,
    /// interop-handshakecorruption, interop-blackhole
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Another seed than the description's
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// The namespace to make on the left
    #[arg(long, value_name = "NAME", default_value = "linerate-left")]
    pub left: String,
    /// The namespace to make on the right
    #[arg(long, value_name = "NAME", default_value = "linerate-right")]
    pub right: String,
    /// Relay what comes to one address to another instead, UDP and TCP; needs no privileges
    #[arg(long, value_name = "LISTEN=TARGET", value_parser = relay, conflicts_with_all = ["left", "right"])]
    pub relay: Option<(SocketAddr, SocketAddr)>,
    /// Relay UDP alone
    #[arg(long, requires = "relay", conflicts_with = "tcp")]
    pub udp: bool,
    /// Relay TCP alone
    #[arg(long, requires = "relay")]
    pub tcp: bool,
    /// How long; otherwise until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, allow_hyphen_values = true)]
    pub time: Option<u64>,
    /// The processor that the emulator has for itself: it is pinned to it and never sleeps
    #[arg(long, value_name = "NUMBER", conflicts_with = "sleep")]
    pub cpu: Option<u32>,
    /// Sleep between packets, where it would spin [default: on 3 processors or more it spins]
    #[arg(long)]
    pub sleep: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the report to a file: beside it first, then renamed
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the report and errors only
    #[arg(long)]
    pub quiet: bool,
}

/// Two addresses.
fn relay(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let parsed = text.split_once('=').map(|(listen, target)| (listen.parse(), target.parse()));
    match parsed {
        Some((Ok(listen), Ok(target))) if listen != target => Ok((listen, target)),
        Some((Ok(_), Ok(_))) => Err(format!("'{text}' relays to itself: give two addresses")),
        _ => Err(format!(
            "'{text}' is no relay: give ADDRESS:PORT=ADDRESS:PORT, such as \
             127.0.0.1:6000=127.0.0.1:5250"
        )),
    }
}
