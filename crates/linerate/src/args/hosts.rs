//! The flags of `hosts`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The flags of `hosts`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate hosts check plan.toml          what works on the plan's hosts, and what doesn't")]
pub struct HostsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: HostsCommand,
}

/// What to do with hosts.
#[derive(Debug, Subcommand)]
pub enum HostsCommand {
    /// Open every host of a plan, and show what works there and what doesn't
    Check(HostsCheckArgs),
}

/// The flags of `hosts check`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate hosts check plan.toml
  linerate hosts check plan.toml --binary aarch64-linux=target/aarch64-unknown-linux-gnu/release/linerate")]
pub struct HostsCheckArgs {
    /// The plan: a file of TOML (its name ends with .toml) or of JSON, or - for JSON from standard input
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// The program for hosts of another architecture, as `uname -m` names it; repeatable
    #[arg(long = "binary", value_name = "ARCH-linux=FILE", value_parser = parse_binary)]
    pub binaries: Vec<(String, PathBuf)>,
}

/// An architecture and the program for it.
fn parse_binary(text: &str) -> Result<(String, PathBuf), String> {
    let parsed = text.split_once('=').and_then(|(system, path)| {
        let arch = system.strip_suffix("-linux")?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_named = !arch.is_empty() && arch.chars().all(is_plain) && !path.is_empty();
        is_named.then(|| (arch.to_owned(), PathBuf::from(path)))
    });
    parsed.ok_or_else(|| {
        format!("'{text}' names no program: give ARCH-linux=FILE, such as aarch64-linux=./linerate")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_given_for_an_architecture() {
        let parsed = parse_binary("aarch64-linux=a/b=c").unwrap();
        assert_eq!(parsed, ("aarch64".to_owned(), PathBuf::from("a/b=c")));
        for text in ["", "aarch64=x", "-linux=x", "aarch64-linux=", "a'b-linux=x", "aarch64-linux"]
        {
            assert!(parse_binary(text).unwrap_err().contains("ARCH-linux=FILE"), "{text}");
        }
    }
}
