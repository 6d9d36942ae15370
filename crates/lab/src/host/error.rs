//! Why a host can't be used, with the way out.

use std::fmt;

use super::kubernetes::Trouble;
use crate::agent::{Failure, one_line};

/// Why a host can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// What it is.
    pub kind: HostErrorKind,
    /// The last that was printed about it, on one line; empty where nothing was.
    pub said: String,
}

/// What makes a host unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostErrorKind {
    /// A program of this machine could not be started.
    NoProgram {
        /// Which: `ssh`, `nsenter`, `linerate`.
        program: String,
    },
    /// There is no network namespace of this name.
    NoNamespace {
        /// The name.
        name: String,
    },
    /// The namespace may not be entered.
    NamespaceDenied,
    /// The name has no address.
    Unresolved,
    /// Nothing listens on the host's port.
    Refused,
    /// No packet came back.
    Unreachable,
    /// The host accepted none of the user's keys.
    PermissionDenied,
    /// The host's key is unknown, or not the one that is known.
    HostKey,
    /// ssh failed for another reason.
    Ssh,
    /// Another operating system.
    NotLinux {
        /// What `uname -sm` printed.
        uname: String,
    },
    /// Another architecture, for which there is no binary.
    Architecture {
        /// What `uname -m` printed.
        arch: String,
    },
    /// The user has no home directory, or one that can't be written.
    NoHome,
    /// The file system for the binary is full.
    DiskFull,
    /// The binary could not be put there for another reason.
    NotPut,
    /// The binary is there and can't be run: a file system without executables, or libraries are missing.
    NotRunnable,
    /// sudo asks for a password, or refuses.
    Sudo,
    /// Another program than the one that was meant answered.
    Digest {
        /// SHA-256 of the agent's executable.
        found: String,
    },
    /// The cluster does not give the pod.
    Cluster(Trouble),
    /// The channel failed.
    Channel(Failure),
    /// This machine refused something that the channel needs: a thread, a pipe.
    ThisMachine,
}

/// The last words of a channel that ended without a hello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastWords {
    /// What came before the hello: what login files and the shell printed.
    pub stdout: String,
    /// The end of what was printed on standard error.
    pub stderr: String,
    /// The exit code of the program that reaches the host, if it has ended.
    pub code: Option<i32>,
    /// Whether the channel ended; else the hello did not come in time.
    pub ended: bool,
}

impl HostError {
    /// An error of this kind about which something was printed.
    pub fn new(kind: HostErrorKind, said: &str) -> Self {
        Self { kind, said: one_line(said) }
    }

    /// What is known without looking at how the host is reached.
    pub fn from_last_words(last: &LastWords) -> Self {
        let noise = last.stdout.clone();
        Self::new(
            HostErrorKind::Channel(Failure::NoHello { ended: last.ended, noise }),
            &last.stderr,
        )
    }

