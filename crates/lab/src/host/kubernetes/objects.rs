//! The objects that linerate makes in a cluster, as values.

use serde_json::{Map, Value, json};

use crate::plan::{KubernetesHost, Via};

/// The label of everything that linerate makes.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "linerate");

/// The label with the run's id.
pub(super) const RUN: &str = "linerate/run";

/// The label with the role of the pods: `client` or `server`.
pub(super) const ROLE: &str = "linerate/role";

/// The name of the only container.
pub(super) const CONTAINER: &str = "linerate";

/// A finished Job is removed after so long, seconds.
const TTL_S: u32 = 300;

/// The user and group of the image.
const USER: u32 = 65532;

/// The Job of pods that are alike.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    /// The Job's name.
    pub(super) name: String,
    /// The run's id.
    pub(super) run: String,
    /// `client` or `server`.
    pub(super) role: String,
    /// How many pods.
    pub(super) pods: u32,
    /// What the plan says of each.
    pub(super) host: KubernetesHost,
    /// Ports of the node that lead into the pod.
    pub(super) host_ports: Vec<u16>,
    /// The Job is ended after so long, whatever happens, seconds.
    pub(super) deadline_s: u64,
}

impl Group {
    fn labels(&self) -> Value {
        let (managed, by) = MANAGED_BY;
        json!({ managed: by, RUN: self.run, ROLE: self.role })
    }

    fn passed_on(&self, name: &str) -> Option<&Value> {
        self.host.pod.get(name)
    }

    /// The Indexed Job. No pod is started twice: what ended stays ended.
    pub(super) fn job(&self) -> Value {
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": self.name, "labels": self.labels() },
            "spec": {
                "completionMode": "Indexed",
                "completions": self.pods,
                "parallelism": self.pods,
                "backoffLimit": 0,
                "activeDeadlineSeconds": self.deadline_s,
                "ttlSecondsAfterFinished": TTL_S,
                "template": {
                    "metadata": {
                        "labels": self.labels(),
                        "annotations": self.passed_on("annotations").cloned().unwrap_or(json!({})),
                    },
                    "spec": self.pod(),
                },
            },
        })
    }

    fn pod(&self) -> Value {
        let mut pod = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 10,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [self.container()],
            "volumes": [{ "name": "tmp", "emptyDir": { "medium": "Memory", "sizeLimit": "64Mi" } }],
        });
        let Some(members) = pod.as_object_mut() else { return pod };
        let mut selector = self.passed_on("node_selector").cloned().unwrap_or(json!({}));
        match (&self.host.node, selector.as_object_mut()) {
            (Some(node), Some(selector)) => {
                selector.insert("kubernetes.io/hostname".to_owned(), json!(node));
            }
            _ => {
                members.insert("topologySpreadConstraints".to_owned(), self.spread());
            }
        }
        if selector.as_object().is_some_and(|selector| !selector.is_empty()) {
            members.insert("nodeSelector".to_owned(), selector);
        }
        if self.host.host_network {
            members.insert("hostNetwork".to_owned(), json!(true));
            members.insert("dnsPolicy".to_owned(), json!("ClusterFirstWithHostNet"));
        }
        for name in ["affinity", "tolerations", "runtime_class", "image_pull_secrets"] {
            if let Some(value) = self.passed_on(name) {
                let (_, theirs) = passed_on_as(name);
                members.insert(theirs.to_owned(), secrets_by_name(name, value));
            }
        }
        merge(members, "securityContext", self.passed_on("security_context"));
        if let Some(volumes) = self.passed_on("volumes").and_then(Value::as_array) {
            let own = volumes.iter().filter_map(|volume| {
                let mut own = volume.get("volume")?.as_object()?.clone();
                own.insert("name".to_owned(), volume.get("name")?.clone());
                Some(Value::Object(own))
            });
            if let Some(Value::Array(all)) = members.get_mut("volumes") {
                all.extend(own);
            }
        }
        pod
    }

    fn container(&self) -> Value {
        let mut container = json!({
            "name": CONTAINER,
            "image": self.host.image.as_deref().unwrap_or(KubernetesHost::IMAGE),
            "args": ["agent"],
            "stdin": true,
            "stdinOnce": true,
            "env": [{ "name": "HOME", "value": "/tmp" }],
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": [{ "name": "tmp", "mountPath": "/tmp" }],
        });
        let Some(members) = container.as_object_mut() else { return container };
        for name in ["image_pull_policy", "resources"] {
            if let Some(value) = self.passed_on(name) {
                members.insert(passed_on_as(name).1.to_owned(), value.clone());
            }
        }
        merge(members, "securityContext", self.passed_on("container_security_context"));
        if !self.host_ports.is_empty() && !self.host.host_network {
            let ports = self.host_ports.iter().flat_map(|port| {
                ["TCP", "UDP"].map(|protocol| {
                    json!({ "containerPort": port, "hostPort": port, "protocol": protocol })
                })
            });
            members.insert("ports".to_owned(), ports.collect());
        }
        if let Some(volumes) = self.passed_on("volumes").and_then(Value::as_array) {
            let mounts = volumes.iter().filter_map(|volume| {
                let mut mount = volume.get("mount")?.as_object()?.clone();
                mount.insert("name".to_owned(), volume.get("name")?.clone());
                Some(Value::Object(mount))
            });
            if let Some(Value::Array(all)) = members.get_mut("volumeMounts") {
                all.extend(mounts);
            }
        }
        container
    }

    /// Pods of one run and role go to different nodes where they can.
    fn spread(&self) -> Value {
        json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": { RUN: self.run, ROLE: self.role } },
        }])
    }

    /// The Service by which a port of one pod is reached. It goes with the pod's Job.
    pub(super) fn service(&self, index: u32, port: u16, via: Via, job_uid: &str) -> Value {
        let kind = match via {
            Via::LoadBalancer => "LoadBalancer",
            Via::NodePort => "NodePort",
            _ => "ClusterIP",
        };
        let ports = ["TCP", "UDP"].map(|protocol| {
            json!({
                "name": protocol.to_lowercase(),
                "protocol": protocol,
                "port": port,
                "targetPort": port,
            })
        });
        let mut service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": service_name(&self.name, index, port),
                "labels": self.labels(),
                "annotations": self.passed_on("service_annotations").cloned().unwrap_or(json!({})),
                "ownerReferences": [{
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": self.name,
                    "uid": job_uid,
                }],
            },
            "spec": {
                "type": kind,
                "selector": {
                    "batch.kubernetes.io/job-name": self.name,
                    "batch.kubernetes.io/job-completion-index": index.to_string(),
                },
                "ports": ports,
            },
        });
        if kind != "ClusterIP" {
            // Without it the packets may take a way over another node.
            service["spec"]["externalTrafficPolicy"] = json!("Local");
        }
        service
    }
}

