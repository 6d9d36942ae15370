//! Hosts: ways to start the agent with a standard input and a standard output, and the session that
//! holds the channels to all of them.

mod channel;
mod error;
mod gate;
mod lines;
mod local;
mod netns;
mod remote;
mod session;
mod thread;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use channel::Channel;
pub use error::{HostError, HostErrorKind, LastWords};
pub use local::LocalHost;
pub use netns::NetnsHost;
pub use remote::RemoteHost;
pub use session::{
    ChildEvent, ChildEventKind, HostClock, HostEvent, HostEventKind, HostId, OpenOptions, Session,
};

pub(crate) use lines::{Lines, Taken};

use crate::plan::HostSpec;

/// Where an agent can be started.
pub trait Host: Send + Sync + fmt::Debug {
    /// Begins to start the agent. The agent's hello, or what is printed in its place, comes over the
    /// channel.
    ///
    /// # Errors
    /// The program that reaches the host (`ssh`, `nsenter`) could not be started.
    fn open(&self) -> Result<Channel, HostError>;

    /// Looks at what a channel gave before it ended without a hello, and does what lets the next one
    /// succeed, as putting linerate's binary there. Gives up when `ends` is set.
    ///
    /// # Errors
    /// Why the agent can't be started on this host, with the way out. The default has nothing to mend.
    fn mend(&self, last: &LastWords, _ends: &AtomicBool) -> Result<(), HostError> {
        Err(HostError::from_last_words(last))
    }

    /// How the host is reached, for tables and sentences.
    fn describe(&self) -> HostDescription;

    /// Whether an agent whose executable has this SHA-256 (hexadecimal) is the one that was meant.
    fn accepts(&self, sha256: &str) -> bool;
}

/// How a host is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDescription {
    /// `local`, `netns` or `ssh`.
    pub transport: &'static str,
    /// The address, or the name of the namespace; empty for this machine.
    pub address: String,
}

impl fmt::Display for HostDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address.as_str() {
            "" => write!(f, "{}", self.transport),
            address => write!(f, "{} {address}", self.transport),
        }
    }
}

/// The executable whose agent is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Where it is on this machine.
    pub path: PathBuf,
    /// SHA-256 of its content, 64 hexadecimal digits.
    pub sha256: String,
    /// The architecture that it was built for, as `uname -m` names it: `x86_64`, `aarch64`.
    pub arch: String,
}

/// The executables that a controller can put on hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// The controller's own.
    pub own: Executable,
    /// Those of other architectures.
    pub others: Vec<Executable>,
}

impl Binaries {
    /// All of them, the controller's own first.
    pub fn iter(&self) -> impl Iterator<Item = &Executable> {
        std::iter::once(&self.own).chain(&self.others)
    }
}

/// A host of a session with the name that the plan gives it.
#[derive(Clone, Debug)]
pub struct NamedHost {
    /// The name.
    pub name: String,
    /// The way to it.
    pub host: Arc<dyn Host>,
}

impl NamedHost {
    /// The host of a plan.
    ///
    /// # Errors
    /// A transport that no host can be opened by, an address or a directory that can't be used: a sentence.
    pub fn of_plan(name: &str, spec: &HostSpec, binaries: &Arc<Binaries>) -> Result<Self, String> {
        let own = || binaries.own.clone();
        let host: Arc<dyn Host> = match spec {
            HostSpec::Local { .. } => Arc::new(LocalHost::new(own())),
            HostSpec::Netns { namespace, .. } => Arc::new(NetnsHost::new(namespace, own())),
            HostSpec::Ssh(ssh) => {
                let remote = RemoteHost::new(ssh.clone(), Arc::clone(binaries));
                Arc::new(remote.map_err(|why| format!("host {name}: {why}"))?)
            }
            HostSpec::Kubernetes(_) => {
                return Err(format!(
                    "host {name}: pods of Kubernetes can't be opened yet; use local, netns or ssh"
                ));
            }
        };
        Ok(Self { name: name.to_owned(), host })
    }
}