    /// What to do about it, a sentence without its full stop; empty where nothing is known.
    pub fn way_out(&self) -> String {
        match &self.kind {
            HostErrorKind::NoProgram { program } => {
                format!("install {program}, or add its directory to PATH")
            }
            HostErrorKind::NoNamespace { name } => {
                format!("`ip netns list` has the names; `ip netns add {name}` makes it")
            }
            HostErrorKind::NamespaceDenied => {
                "run the controller as root, which namespaces need".to_owned()
            }
            HostErrorKind::Unresolved => {
                "correct `address` in the plan, or name the host in ~/.ssh/config".to_owned()
            }
            HostErrorKind::Refused => {
                "start sshd there, or set the port in ~/.ssh/config or by `ssh_options`".to_owned()
            }
            HostErrorKind::Unreachable => {
                "check the address, the route and the firewalls between".to_owned()
            }
            HostErrorKind::PermissionDenied => {
                "`ssh -o BatchMode=yes HOST true` must succeed: load a key into the agent, add it to \
                 the host's authorized_keys, or set `User` in ~/.ssh/config"
                    .to_owned()
            }
            HostErrorKind::HostKey => {
                "connect once by `ssh HOST` and accept its key, or mend its line in known_hosts"
                    .to_owned()
            }
            HostErrorKind::Ssh => "`ssh -v -o BatchMode=yes HOST true` shows more".to_owned(),
            HostErrorKind::NotLinux { .. } => "choose a host that runs Linux".to_owned(),
            HostErrorKind::Architecture { arch } => {
                format!("give a binary that was built for it: --binary {arch}-linux=PATH")
            }
            HostErrorKind::NoHome | HostErrorKind::NotPut => {
                "set `binary_dir` of the host to a directory that can be written".to_owned()
            }
            HostErrorKind::DiskFull => {
                "free some 20 MB there, or set `binary_dir` of the host to another file system"
                    .to_owned()
            }
            HostErrorKind::NotRunnable => {
                "set `binary_dir` to a file system without `noexec`, and use a static build of \
                 linerate"
                    .to_owned()
            }
            HostErrorKind::Sudo => {
                "allow linerate in sudoers with NOPASSWD, or leave out `sudo`".to_owned()
            }
            HostErrorKind::Digest { .. } => {
                "remove the file there that is named by another digest than its own".to_owned()
            }
            HostErrorKind::Cluster(trouble) => trouble.way_out().to_owned(),
            HostErrorKind::Channel(Failure::Version { .. }) => String::new(),
            HostErrorKind::Channel(Failure::NoHello { .. }) => {
                "login files may ask for something, or end the shell".to_owned()
            }
            HostErrorKind::Channel(_) => String::new(),
            HostErrorKind::ThisMachine => "raise the limits of files and threads".to_owned(),
        }
    }

    fn sentence(&self) -> String {
        match &self.kind {
            HostErrorKind::NoProgram { program } => format!("{program} can't be started"),
            HostErrorKind::NoNamespace { name } => {
                format!("there is no network namespace '{name}'")
            }
            HostErrorKind::NamespaceDenied => "the network namespace may not be entered".to_owned(),
            HostErrorKind::Unresolved => "the address can't be resolved".to_owned(),
            HostErrorKind::Refused => "the connection was refused".to_owned(),
            HostErrorKind::Unreachable => "the host does not answer".to_owned(),
            HostErrorKind::PermissionDenied => "ssh's login was denied".to_owned(),
            HostErrorKind::HostKey => "the host's ssh key could not be verified".to_owned(),
            HostErrorKind::Ssh => "ssh failed".to_owned(),
            HostErrorKind::NotLinux { uname } => {
                format!("linerate's agent needs Linux, and the host is '{uname}'")
            }
            HostErrorKind::Architecture { arch } => {
                format!("this program has no binary for the host's architecture, {arch}")
            }
            HostErrorKind::NoHome => "linerate's binary has no place in the user's home".to_owned(),
            HostErrorKind::DiskFull => {
                "linerate's binary does not fit on the host's file system".to_owned()
            }
            HostErrorKind::NotPut => "linerate's binary can't be put on the host".to_owned(),
            HostErrorKind::NotRunnable => "linerate's binary does not run on the host".to_owned(),
            HostErrorKind::Sudo => "sudo does not start the agent without a password".to_owned(),
            HostErrorKind::Digest { found } => {
                format!("another binary of linerate answered (SHA-256 {found})")
            }
            HostErrorKind::Cluster(trouble) => trouble.sentence().to_owned(),
            HostErrorKind::Channel(failure) => failure.to_string(),
            HostErrorKind::ThisMachine => "this machine can't hold the channel".to_owned(),
        }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sentence())?;
        if !self.said.is_empty() {
            write!(f, ": {}", self.said)?;
        }
        match self.way_out().as_str() {
            "" => Ok(()),
            way_out => write!(f, "; {way_out}"),
        }
    }
}

impl std::error::Error for HostError {}
