//! This machine as a host.

use std::process::Command;

use super::{Channel, Executable, Host, HostDescription, HostError, HostErrorKind};

/// This machine.
#[derive(Clone, Debug)]
pub struct LocalHost {
    executable: Executable,
}

impl LocalHost {
    /// This machine, with the agent of this executable.
    pub fn new(executable: Executable) -> Self {
        Self { executable }
    }
}

impl Host for LocalHost {
    fn open(&self) -> Result<Channel, HostError> {
        start(Command::new(&self.executable.path).arg("agent"), "linerate")
    }

    fn describe(&self) -> HostDescription {
        HostDescription { transport: "local", address: String::new() }
    }

    fn accepts(&self, sha256: &str) -> bool {
        self.executable.sha256 == sha256
    }
}

/// Starts a program that carries a channel.
pub(super) fn start(command: &mut Command, program: &str) -> Result<Channel, HostError> {
    Channel::start(command).map_err(|error| {
        let kind = HostErrorKind::NoProgram { program: program.to_owned() };
        HostError::new(kind, &error.to_string())
    })
}
