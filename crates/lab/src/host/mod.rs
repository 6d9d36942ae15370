//! Hosts: ways to start the agent with a standard input and a standard output, and the session that
//! holds the channels to all of them.

mod channel;
mod error;
mod gate;
mod lines;
mod local;
mod netns;
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
pub use session::{
    ChildEvent, ChildEventKind, HostClock, HostEvent, HostEventKind, HostId, OpenOptions, Session,
};

pub(crate) use lines::{Lines, Taken};

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

    /// SHA-256 that the agent's executable must have, hexadecimal, or none for any.
    fn expected_sha256(&self) -> Option<String> {
        None
    }
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
    /// The architecture it was built for, as Rust and `uname -m` name it: `x86_64`, `aarch64`.
    pub arch: String,
}

/// A host of a session with the name that the plan gives it.
#[derive(Clone, Debug)]
pub struct NamedHost {
    /// The name.
    pub name: String,
    /// The way to it.
    pub host: Arc<dyn Host>,
}
