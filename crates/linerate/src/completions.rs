//! Completions: the shell asks the program itself, so that they know what this user's machine knows.

use std::ffi::OsString;
use std::io;

use clap::CommandFactory;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};

use crate::args::Cli;
use crate::known_servers::known_servers;

/// The variable in which a shell that wants candidates names itself.
const VARIABLE: &str = "LINERATE_COMPLETE";
const PROGRAM: &str = "linerate";

/// Prints the candidates where a shell asks for them; whether one did.
///
/// # Errors
/// Where the shell is unknown, or the candidates can't be written.
pub(crate) fn complete(arguments: &[OsString]) -> clap::error::Result<bool> {
    // Set by shells alone: everything else is done without a look at the command line's types.
    if std::env::var_os(VARIABLE).is_none() {
        return Ok(false);
    }
    let directory = std::env::current_dir().ok();
    CompleteEnv::with_factory(Cli::command)
        .var(VARIABLE)
        .bin(PROGRAM)
        .try_complete(arguments.to_vec(), directory.as_deref())
}

/// What a shell reads to ask [`complete`] from then on.
pub(crate) fn render_script(shell: clap_complete::Shell) -> io::Result<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let unknown = || io::Error::other(format!("there are no completions for {shell}"));
    let completer = shells.completer(&shell.to_string()).ok_or_else(unknown)?;
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Candidates for HOST: the servers that this user has met.
pub(crate) fn hosts() -> Vec<CompletionCandidate> {
    known_servers().into_iter().map(CompletionCandidate::new).collect()
}
