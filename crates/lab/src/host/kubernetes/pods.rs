//! The pods of a run: made when the first of them is opened, removed when the last is let go.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::look::{self, FAILED_MOUNT, Look, PULLING, Running, Told, items, text};
use super::objects::{Group, same_node_port, service_name};
use super::rest::Client;
use super::service::{Reminder, Service};
use super::trouble::{ClusterError, Trouble};
use crate::host::Way;
use crate::plan::{KubernetesHost, Via};

/// A pod may be without a node for so long before it is given up.
const UNSCHEDULABLE: Duration = Duration::from_secs(8);

/// A volume that can't be mounted may be there within this time: kubelets try again after 0.5 s, 1 s, 2 s.
const UNMOUNTED: Duration = Duration::from_secs(5);

/// A pod's network that can't be made may be had within this time: kubelets try a pod again after 10 to 15 s.
const WITHOUT_NETWORK: Duration = Duration::from_secs(30);

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
    /// Services by their names.
    services: BTreeMap<String, Service>,
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
    /// A sentence about a wait that lasts.
    fn remind(&self, said: String);
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
        let (mut wait, mut reminder) = (Wait::default(), Reminder::default());
        while !watcher.is_gone() {
            let list = self.client.get(&path)?;
            match items(&list).first() {
                Some(pod) => wait.take(pod),
                None => self.look_for_refusal(group, began)?,
            }
            if let Some(pod) = wait.pod_on_its_way() {
                wait.take_newest(look::newest(&self.events("Pod", &pod)));
            }
            if let Some(end) = wait.end()? {
                return Ok(Some(end));
            }
            let waited = began.elapsed();
            if waited > patience {
                return Err(self.late(group, place, &wait));
            }
            watcher.tell(wait.said());
            if reminder.is_due(waited)
                && let Some(said) = wait.describe(patience)
            {
                watcher.remind(said);
            }
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

    /// The way of a client to a port of the pod. A Service is made where one is needed; until its address is known
    /// it is looked at now and then, so this is to be asked again.
    pub(super) fn reach(
        &self,
        place: Place,
        running: &Running,
        port: u16,
        via: Via,
    ) -> Result<Way, ClusterError> {
        let Some(group) = self.group(place) else {
            return Ok(Way::At(running.address.clone(), port));
        };
        match via {
            Via::Pod => return Ok(Way::At(running.address.clone(), port)),
            Via::HostPort => return Ok(Way::At(running.node_address.clone(), port)),
            Via::ClusterIp | Via::NodePort | Via::LoadBalancer => {}
        }
        let name = service_name(&group.name, place.index, port);
        let path = format!("{}/{name}", self.core_path("services"));
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.services.contains_key(&name) {
            self.make_service(&mut made, (place, group), &name, running, port, via)?;
        }
        let Some(service) = made.services.get_mut(&name) else { return Ok(Way::Awaited(None)) };
        let now = Instant::now();
        if service.wants_look(now) {
            service.take(&self.client.get(&path)?, now);
        }
        service.way(now, group.host.start_timeout(), || self.events("Service", &name))
    }

    fn make_service(
        &self,
        made: &mut Made,
        (place, group): (Place, &Group),
        name: &str,
        running: &Running,
        port: u16,
        via: Via,
    ) -> Result<(), ClusterError> {
        let uid = match &made.jobs {
            Some(Ok(jobs)) => jobs.get(place.group).cloned().unwrap_or_default(),
            _ => String::new(),
        };
        let object = group.service(place.index, port, via, &uid);
        let created = self.client.create(&self.core_path("services"), &object)?;
        let now = Instant::now();
        let mut service = Service::new(name, port, now);
        match via {
            Via::LoadBalancer => {}
            Via::ClusterIp => service.lead_to(text(&created["spec"]["clusterIP"]), port, now),
            _ => match same_node_port(&created) {
                Some(node_port) => {
                    service.lead_to(running.node_address.clone(), node_port, now);
                }
                None => {
                    let said = format!("the Service {name} has not one port for TCP and UDP");
                    return Err(ClusterError::new(Trouble::Refused, said));
                }
            },
        }
        made.services.insert(name.to_owned(), service);
        Ok(())
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
    /// The newest event about the pod.
    newest: Option<Told>,
    /// Since when something hinders the pod from being set up.
    hindered_since: Option<Instant>,
    /// Since when its node pulls an image.
    pulling_since: Option<Instant>,
}

impl Default for Wait {
    fn default() -> Self {
        Self {
            look: Look::Waits(String::new()),
            unschedulable_since: None,
            newest: None,
            hindered_since: None,
            pulling_since: None,
        }
    }
}

/// How long what hinders a pod from being set up may last.
fn passes_within(why: &Told) -> Duration {
    if why.reason == FAILED_MOUNT { UNMOUNTED } else { WITHOUT_NETWORK }
}

impl Wait {
    /// The pod, if it has a node and waits there.
    fn pod_on_its_way(&self) -> Option<String> {
        let Look::Waits(said) = &self.look else { return None };
        said.split_once(':').map(|(pod, _)| pod.to_owned()).filter(|pod| !pod.is_empty())
    }

    fn take_newest(&mut self, newest: Option<Told>) {
        let now = Instant::now();
        let since = |is_so: bool, since: Option<Instant>| is_so.then(|| since.unwrap_or(now));
        let hinders = newest.as_ref().is_some_and(look::hinders);
        self.hindered_since = since(hinders, self.hindered_since);
        let pulls = newest.as_ref().is_some_and(|told| told.reason == PULLING);
        self.pulling_since = since(pulls, self.pulling_since);
        self.newest = newest;
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
            Look::Waits(said) => match (self.hindered_since, &self.newest) {
                (Some(since), Some(why)) if since.elapsed() >= passes_within(why) => {
                    Err(ClusterError::new(Trouble::NotStarted, format!("{said}; {why}")))
                }
                _ => Ok(None),
            },
            Look::Unschedulable(_) => Ok(None),
        }
    }

    /// A sentence about a wait that lasts, which ends after `limit`; none where it ends before.
    fn describe(&self, limit: Duration) -> Option<String> {
        if matches!(self.look, Look::Unschedulable(_)) {
            return None;
        }
        let said = if self.said().is_empty() { "the Job has made no pod" } else { self.said() };
        let last = match (self.pulling_since, self.hindered_since, &self.newest) {
            // The kubelet tells nothing more until the image is there or can't be had.
            (Some(since), _, Some(pulling)) => {
                let image = pulling.message.trim_start_matches("Pulling image ");
                format!("; its node has been pulling {image} for {} s", since.elapsed().as_secs())
            }
            (_, Some(_), Some(why)) => return Some(format!("{said}; {why}")),
            (None, None, Some(told)) => format!("; {told}"),
            (_, _, None) => String::new(),
        };
        let last = last.trim_end_matches('.');
        Some(format!("{said}{last}; the pod may take {} s until it runs", limit.as_secs()))
    }

    fn said(&self) -> &str {
        match &self.look {
            Look::Waits(said) | Look::Unschedulable(said) => said,
            Look::Runs(_) | Look::Doomed(_) => "",
        }
    }
}
