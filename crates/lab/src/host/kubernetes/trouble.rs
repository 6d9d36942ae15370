//! What goes wrong with a cluster, in the cluster's own words.

use std::fmt;

/// What goes wrong with a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no cluster that could be asked: kubeconfig, certificates, a program for tokens.
    Config,
    /// The API server can't be reached.
    Unreachable,
    /// The API server doesn't know who we are.
    Unauthorized,
    /// The role lacks a verb.
    Forbidden,
    /// Admission refuses the object: Pod Security, a quota, a webhook.
    NotAdmitted,
    /// The API server refuses a request for another reason.
    Refused,
    /// No node takes the pod.
    Unschedulable,
    /// The image can't be had.
    Image,
    /// The pod could not be started for another reason.
    NotStarted,
    /// The pod has ended.
    Ended,
    /// The pod did not run in time.
    Late,
    /// A Service was given no address in time.
    NoAddress,
}

impl Trouble {
    /// The sentence before the cluster's own words.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Config => "the cluster can't be asked",
            Self::Unreachable => "the cluster's API server does not answer",
            Self::Unauthorized => "the cluster does not accept the credentials",
            Self::Forbidden => "the cluster forbids it",
            Self::NotAdmitted => "the cluster does not admit it",
            Self::Refused => "the cluster refuses the request",
            Self::Unschedulable => "no node takes the pod",
            Self::Image => "the pod's image can't be had",
            Self::NotStarted => "the pod can't be started",
            Self::Ended => "the pod has ended",
            Self::Late => "the pod did not run in time",
            Self::NoAddress => "the Service was given no address",
        }
    }

    /// What to do about it; empty where nothing is known.
    pub(crate) fn way_out(self) -> &'static str {
        match self {
            Self::Config => "`linerate kubernetes check` tries what the kubeconfig says",
            Self::Unreachable => "check `server` in the kubeconfig, and the way to it",
            Self::Unauthorized => "log in anew, or set `context` of the host",
            Self::Forbidden => {
                "`linerate kubernetes manifest` prints the role that is needed, and `linerate kubernetes \
                 check` shows which verbs are missing"
            }
            Self::NotAdmitted => {
                "change what the host asks for, or take a namespace that allows it: `host_network` and \
                 host-port need one without Pod Security restricted"
            }
            Self::Refused => "",
            Self::Unschedulable => {
                "change `node`, `tolerations` or `resources` of the host, or lower scale_up"
            }
            Self::Image => {
                "`linerate image` makes one: push it, set `image` of the host, and `image_pull_secrets` \
                 for a private registry"
            }
            Self::NotStarted | Self::Ended => "",
            Self::Late => "raise `start_timeout` of the host",
            Self::NoAddress => {
                "set `via` of the host to node-port where the cluster has no load balancer, or raise \
                 `start_timeout` where it is slow"
            }
        }
    }
}

/// Trouble with what was said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterError {
    /// What.
    pub trouble: Trouble,
    /// The cluster's words.
    pub said: String,
}

impl ClusterError {
    /// Trouble about which this was said.
    pub(crate) fn new(trouble: Trouble, said: impl Into<String>) -> Self {
        // A sentence goes on behind the cluster's words.
        let said: String = said.into();
        Self { trouble, said: said.trim_end_matches('.').to_owned() }
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.trouble.sentence())?;
        if !self.said.is_empty() {
            write!(f, ": {}", self.said)?;
        }
        match self.trouble.way_out() {
            "" => Ok(()),
            way_out => write!(f, "; {way_out}"),
        }
    }
}

impl std::error::Error for ClusterError {}
