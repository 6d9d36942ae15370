//! The program: flags, commands, printers. It links the other crates and maps one thing to another.
//!
//! What was typed ([`args`]) becomes what it means, a [`Plan`] ([`planning`]); the engine makes a
//! [`Run`] of it; a printer ([`output`]) turns events and runs into text, JSON, NDJSON or CSV.
//! Around that stand the two things that this machine remembers: the keys of servers it knows
//! ([`known_servers`]) and the key of its own server ([`identity`]).
//!
//! The command lines of other tools stand beside that: the crate `linerate-personality` reads them,
//! [`personality`] maps them to plans of their dialects, runs these and prints as the original does.
//! `linerate link` maps a description of a path to the crate `linerate-link`.
//!
//! Nothing is hidden from the program, so it decides nothing: it computes no figure, speaks no
//! language of the wire, and opens no socket of a measurement.
//!
//! Programs that measure use [`run`]; a program that wants the whole command line uses
//! [`main_with`].
//!
//! Data go to standard output, narration to standard error. A reader of
//! the data that closes the pipe ends the measurement without a word ([`exit::READER_GONE`]).
//!
//! [`exit::READER_GONE`]: linerate_measure::run::exit::READER_GONE

#![forbid(unsafe_code)]

pub mod args;
pub mod certificates;
mod commands;
mod completions;
pub mod cpus;
pub mod executable;
mod follow;
mod habits;
pub mod host;
mod http;
mod http_client;
pub mod identity;
mod index;
mod key_log;
pub mod known_servers;
mod metrics_site;
pub mod output;
pub mod personality;
pub mod planning;
pub mod shared_key;
mod signals;
pub mod sources;
pub mod start_time;
mod state_directory;
mod store;

use std::ffi::OsString;
use std::process::ExitCode;

use linerate_engine::access::Access;
use linerate_engine::event::{Cancel, Sink};
use linerate_measure::{Plan, Run};

/// Measures as the plan says and returns the document that came out, whatever happened:
/// `status.exit_code` says how it went.
///
/// The server's key is trusted on first use and remembered in the user's list of known servers
/// ([`known_servers`]). Callers that pin a key or hold a shared one call [`linerate_engine::run`].
pub fn run(plan: &Plan, sink: &Sink, cancel: &Cancel) -> Run {
    let trust = known_servers::trust_on_first_use(&plan.host, plan.port, sink.clone());
    linerate_engine::run(
        plan,
        &Access { trust, authority: None, doubt: None, shared_key: None },
        sink,
        cancel,
    )
}

/// Does what a command line says; the first argument is the program's name. Returns the exit code
/// of the native commands ([`linerate_measure::run::exit`]).
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(commands::perform(arguments))
}
