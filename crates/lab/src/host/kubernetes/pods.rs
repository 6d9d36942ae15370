//! The pods of a run: made when the first of them is opened, removed when the last is let go.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::look::{self, FAILED_MOUNT, Look, Running, items, text};
use super::objects::{Group, same_node_port, service_name};
use super::rest::Client;
use super::trouble::{ClusterError, Trouble};
use crate::plan::{KubernetesHost, Via};

/// A pod may be without a node for so long before it is given up.
const UNSCHEDULABLE: Duration = Duration::from_secs(8);

/// A volume that can't be mounted may be there within this time: kubelets try again after 0.5 s, 1 s, 2 s.
const UNMOUNTED: Duration = Duration::from_secs(5);

/// A pod's network that can't be made may be had within this time: kubelets try a pod again after 10 to 15 s.
const WITHOUT_NETWORK: Duration = Duration::from_secs(30);

/// A load balancer may take so long to give an address.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(60);

/// Nodes take so long to learn of a new Service.
const SERVICE_SETTLES: Duration = Duration::from_millis(1500);

/// A watch lasts so long, seconds, before it is asked for anew.
const WATCH_S: u32 = 2;

/// The pods of a run in one namespace of one cluster.
#[derive(Debug)]
pub(super) struct Pods {
    pub(super) client: Client,
    pub(super) namespace: String,
    groups: Vec<Group>,
    made: Mutex<Made>,
}

/// What was made in the cluster.
#[derive(Debug, Default)]
struct Made {
    /// The uid of each group's Job, or why there is none.
    jobs: Option<Result<Vec<String>, ClusterError>>,
    /// Where Services lead, by their names.
    services: BTreeMap<String, (String, u16)>,
}

/// A pod by its group and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: usize,
    pub(super) index: u32,
}

/// Who asks whether to go on, and is told how far it is.
pub(super) trait Watcher {
    /// Whether nobody waits any more.
    fn is_gone(&self) -> bool;
    /// The cluster's last word.
    fn tell(&self, said: &str);
}

impl Pods {
    /// Pods that are not made yet.
    pub(super) fn new(host: &KubernetesHost, groups: Vec<Group>) -> Result<Self, ClusterError> {
        let kubeconfig = host.kubeconfig.as_deref().map(Path::new);
        let config = super::access::find(kubeconfig, host.context.as_deref())
            .map_err(|said| ClusterError::new(Trouble::Config, said))?;
        let namespace = host.namespace.clone().unwrap_or_else(|| config.namespace.clone());
        let client = Client::new(config);
        Ok(Self { client, namespace, groups, made: Mutex::default() })
    }

    pub(super) fn group(&self, place: Place) -> Option<&Group> {
        self.groups.get(place.group)
    }

    fn jobs_path(&self) -> String {
        format!("/apis/batch/v1/namespaces/{}/jobs", self.namespace)
    }

    fn core_path(&self, kind: &str) -> String {
        format!("/api/v1/namespaces/{}/{kind}", self.namespace)
    }

