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
    /// A pod of a cluster.
    Kubernetes(Box<KubernetesHost>),
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
#[serde(default, deny_unknown_fields)]
pub struct KubernetesHost {
    /// The kubeconfig file; absent: `KUBECONFIG`, `~/.kube/config`, or what a pod of the cluster has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
    /// The context of the kubeconfig; absent: the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The cluster's namespace; absent: the context's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The node that the pod runs on; absent: whichever the scheduler chooses, pods of one role spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The image with linerate as its entry point; absent: [`Self::IMAGE`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// How clients reach a server in the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The processors of a node, from which each pod's request is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_cpus: Option<u32>,
    /// Whether a pod gets whole processors for itself: limits equal to the requests.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub static_cpus: bool,
    /// Whether the pod uses the node's network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// How long the pod may take until it runs, and a load balancer until it has an address, seconds; absent: 120.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout_s: Option<u32>,
    /// Members of the pod and of its Service that are passed on as they are; [`Self::PASSED_ON`] has the names.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub pod: serde_json::Map<String, serde_json::Value>,
}

impl KubernetesHost {
    /// What `linerate image` calls an image, and what pods have where the plan names none.
    pub const IMAGE: &'static str = concat!("localhost/linerate:", env!("CARGO_PKG_VERSION"));

    /// The names that [`Self::pod`] may have, with Kubernetes' own for them.
    pub const PASSED_ON: [(&'static str, &'static str); 12] = [
        ("affinity", "affinity"),
        ("annotations", "annotations"),
        ("container_security_context", "securityContext"),
        ("image_pull_policy", "imagePullPolicy"),
        ("image_pull_secrets", "imagePullSecrets"),
        ("node_selector", "nodeSelector"),
        ("resources", "resources"),
        ("runtime_class", "runtimeClassName"),
        ("security_context", "securityContext"),
        ("service_annotations", "annotations"),
        ("tolerations", "tolerations"),
        ("volumes", "volumes"),
    ];
}

/// How clients reach a server in a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    /// By the pod's address: what clients in the cluster take if nothing is said.
    Pod,
    /// By the address of a Service in the cluster.
    ClusterIp,
    /// By a port of the node: what clients outside take if nothing is said.
    NodePort,
    /// By an address that the cluster's load balancer assigns.
    LoadBalancer,
    /// By the same port of the node, without a Service.
    HostPort,
}

impl Via {
    /// All ways by their names in a plan.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("pod", Self::Pod),
        ("cluster-ip", Self::ClusterIp),
        ("node-port", Self::NodePort),
        ("load-balancer", Self::LoadBalancer),
        ("host-port", Self::HostPort),
    ];

    /// The way of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, via)| via)
    }
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
                let namespace = pod.namespace.as_deref().unwrap_or_default();
                format!("kubernetes {namespace} {}", pod.node.as_deref().unwrap_or_default())
            }
        }
    }
}
