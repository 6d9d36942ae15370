//! A network namespace of this machine as a host.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::local::start;
use super::{Channel, Executable, Host, HostDescription, HostError, HostErrorKind, LastWords};

/// A network namespace of this machine, as `ip netns add` makes them.
#[derive(Clone, Debug)]
pub struct NetnsHost {
    name: String,
    executable: Executable,
}

impl NetnsHost {
    /// The namespace of this name, with the agent of this executable.
    pub fn new(name: &str, executable: Executable) -> Self {
        Self { name: name.to_owned(), executable }
    }

    fn file(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }
}

impl Host for NetnsHost {
    /// `nsenter` enters the network namespace alone; `ip netns exec` would also mount another /sys.
    fn open(&self) -> Result<Channel, HostError> {
        if self.name.is_empty() || self.name.contains('/') || !self.file().exists() {
            let kind = HostErrorKind::NoNamespace { name: self.name.clone() };
            return Err(HostError::new(kind, ""));
        }
        let mut net = std::ffi::OsString::from("--net=");
        net.push(self.file());
        start(
            Command::new("nsenter").arg(net).arg("--").arg(&self.executable.path).arg("agent"),
            "nsenter",
        )
    }

    fn mend(&self, last: &LastWords, _ends: &AtomicBool) -> Result<(), HostError> {
        if last.stderr.contains("Operation not permitted")
            || last.stderr.contains("Permission denied")
        {
            return Err(HostError::new(HostErrorKind::NamespaceDenied, &last.stderr));
        }
        Err(HostError::from_last_words(last))
    }

    fn describe(&self) -> HostDescription {
        HostDescription { transport: "netns", address: self.name.clone() }
    }

    fn accepts(&self, sha256: &str) -> bool {
        self.executable.sha256 == sha256
    }
}
