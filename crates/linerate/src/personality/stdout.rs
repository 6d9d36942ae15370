//! Standard output of other tools' command lines, and what could not be written to it or to a log file.
//!
//! The originals lose output silently. Here the first failure is told on standard error, and the program ends with a failure.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_engine::stdout_was_closed;

use crate::output::narrate;

/// The tool that is performed.
static TOOL: OnceLock<&'static str> = OnceLock::new();
/// Whether output was lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// The tool whose output this is.
pub(super) fn begin(tool: &'static str) {
    // There is one tool a process.
    let _again = TOOL.set(tool);
}

/// The tool that is performed.
pub(super) fn tool() -> &'static str {
    TOOL.get().copied().unwrap_or("linerate")
}

/// The exit code of a tool that would end with `exit_code`: `failure` in place of success where output was lost. A script
/// that checks the exit code alone must not take a lost result for one.
pub(super) fn exit_code(exit_code: u8, failure: u8) -> u8 {
    if exit_code == 0 && LOST.load(Ordering::Relaxed) { failure } else { exit_code }
}

/// Writes to standard output at once. A reader that has gone is no failure.
pub(super) fn say(text: &str) {
    if let Err(error) = write(std::iter::once(text)) {
        note("standard output", &error);
    }
}

/// Writes pieces to standard output at once, with nothing of others between them.
///
/// # Errors
/// What the system says.
pub(super) fn write<T: AsRef<str>>(pieces: impl Iterator<Item = T>) -> io::Result<()> {
    if stdout_was_closed() {
        return Err(io::Error::other("it was closed when the program was started"));
    }
    let mut stdout = io::stdout().lock();
    for piece in pieces {
        stdout.write_all(piece.as_ref().as_bytes())?;
    }
    stdout.flush()
}

/// Output was lost, as was told already: the exit code says so.
pub(super) fn note_loss() {
    LOST.store(true, Ordering::Relaxed);
}

/// Tells that output was lost, once, unless its reader has gone: a pipe that was closed.
pub(super) fn note(target: &str, error: &io::Error) {
    if error.kind() == ErrorKind::BrokenPipe || LOST.swap(true, Ordering::Relaxed) {
        return;
    }
    narrate(&format!("{}: error - output is lost: can't write to {target}: {error}\n", tool()));
}
