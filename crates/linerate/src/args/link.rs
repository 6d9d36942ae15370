//! The flags of `link`.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command, Error};
use linerate_measure::link::PROFILES;

use super::values;

/// The flags of `link`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate link --profile geo                       two namespaces, a satellite between them
  ip netns exec linerate-right linerate serve       the server on one side of it
  ip netns exec linerate-left linerate stream 10.77.0.2       measure from the other
  linerate link path.toml --time 60s --json         a path from a file, and its report
  linerate link --profile lte --relay 127.0.0.1:6000=127.0.0.1:5250      without privileges",
    after_help = "Every flag, and how numbers are written: linerate link --help",
    after_long_help = super::UNITS
)]
pub struct LinkArgs {
    /// The file that describes the link, in TOML (docs/link.md)
    #[arg(value_name = "FILE", conflicts_with = "profile")]
    pub file: Option<PathBuf>,
    /// Profile instead of a file: geo, leo, lte, wifi, dsl, interop, interop-longrtt, interop-transferloss,
    /// interop-handshakeloss, interop-transfercorruption, interop-handshakecorruption, interop-blackhole
    #[arg(long, value_name = "NAME", value_parser = ProfileName, hide_possible_values = true)]
    pub profile: Option<String>,
    /// The seed of the random numbers [default: the description's]
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Name of the left namespace, which is made
    #[arg(long, value_name = "NAME", default_value = "linerate-left", hide_short_help = true)]
    pub left: String,
    /// Name of the right namespace, which is made
    #[arg(long, value_name = "NAME", default_value = "linerate-right", hide_short_help = true)]
    pub right: String,
    /// Forward what arrives at one address to another, UDP and TCP; needs no privileges
    #[arg(long, value_name = "LISTEN=TARGET", value_parser = relay, conflicts_with_all = ["left", "right"])]
    pub relay: Option<(SocketAddr, SocketAddr)>,
    /// Forward UDP only
    #[arg(long, requires = "relay", conflicts_with = "tcp", hide_short_help = true)]
    pub udp: bool,
    /// Forward TCP only
    #[arg(long, requires = "relay", hide_short_help = true)]
    pub tcp: bool,
    /// Duration [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, allow_hyphen_values = true)]
    pub time: Option<u64>,
    /// Processor for the emulator alone: its thread is pinned to it and never sleeps
    #[arg(long, value_name = "NUMBER", conflicts_with = "sleep", hide_short_help = true)]
    pub cpu: Option<u32>,
    /// Sleep between packets [default: spin on 3 processors or more]
    #[arg(long, hide_short_help = true)]
    pub sleep: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the report to FILE, as a whole or not at all
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the report and errors only
    #[arg(long, hide_short_help = true)]
    pub quiet: bool,
}

/// The name of a profile: completions offer the existing names, and an unknown name is an error of the
/// description.
#[derive(Clone)]
struct ProfileName;

impl TypedValueParser for ProfileName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        flag: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, flag, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(PROFILES.iter().map(|profile| PossibleValue::new(profile.name))))
    }
}

/// Two addresses.
fn relay(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let parsed = text.split_once('=').map(|(listen, target)| (listen.parse(), target.parse()));
    match parsed {
        Some((Ok(listen), Ok(target))) if listen != target => Ok((listen, target)),
        Some((Ok(_), Ok(_))) => Err(format!(
            "'{text}' has the same address twice, and would relay to \
             itself: give two addresses"
        )),
        _ => Err(format!(
            "'{text}' is no relay: give ADDRESS:PORT=ADDRESS:PORT, such as \
             127.0.0.1:6000=127.0.0.1:5250"
        )),
    }
}
