//! A host reached by the system's `ssh`, which is the user's configuration: jump hosts, agents, hardware keys.
//!
//! One session is enough where linerate's binary is there already. Else a second one takes the binary, and a
//! third one runs it.

mod put;
mod script;
mod texts;

use std::ffi::OsStr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use self::script::{MISSING, check_directory, render_run};
use self::texts::explain;
use super::local::start;
use super::{
    Binaries, Channel, Executable, Host, HostDescription, HostError, HostErrorKind, LastWords,
};
use crate::plan::SshHost;

/// Options that the channel needs. Those of the plan stand before them, and ssh takes the first of each name.
const OPTIONS: [&str; 6] = [
    // A question would wait for ever.
    "BatchMode=yes",
    "ConnectTimeout=15",
    // ssh's own end after the network was cut; the lease decides earlier.
    "ServerAliveInterval=2",
    // Commands and ports of the user's configuration are for terminals.
    "RemoteCommand=none",
    "ClearAllForwardings=yes",
    "EscapeChar=none",
];

/// A host reached by ssh.
#[derive(Debug)]
pub struct RemoteHost {
    spec: SshHost,
    binaries: Arc<Binaries>,
    was_put: AtomicBool,
}

impl RemoteHost {
    /// The host of a plan, which gets the binary of its architecture.
    ///
    /// # Errors
    /// An address or a directory that can't be given to a shell, a sentence.
    pub fn new(spec: SshHost, binaries: Arc<Binaries>) -> Result<Self, String> {
        if spec.address.is_empty() || spec.address.starts_with('-') {
            return Err(format!("'{}' is no address for ssh", spec.address));
        }
        if let Some(directory) = &spec.binary_dir {
            check_directory(directory)?;
        }
        Ok(Self { spec, binaries, was_put: AtomicBool::new(false) })
    }

    /// ssh that runs a command line of the host's shell.
    fn ssh(&self, script: &str) -> Command {
        let mut command = Command::new("ssh");
        command.arg("-T").args(&self.spec.ssh_options);
        command.args(OPTIONS.iter().flat_map(|option| [OsStr::new("-o"), OsStr::new(option)]));
        // Texts are compared.
        command.env("LC_ALL", "C");
        command.arg("--").arg(&self.spec.address).arg(script);
        command
    }

    /// The binary for a host that calls itself so (`uname -s`, `uname -m`).
    fn binary_for(&self, uname: &str) -> Result<&Executable, HostErrorKind> {
        let uname = uname.trim();
        let Some(arch) = uname.strip_prefix("Linux ") else {
            return Err(HostErrorKind::NotLinux { uname: uname.to_owned() });
        };
        let binary = self.binaries.iter().find(|binary| binary.arch == arch);
        binary.ok_or_else(|| HostErrorKind::Architecture { arch: arch.to_owned() })
    }
}

impl Host for RemoteHost {
    fn open(&self) -> Result<Channel, HostError> {
        start(&mut self.ssh(&render_run(&self.spec, &self.binaries)), "ssh")
    }

    fn mend(&self, last: &LastWords, ends: &AtomicBool) -> Result<(), HostError> {
        let Some(uname) = last.stdout.lines().find_map(|line| line.strip_prefix(MISSING)) else {
            return Err(explain(last));
        };
        if self.was_put.swap(true, Ordering::Relaxed) {
            // It is there and can't be executed.
            return Err(HostError::new(HostErrorKind::NotRunnable, &last.stderr));
        }
        let binary = self.binary_for(uname).map_err(|kind| HostError::new(kind, ""))?;
        put::put(self, binary, ends)
    }

    fn describe(&self) -> HostDescription {
        HostDescription { transport: "ssh", address: self.spec.address.clone() }
    }

    fn accepts(&self, sha256: &str) -> bool {
        self.binaries.iter().any(|binary| binary.sha256 == sha256)
    }
}

#[cfg(test)]
mod tests;
