//! A client's password.

use std::io::{self, BufRead, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Where a password is looked for first.
const VARIABLE: &str = "IPERF3_PASSWORD";

/// The password from the environment, or typed at the terminal, which doesn't show it.
pub(super) fn read_password() -> Option<String> {
    if let Ok(password) = std::env::var(VARIABLE) {
        return Some(password);
    }
    let stdin = io::stdin();
    let hidden = Hidden::hide(&stdin);
    io::stderr().write_all(b"Password: ").ok()?;
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    drop(hidden);
    // What was typed ended its own line, unseen.
    let _ = io::stderr().write_all(b"\n");
    read.ok()?;
    Some(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// A terminal that doesn't show what is typed, until this is dropped.
struct Hidden<'a> {
    stdin: &'a io::Stdin,
    shown: Termios,
}

impl<'a> Hidden<'a> {
    /// None where standard input is no terminal.
    fn hide(stdin: &'a io::Stdin) -> Option<Self> {
        let shown = tcgetattr(stdin).ok()?;
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(stdin, OptionalActions::Flush, &hidden).ok()?;
        Some(Self { stdin, shown })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // A terminal that can't be set back has gone.
        let _ = tcsetattr(self.stdin, OptionalActions::Flush, &self.shown);
    }
}