    /// Makes all Jobs, once; their uids.
    fn make(&self) -> Result<Vec<String>, ClusterError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = &made.jobs {
            return jobs.clone();
        }
        let create = |group: &Group| {
            let job = self.client.create(&self.jobs_path(), &group.job())?;
            Ok(text(&job["metadata"]["uid"]))
        };
        let jobs: Result<Vec<String>, ClusterError> = self.groups.iter().map(create).collect();
        made.jobs = Some(jobs.clone());
        jobs
    }

    /// Makes the pods if need be, and waits until this one runs; none where the watcher has gone.
    pub(super) fn start(
        &self,
        place: Place,
        watcher: &dyn Watcher,
    ) -> Result<Option<Running>, ClusterError> {
        self.make()?;
        let Some(group) = self.group(place) else { return Ok(None) };
        let selector = format!(
            "labelSelector=batch.kubernetes.io/job-name={},\
             batch.kubernetes.io/job-completion-index={}",
            group.name, place.index
        );
        let path = format!("{}?{selector}", self.core_path("pods"));
        let patience = group.host.start_timeout();
        let began = Instant::now();
        let mut wait = Wait::default();
        while !watcher.is_gone() {
            let list = self.client.get(&path)?;
            match items(&list).first() {
                Some(pod) => wait.take(pod),
                None => self.look_for_refusal(group, began)?,
            }
            if let Some(pod) = wait.pod_on_its_way() {
                wait.take_hindrance(look::hindrance(&self.events("Pod", &pod)));
            }
            if let Some(end) = wait.end()? {
                return Ok(Some(end));
            }
            if began.elapsed() > patience {
                return Err(self.late(group, place, &wait));
            }
            watcher.tell(wait.said());
            let version = text(&list["metadata"]["resourceVersion"]);
            let watch = format!("{path}&resourceVersion={version}");
            let asked = Instant::now();
            self.client.watch(&watch, WATCH_S, |event| {
                wait.take(&event["object"]);
                !matches!(wait.look, Look::Waits(_)) || watcher.is_gone()
            })?;
            if let Some(end) = wait.end()? {
                return Ok(Some(end));
            }
            // A watch that ends at once, as one of a version too old does, must not make a busy loop.
            thread::sleep(Duration::from_millis(200).saturating_sub(asked.elapsed()));
        }
        Ok(None)
    }

    /// The Job makes its pods within a second, or says why not.
    fn look_for_refusal(&self, group: &Group, began: Instant) -> Result<(), ClusterError> {
        let events = self.events("Job", &group.name);
        if let Some(said) = look::why_no_pod(&events) {
            return Err(ClusterError::new(Trouble::NotAdmitted, said));
        }
        let job = format!("{}/{}", self.jobs_path(), group.name);
        if began.elapsed() > Duration::from_secs(3) && self.client.get(&job).is_err() {
            let said = format!("the Job {} was removed", group.name);
            return Err(ClusterError::new(Trouble::Ended, said));
        }
        Ok(())
    }

    fn late(&self, group: &Group, place: Place, wait: &Wait) -> ClusterError {
        let pod = wait.said().split(':').next().unwrap_or_default().to_owned();
        let warning = look::last_warning(&self.events("Pod", &pod));
        let said = match (warning, wait.said()) {
            (Some(warning), said) => format!("{said}; {warning}"),
            (None, "") => format!("the Job {} has made no pod {}", group.name, place.index),
            (None, said) => said.to_owned(),
        };
        ClusterError::new(Trouble::Late, said)
    }

    /// The events about an object; none where the role does not let them be seen.
    fn events(&self, kind: &str, name: &str) -> Value {
        let path = self.core_path("events");
        let selector = format!("involvedObject.kind={kind},involvedObject.name={name}");
        self.client.get(&format!("{path}?fieldSelector={selector}")).unwrap_or_default()
    }

    /// Why a pod that ran can't be heard any more; none while the cluster knows of no reason.
    pub(super) fn why_ended(&self, running: &Running) -> Option<String> {
        let path = format!("{}/{}", self.core_path("pods"), running.pod);
        match self.client.get(&path) {
            Ok(pod) => look::ending(&pod),
            Err(error) => Some(format!("{}: {}", running.pod, error.said)),
        }
    }

    /// Where a client reaches a port of the pod.
    pub(super) fn reach(
        &self,
        place: Place,
        running: &Running,
        port: u16,
        via: Via,
    ) -> Result<(String, u16), ClusterError> {
        let Some(group) = self.group(place) else {
            return Ok((running.address.clone(), port));
        };
        match via {
            Via::Pod => return Ok((running.address.clone(), port)),
            Via::HostPort => return Ok((running.node_address.clone(), port)),
            Via::ClusterIp | Via::NodePort | Via::LoadBalancer => {}
        }
        let name = service_name(&group.name, place.index, port);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reached) = made.services.get(&name) {
            return Ok(reached.clone());
        }
        let uid = match &made.jobs {
            Some(Ok(jobs)) => jobs.get(place.group).cloned().unwrap_or_default(),
            _ => String::new(),
        };
        let services = self.core_path("services");
        let service = group.service(place.index, port, via, &uid);
        let created = self.client.create(&services, &service)?;
        let reached = match via {
            Via::ClusterIp => (text(&created["spec"]["clusterIP"]), port),
            Via::LoadBalancer => (self.wait_for_address(&format!("{services}/{name}"))?, port),
            _ => match same_node_port(&created) {
                Some(node_port) => (running.node_address.clone(), node_port),
                None => {
                    let said = format!("the Service {name} has not one port for TCP and UDP");
                    return Err(ClusterError::new(Trouble::NoAddress, said));
                }
            },
        };
        made.services.insert(name, reached.clone());
        drop(made);
        thread::sleep(SERVICE_SETTLES);
        Ok(reached)
    }

    /// Removes what was made, and lets nothing be made any more. What can't be removed now ends and goes by
    /// itself: agents hold a lease, and finished Jobs are removed by the cluster with all that they own.
    fn remove(&self) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let over = ClusterError::new(Trouble::Ended, "the run is over");
        let jobs = made.jobs.replace(Err(over));
        let services = std::mem::take(&mut made.services).into_keys();
        if jobs.is_none() {
            return;
        }
        let services = services.map(|name| format!("{}/{name}", self.core_path("services")));
        let jobs = self.groups.iter().map(|group| format!("{}/{}", self.jobs_path(), group.name));
        for path in services.chain(jobs) {
            if self.client.delete(&path).is_err_and(|error| error.trouble == Trouble::Unreachable) {
                return;
            }
        }
    }

    fn wait_for_address(&self, path: &str) -> Result<String, ClusterError> {
        let began = Instant::now();
        loop {
            let service = self.client.get(path)?;
            let ingress = &service["status"]["loadBalancer"]["ingress"][0];
            for name in ["ip", "hostname"] {
                if let Some(address) = ingress[name].as_str().filter(|text| !text.is_empty()) {
                    return Ok(address.to_owned());
                }
            }
            if began.elapsed() > ADDRESS_TIMEOUT {
                let name = text(&service["metadata"]["name"]);
                let said = format!("{name} waited {} s", ADDRESS_TIMEOUT.as_secs());
                return Err(ClusterError::new(Trouble::NoAddress, said));
            }
            thread::sleep(Duration::from_millis(500));
        }
    }
}

