//! A channel to an agent: lines in, lines out.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::process::{Pid, Signal, kill_process_group};

/// A channel to an agent that begins. Whatever the way to the host, it has two ends that are files.
#[derive(Debug)]
pub struct Channel {
    /// What is written here the agent reads.
    pub to_agent: OwnedFd,
    /// What the agent writes is read here, after what login files print.
    pub from_agent: OwnedFd,
    /// What the program that reaches the host prints on standard error.
    pub errors: Option<OwnedFd>,
    /// The program that reaches the host, if there is one.
    pub child: Option<Child>,
}

impl Channel {
    /// Starts a program whose standard input and output are the channel, in a process group of its own: a Ctrl-C
    /// in the controller's terminal is not for the program.
    ///
    /// # Errors
    /// Those of starting a program.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a pipe is missing"));
        };
        let errors = child.stderr.take().map(OwnedFd::from);
        Ok(Self { to_agent: stdin.into(), from_agent: stdout.into(), errors, child: Some(child) })
    }
}

/// Ends the program that carries a channel, once its input is closed; its exit code.
pub(super) fn end(mut child: Child, patience: Duration) -> Option<i32> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code(),
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
            _ => break,
        }
    }
    // The program is killed with the rest of its group, as a ProxyCommand of ssh.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _gone = kill_process_group(group, Signal::KILL);
    }
    child.wait().ok().and_then(|status| status.code())
}
