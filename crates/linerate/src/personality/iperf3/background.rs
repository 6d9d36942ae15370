//! A server in the background (`-D`): this program once more, on its own.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Tells the program that it is the one in the background.
const VARIABLE: &str = "LINERATE_IPERF3_BACKGROUND";

/// What the one in the background says when it listens.
const READY: &str = "ready";

/// Whether this is the one in the background.
pub(super) fn is_background() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Starts the program in the background with the same words; waits until it listens.
///
/// # Errors
/// What is in its way.
pub(super) fn start(words: &[String]) -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .arg("iperf3")
        .args(words)
        .env(VARIABLE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
    }
    match line.trim_end() {
        READY => Ok(()),
        said => Err(said.to_owned()),
    }
}

/// In the background: all is well, or this is in the way.
pub(super) fn tell_foreground(failure: Option<&str>) {
    let line = format!("{}\n", failure.unwrap_or(READY));
    let mut stdout = io::stdout().lock();
    // Fails only if the parent has ended already.
    let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
}