/// Removes the pods when the last of their hosts is let go.
#[derive(Debug)]
pub(super) struct Removal(pub(super) Arc<Pods>);

impl Drop for Removal {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// The wait for one pod.
struct Wait {
    look: Look,
    unschedulable_since: Option<Instant>,
    /// What hinders the pod from being set up, and since when something does.
    hindrance: Option<(Instant, String)>,
}

impl Default for Wait {
    fn default() -> Self {
        Self { look: Look::Waits(String::new()), unschedulable_since: None, hindrance: None }
    }
}

/// How long what hinders a pod from being set up may last.
fn passes_within(why: &str) -> Duration {
    if why.starts_with(FAILED_MOUNT) { UNMOUNTED } else { WITHOUT_NETWORK }
}

impl Wait {
    /// The pod, if it has a node and waits there.
    fn pod_on_its_way(&self) -> Option<String> {
        let Look::Waits(said) = &self.look else { return None };
        said.split_once(':').map(|(pod, _)| pod.to_owned()).filter(|pod| !pod.is_empty())
    }

    fn take_hindrance(&mut self, hindrance: Option<String>) {
        let since = self.hindrance.take().map_or_else(Instant::now, |(since, _)| since);
        self.hindrance = hindrance.map(|said| (since, said));
    }

    fn take(&mut self, pod: &Value) {
        self.look = look::look(pod);
        match &self.look {
            Look::Unschedulable(_) => {
                self.unschedulable_since.get_or_insert_with(Instant::now);
            }
            _ => self.unschedulable_since = None,
        }
    }

    /// Whether the wait is over.
    fn end(&self) -> Result<Option<Running>, ClusterError> {
        match &self.look {
            Look::Runs(running) => Ok(Some(running.clone())),
            Look::Doomed(error) => Err(error.clone()),
            Look::Unschedulable(said)
                if self.unschedulable_since.is_some_and(|s| s.elapsed() >= UNSCHEDULABLE) =>
            {
                Err(ClusterError::new(Trouble::Unschedulable, said.clone()))
            }
            Look::Waits(said) => match &self.hindrance {
                Some((since, why)) if since.elapsed() >= passes_within(why) => {
                    Err(ClusterError::new(Trouble::NotStarted, format!("{said}; {why}")))
                }
                _ => Ok(None),
            },
            Look::Unschedulable(_) => Ok(None),
        }
    }

    fn said(&self) -> &str {
        match &self.look {
            Look::Waits(said) | Look::Unschedulable(said) => said,
            Look::Runs(_) | Look::Doomed(_) => "",
        }
    }
}
