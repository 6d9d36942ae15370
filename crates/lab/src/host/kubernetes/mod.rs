//! Pods of a cluster as hosts: an Indexed Job for each role and kind of pod, the agent as the only container, attach
//! as its channel.
//!
//! The pods of a run are made when the first of them is opened, and removed when the last is let go. Where this
//! program can't remove them any more they go by themselves: the agent ends with its attach or its lease, the
//! cluster removes a finished Job, and Services go with the Job that owns them.

mod access;
mod attach;
mod carrier;
pub mod image;
mod kubeconfig;
mod look;
mod objects;
mod pods;
mod rest;
pub mod roles;
mod service;
#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod stand_in_tls;
#[cfg(test)]
mod tests;
mod trouble;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

pub use access::find;
pub use kubeconfig::{Exec, Kubeconfig, Source, User, parse};
pub use rest::Client;
pub use trouble::{ClusterError, Trouble};

use self::carrier::{Carrier, PodState};
use self::objects::Group;
use self::pods::{Place, Pods, Removal};
use super::{Channel, Host, HostDescription, HostError, HostErrorKind, LastWords, NamedHost, Way};
use crate::agent::Moment;
use crate::plan::{KubernetesHost, Via};

/// A pod that a plan asks for.
#[derive(Clone, Debug)]
pub struct WantedPod {
    /// The host's name in the plan.
    pub name: String,
    /// `client` or `server`.
    pub role: String,
    /// What the plan says of it.
    pub host: KubernetesHost,
    /// The ports of servers in the pod.
    pub ports: Vec<u16>,
}

/// A pod as a host.
#[derive(Debug)]
pub struct PodHost {
    pods: Arc<Removal>,
    place: Place,
    name: String,
    known: Arc<Mutex<PodState>>,
}

/// The hosts of a run's pods, in the order in which they were wanted. `run` is the run's id, after which
/// their objects are labelled; their Jobs are ended after so many seconds, whatever happens. What an earlier
/// opening of the same run has left in the cluster is not met: each has names of its own.
///
/// # Errors
/// The cluster is not known: no kubeconfig, no such context.
pub fn pods(
    run: &str,
    wanted: &[WantedPod],
    deadline_s: u64,
) -> Result<Vec<NamedHost>, ClusterError> {
    let run = Opening { run: run.to_owned(), number: opening_number(Moment::now()) };
    pods_of(&run, wanted, deadline_s)
}

/// A run whose pods are made; one that goes on makes them anew.
struct Opening {
    run: String,
    number: String,
}

/// Seven letters and digits that repeat after 2.5 years.
fn opening_number(at: Moment) -> String {
    let mut ms = u64::try_from(at.utc_ns / 1_000_000).unwrap_or(0);
    let digits = std::iter::repeat_with(|| {
        let digit = char::from_digit((ms % 36) as u32, 36);
        ms /= 36;
        digit.unwrap_or_default()
    });
    digits.take(7).collect()
}

fn pods_of(
    run: &Opening,
    wanted: &[WantedPod],
    deadline_s: u64,
) -> Result<Vec<NamedHost>, ClusterError> {
    // The pods of one namespace are made and removed together.
    let mut namespaces: BTreeMap<[&Option<String>; 3], Vec<usize>> = BTreeMap::new();
    for (place, pod) in wanted.iter().enumerate() {
        let KubernetesHost { kubeconfig, context, namespace, .. } = &pod.host;
        namespaces.entry([kubeconfig, context, namespace]).or_default().push(place);
    }
    let mut hosts: Vec<(usize, NamedHost)> = Vec::with_capacity(wanted.len());
    for members in namespaces.values() {
        let mut groups = Vec::new();
        let mut places = Vec::new();
        for (member, pod) in members.iter().filter_map(|&m| Some((m, wanted.get(m)?))) {
            places.push((member, pod, place_of(run, pod, deadline_s, &mut groups)));
        }
        let Some((_, first, _)) = places.first() else { continue };
        let pods = Arc::new(Removal(Arc::new(Pods::new(&first.host, groups)?)));
        for (member, pod, place) in places {
            let name = pod.name.clone();
            let known = Arc::default();
            let host = PodHost { pods: Arc::clone(&pods), place, name: name.clone(), known };
            hosts.push((member, NamedHost { name, host: Arc::new(host) }));
        }
    }
    hosts.sort_by_key(|(member, _)| *member);
    Ok(hosts.into_iter().map(|(_, host)| host).collect())
}

