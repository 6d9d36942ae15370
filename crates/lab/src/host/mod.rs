//! Hosts: ways to start the agent with a standard input and a standard output, and the session that
//! holds the channels to all of them.

mod channel;
mod check;
mod error;
mod gate;
pub mod kubernetes;
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
pub use check::{FoundHost, HostReport, check, hosts_of_text};
pub use error::{HostError, HostErrorKind, LastWords};
pub use local::LocalHost;
pub use netns::NetnsHost;
pub use remote::RemoteHost;
pub use session::{HostClock, HostEvent, HostEventKind, HostId, OpenOptions, Session};

pub use crate::agent::{ChildEvent, ChildEventKind};

pub(crate) use lines::{Lines, Taken};

use self::thread::MOST_OPENINGS;

use self::kubernetes::WantedPod;
use crate::agent::Moment;
use crate::plan::{HostSpec, Plan};

/// A pod that is opened without a plan is ended after so long, seconds.
const ALONE_S: u64 = 3600;

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

    /// Where a client on another host reaches a server on this one that listens on this port. Asked once the host is
    /// open, before a client starts, and again while the way is awaited. Such a wait has a limit.
    ///
    /// # Errors
    /// The way there could not be made.
    fn reach(&self, _port: u16, _client: &HostDescription) -> Result<Way, HostError> {
        Ok(Way::AsPlanned)
    }

    /// A new sentence about what delays the agent's start, for the user to read.
    fn reminder(&self) -> Option<String> {
        None
    }

    /// Whether an agent whose executable has this SHA-256 (hexadecimal) is the one that was meant.
    fn accepts(&self, sha256: &str) -> bool;
}

/// The way of a client to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the address of the plan.
    AsPlanned,
    /// To this address or name, and this port.
    At(String, u16),
    /// There is none yet; a new sentence about the wait, where there is one.
    Awaited(Option<String>),
}

/// How a host is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDescription {
    /// `local`, `netns`, `ssh` or `kubernetes`.
    pub transport: &'static str,
    /// The address, the name of the network namespace, or the cluster's namespace and the pod's name; empty for this
    /// machine.
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
            HostSpec::Kubernetes(pod) => {
                // Pods of a run are made together; this one is a run of its own.
                let run = format!("{:x}", Moment::now().utc_ns);
                let wanted = WantedPod {
                    name: name.to_owned(),
                    role: "client".to_owned(),
                    host: (**pod).clone(),
                    ports: Vec::new(),
                };
                let pods = kubernetes::pods(&run, &[wanted], ALONE_S);
                let pods = pods.map_err(|error| format!("host {name}: {error}"))?;
                let [pod] = <[Self; 1]>::try_from(pods).map_err(|_| format!("host {name}"))?;
                return Ok(pod);
            }
        };
        Ok(Self { name: name.to_owned(), host })
    }

    /// The hosts that the pairs of a plan use, in the order of their names. Pods carry the run's name. They are
    /// ended so many seconds after the longest that all hosts may take to open and all cells to be measured, whatever
    /// happens.
    ///
    /// # Errors
    /// As [`Self::of_plan`].
    pub fn all_of_plan(
        plan: &Plan,
        run: &str,
        spare_s: u64,
        binaries: &Arc<Binaries>,
    ) -> Result<Vec<Self>, String> {
        let is_used = |name: &String| {
            plan.pairs.iter().any(|pair| pair.client == *name || pair.server == *name)
        };
        let mut all = Vec::with_capacity(plan.hosts.len());
        for (name, spec) in plan.hosts.iter().filter(|(name, _)| is_used(name)) {
            if !matches!(spec, HostSpec::Kubernetes(_)) {
                all.push(Self::of_plan(name, spec, binaries)?);
            }
        }
        // A pod may wait for the last of the others, and that may take several openings.
        let start = plan.pods().iter().map(|(_, _, pod, _)| pod.start_timeout()).max();
        let opening = (start.unwrap_or_default() + OpenOptions::default().hello) * MOST_OPENINGS;
        let deadline_s = spare_s
            .saturating_add(opening.as_secs())
            .saturating_add(crate::schedule::longest_s(plan))
            .min(i32::MAX as u64);
        let wanted: Vec<WantedPod> = plan
            .pods()
            .into_iter()
            .map(|(name, role, host, ports)| WantedPod { name, role, host, ports })
            .collect();
        let pods = kubernetes::pods(run, &wanted, deadline_s);
        all.extend(pods.map_err(|error| format!("hosts: {error}"))?);
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}
