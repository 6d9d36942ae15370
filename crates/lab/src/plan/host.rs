//! The machines of a plan.

use serde::{Deserialize, Serialize};

/// How a host is reached, and where its measurements go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "lowercase")]
pub enum HostSpec {
    /// The machine that the controller runs on.
    Local {
        /// The address that other hosts measure against; absent: 127.0.0.1, for pairs within the host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data_address: Option<String>,
    },
    /// A network namespace of that machine.
    Netns {
        /// Its name, as `ip netns` lists it.
        namespace: String,
        /// The address that other hosts measure against.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data_address: Option<String>,
    },
    /// A machine reached by ssh.
    Ssh(SshHost),
    /// A pod of a cluster. No host can be opened this way yet.
    Kubernetes(KubernetesHost),
}

/// A machine reached by ssh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshHost {
    /// Whatever ssh takes: a name of its configuration, an address, USER@HOST.
    pub address: String,
    /// The address that other hosts measure against; absent: `address` without its user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_address: Option<String>,
    /// Further words for ssh.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_options: Vec<String>,
    /// Whether the agent runs as root, by `sudo -n`.
    #[serde(default)]
    pub sudo: bool,
    /// Where the program is put if it is missing; absent: `~/.cache/linerate/bin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_dir: Option<String>,
}

/// A pod of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubernetesHost {
    /// The cluster's namespace.
    pub namespace: String,
    /// The node that the pod runs on; absent: whichever the scheduler chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl HostSpec {
    /// The names of all transports.
    pub const TRANSPORTS: [&'static str; 4] = ["local", "netns", "ssh", "kubernetes"];

    /// The name of its transport.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Local { .. } => "local",
            Self::Netns { .. } => "netns",
            Self::Ssh(_) => "ssh",
            Self::Kubernetes(_) => "kubernetes",
        }
    }

    /// The address that other hosts measure against, where one is known.
    pub fn data_address(&self) -> Option<&str> {
        match self {
            Self::Local { data_address } | Self::Netns { data_address, .. } => {
                data_address.as_deref()
            }
            Self::Ssh(ssh) => ssh.data_address.as_deref().or_else(|| {
                let address = ssh.address.as_str();
                Some(address.rsplit_once('@').map_or(address, |(_, host)| host))
            }),
            Self::Kubernetes(_) => None,
        }
    }

    /// What is one for two names of one machine.
    pub fn identity(&self) -> String {
        match self {
            Self::Local { .. } => "local".to_owned(),
            Self::Netns { namespace, .. } => format!("netns {namespace}"),
            Self::Ssh(ssh) => format!("ssh {}", ssh.address),
            Self::Kubernetes(pod) => {
                format!("kubernetes {} {}", pod.namespace, pod.node.as_deref().unwrap_or_default())
            }
        }
    }
}