/// The name of a Service: a DNS label that begins with the Job's name.
pub(super) fn service_name(job: &str, index: u32, port: u16) -> String {
    format!("{job}-{index}-{port}")
}

/// The port of the node that leads to a Service: a cluster gives TCP and UDP of one port the same. None where it
/// has not.
pub(super) fn same_node_port(service: &Value) -> Option<u16> {
    let ports = service["spec"]["ports"].as_array()?;
    let mut numbers = ports.iter().map(|port| port["nodePort"].as_u64());
    let first = numbers.next()??;
    numbers.all(|number| number == Some(first)).then(|| u16::try_from(first).ok())?
}

fn passed_on_as(name: &str) -> (&'static str, &'static str) {
    let known = KubernetesHost::PASSED_ON;
    known.into_iter().find(|(ours, _)| *ours == name).unwrap_or(known[0])
}

/// Names of Secrets are written alone in a plan.
fn secrets_by_name(name: &str, value: &Value) -> Value {
    match value.as_array() {
        Some(names) if name == "image_pull_secrets" => names
            .iter()
            .map(|name| if name.is_string() { json!({ "name": name }) } else { name.clone() })
            .collect(),
        _ => value.clone(),
    }
}

/// Adds a plan's members to an object; the plan's win.
fn merge(members: &mut Map<String, Value>, name: &str, theirs: Option<&Value>) {
    let Some(theirs) = theirs.and_then(Value::as_object) else { return };
    let ours = members.entry(name).or_insert_with(|| json!({}));
    if let Some(ours) = ours.as_object_mut() {
        ours.extend(theirs.clone());
    }
}
