//! `agent`: what a controller of a lab starts on a host.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;

use linerate_engine::counter_readers;
use linerate_engine::event::Cancel;
use linerate_lab::agent::{AgentEnd, AgentProcess, become_child, hello};
use linerate_lab::collect::HostCollectors;
use linerate_measure::run::exit;

use super::Failure;
use crate::executable::{own_path, own_sha256};
use crate::output::narrate;

/// The exit code of a shell for what it can't execute.
const NOT_EXECUTED: u8 = 127;

/// Does what the controller says, until its end.
pub(super) fn serve_controller(cancel: &Cancel) -> Result<u8, Failure> {
    let sha256 = own_sha256()
        .map_err(|error| Failure::here(format!("can't read its own executable: {error}")))?;
    let hello = hello(env!("CARGO_PKG_VERSION"), &sha256);
    let copied = |file: std::os::fd::BorrowedFd<'_>| {
        let file = file.try_clone_to_owned();
        file.map(File::from).map_err(|e| Failure::here(format!("can't use its files: {e}")))
    };
    let input = copied(std::io::stdin().as_fd())?;
    let output = copied(std::io::stdout().as_fd())?;
    let process = AgentProcess::new(hello, own_path(), input, output);
    let end = process
        .run(&mut HostCollectors::new(counter_readers), &cancel.flag())
        .map_err(|error| Failure::here(format!("can't wait for its files: {error}")))?;
    match end {
        AgentEnd::Bye | AgentEnd::EndOfInput => Ok(exit::VALID),
        AgentEnd::Silence { .. } => Err(Failure::here(end.to_string())),
        AgentEnd::Nonsense { .. } => Err(Failure::usage(end.to_string())),
    }
}

/// Becomes a child of an agent, if the command line is what an agent starts: `agent --child-of PID -- PROGRAM WORD...`.
/// The exit code, if nothing was executed.
pub(super) fn become_child_of_agent(arguments: &[OsString]) -> Option<u8> {
    let [_, command, flag, agent, dashes, program, words @ ..] = arguments else { return None };
    if command != "agent" || flag != "--child-of" || dashes != "--" {
        return None;
    }
    let agent = agent.to_str()?.parse().ok()?;
    let error = become_child(agent, program, words);
    narrate(&format!("linerate: {} can't be executed: {error}\n", program.display()));
    Some(NOT_EXECUTED)
}