/// Finds the group that a pod belongs to, or begins one.
fn place_of(run: &Opening, pod: &WantedPod, deadline_s: u64, groups: &mut Vec<Group>) -> Place {
    let host_ports = match pod.host.via {
        Some(Via::HostPort) => pod.ports.clone(),
        _ => Vec::new(),
    };
    // Two pods can't have one port of a node, so those with ports are alone in their Job.
    let alike = groups.iter_mut().enumerate().find(|(_, group)| {
        group.role == pod.role && group.host == pod.host && host_ports.is_empty()
    });
    if let Some((group, found)) = alike {
        found.pods += 1;
        return Place { group, index: found.pods - 1 };
    }
    let group = groups.len();
    groups.push(Group {
        name: job_name(run, &pod.role, group),
        run: run.run.clone(),
        role: pod.role.clone(),
        pods: 1,
        host: pod.host.clone(),
        host_ports,
        deadline_s,
    });
    Place { group, index: 0 }
}

/// A DNS label: `linerate-RUN-OPENING-ROLE-NUMBER` with the beginning of the run's id.
fn job_name(opening: &Opening, role: &str, number: usize) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric();
    let run: String = opening.run.chars().filter(plain).take(12).collect();
    format!("linerate-{}-{}-{role}-{number}", run.to_ascii_lowercase(), opening.number)
}

impl PodHost {
    fn known(&self) -> std::sync::MutexGuard<'_, PodState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for PodHost {
    /// The channel is there at once; a thread starts the pod and attaches to it, and is gone when the channel is.
    fn open(&self) -> Result<Channel, HostError> {
        let this_machine =
            |error: io::Error| HostError::new(HostErrorKind::ThisMachine, &error.to_string());
        let (for_agent, to_agent) = io::pipe().map_err(this_machine)?;
        let (from_agent, of_agent) = io::pipe().map_err(this_machine)?;
        let (errors, of_errors) = io::pipe().map_err(this_machine)?;
        let carrier = Carrier {
            pods: Arc::clone(&self.pods.0),
            place: self.place,
            known: Arc::clone(&self.known),
            to_agent: for_agent,
            from_agent: of_agent,
            errors: of_errors,
        };
        thread::Builder::new()
            .name(format!("attach {}", self.name))
            .spawn(move || carrier.run())
            .map_err(this_machine)?;
        Ok(Channel {
            to_agent: to_agent.into(),
            from_agent: from_agent.into(),
            errors: Some(errors.into()),
            child: None,
        })
    }

    fn mend(&self, last: &LastWords, _ends: &AtomicBool) -> Result<(), HostError> {
        let known = self.known();
        let Some(error) = &known.trouble else {
            return Err(match known.said.as_str() {
                "" => HostError::from_last_words(last),
                said => HostError::new(HostErrorKind::Cluster(Trouble::Late), said),
            });
        };
        Err(HostError::new(HostErrorKind::Cluster(error.trouble), &error.said))
    }

    fn describe(&self) -> HostDescription {
        let known = self.known();
        let pod = match (&known.running, self.pods.0.group(self.place)) {
            (Some(running), _) => running.pod.clone(),
            (None, Some(group)) => format!("{}-{}", group.name, self.place.index),
            (None, None) => String::new(),
        };
        let address = format!("{}/{pod}", self.pods.0.namespace);
        HostDescription { transport: "kubernetes", address }
    }

    /// The image says which linerate it is; agents agree on a version of their protocol.
    fn accepts(&self, _sha256: &str) -> bool {
        true
    }

    /// Clients in the cluster reach a pod by its address, those outside by a port of its node, if the plan
    /// says nothing else.
    fn reach(&self, port: u16, client: &HostDescription) -> Result<Way, HostError> {
        let Some(running) = self.known().running.clone() else { return Ok(Way::AsPlanned) };
        let is_inside = client.transport == "kubernetes";
        let host = self.pods.0.group(self.place).map(|group| &group.host);
        let usual = match (is_inside, host.is_some_and(|host| host.host_network)) {
            (true, _) => Via::Pod,
            (false, true) => Via::HostPort,
            (false, false) => Via::NodePort,
        };
        let via = host.and_then(|host| host.via).unwrap_or(usual);
        let way = self.pods.0.reach(self.place, &running, port, via);
        way.map_err(|error| HostError::new(HostErrorKind::Cluster(error.trouble), &error.said))
    }

    fn reminder(&self) -> Option<String> {
        self.known().reminder.take()
    }
}
