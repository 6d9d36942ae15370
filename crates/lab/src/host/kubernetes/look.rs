//! What the cluster says about a pod: whether it runs, and why it doesn't.

use std::fmt;

use serde_json::Value;

use super::trouble::{ClusterError, Trouble};

/// What a pod's state means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It is on its way; the cluster's last word about it.
    Waits(String),
    /// No node takes it now; a node that is added or a pod that ends may change that.
    Unschedulable(String),
    /// The agent runs.
    Runs(Running),
    /// It won't run.
    Doomed(ClusterError),
}

/// A pod that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) pod: String,
    pub(super) address: String,
    pub(super) node: String,
    pub(super) node_address: String,
}

/// Looks at a pod.
pub(super) fn look(pod: &Value) -> Look {
    let doomed = |trouble, said: String| Look::Doomed(ClusterError::new(trouble, said));
    let name = text(&pod["metadata"]["name"]);
    let status = &pod["status"];
    let container = &status["containerStatuses"][0];
    if let Some(ended) = ending(pod) {
        return doomed(Trouble::Ended, ended);
    }
    if !container["state"]["running"].is_null() && !text(&status["podIP"]).is_empty() {
        return Look::Runs(Running {
            pod: name,
            address: text(&status["podIP"]),
            node: text(&pod["spec"]["nodeName"]),
            node_address: text(&status["hostIP"]),
        });
    }
    let waiting = &container["state"]["waiting"];
    let (reason, message) = (text(&waiting["reason"]), text(&waiting["message"]));
    let said = match message.as_str() {
        "" => format!("{name}: {reason}"),
        message => format!("{name}: {reason}: {message}"),
    };
    match reason.as_str() {
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
            return doomed(Trouble::Image, said);
        }
        "CreateContainerConfigError"
        | "CreateContainerError"
        | "RunContainerError"
        | "CrashLoopBackOff" => return doomed(Trouble::NotStarted, said),
        _ => {}
    }
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let unscheduled = conditions.iter().find(|condition| {
        condition["type"] == "PodScheduled"
            && condition["status"] == "False"
            && condition["reason"] == "Unschedulable"
    });
    match unscheduled {
        Some(condition) => Look::Unschedulable(format!("{name}: {}", text(&condition["message"]))),
        None if reason.is_empty() => Look::Waits(format!("{name}: {}", text(&status["phase"]))),
        None => Look::Waits(said),
    }
}

/// How a pod ended or why it will, in the cluster's words; none while it lives.
pub(super) fn ending(pod: &Value) -> Option<String> {
    let name = text(&pod["metadata"]["name"]);
    let status = &pod["status"];
    let terminated = &status["containerStatuses"][0]["state"]["terminated"];
    let phase = text(&status["phase"]);
    let has_ended = matches!(phase.as_str(), "Failed" | "Succeeded") || !terminated.is_null();
    if !has_ended {
        let is_deleted = !pod["metadata"]["deletionTimestamp"].is_null();
        return is_deleted.then(|| format!("{name} is being deleted{}", words(status)));
    }
    let mut said = format!("{name} has ended");
    if !terminated.is_null() {
        said += &words(terminated);
        if let Some(code) = terminated["exitCode"].as_i64() {
            said += &format!(" (exit code {code})");
        }
    }
    said += &words(status);
    Some(said)
}

/// `: REASON: MESSAGE`, as far as they are there.
fn words(value: &Value) -> String {
    let both = [text(&value["reason"]), text(&value["message"])];
    both.iter().filter(|word| !word.is_empty()).map(|word| format!(": {word}")).collect()
}

/// Why a Job makes no pod: the last warning about it.
pub(super) fn why_no_pod(events: &Value) -> Option<String> {
    let failed = |event: &&Value| event["reason"] == "FailedCreate";
    let event = items(events).iter().rfind(failed)?;
    Some(text(&event["message"]))
}

/// The reason of events about a volume that can't be mounted.
pub(super) const FAILED_MOUNT: &str = "FailedMount";

/// The reason of the event that a node pulls an image.
pub(super) const PULLING: &str = "Pulling";

/// An event: its reason, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) reason: String,
    pub(super) message: String,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

/// The newest of some events; lists have no order in time.
pub(super) fn newest(events: &Value) -> Option<Told> {
    let time = |event: &Value| {
        let times =
            [&event["lastTimestamp"], &event["eventTime"], &event["metadata"]["creationTimestamp"]];
        times.into_iter().map(text).find(|time| !time.is_empty())
    };
    let newest = items(events).iter().max_by_key(|event| time(event))?;
    Some(Told { reason: text(&newest["reason"]), message: text(&newest["message"]) })
}

/// Whether this event, as a pod's newest, keeps the pod from being set up: a volume that can't be mounted, a network
/// that can't be had. Kubelets try again, and tell of what they do next.
pub(super) fn hinders(told: &Told) -> bool {
    [FAILED_MOUNT, "FailedCreatePodSandBox"].contains(&told.reason.as_str())
}

/// The address that a load balancer has given a Service, a name or a number.
pub(super) fn balanced_address(service: &Value) -> Option<String> {
    let given = service["status"]["loadBalancer"]["ingress"].as_array()?;
    let words = given.iter().flat_map(|one| ["ip", "hostname"].map(|name| text(&one[name])));
    words.into_iter().find(|word| !word.is_empty())
}

/// The last warning about a pod.
pub(super) fn last_warning(events: &Value) -> Option<String> {
    let event = items(events).iter().rfind(|event| event["type"] == "Warning")?;
    Some(format!("{}: {}", text(&event["reason"]), text(&event["message"])))
}

pub(super) fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: Value) -> Value {
        json!({ "metadata": { "name": "p-0-x" }, "spec": { "nodeName": "w0" }, "status": status })
    }

    fn doomed(status: Value) -> (Trouble, String) {
        match look(&pod(status)) {
            Look::Doomed(error) => (error.trouble, error.said),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pod_that_runs_has_its_addresses() {
        let status = json!({
            "phase": "Running", "podIP": "10.1.0.2", "hostIP": "10.0.0.1",
            "containerStatuses": [{ "state": { "running": {} } }],
        });
        let Look::Runs(running) = look(&pod(status)) else { panic!() };
        assert_eq!(running.address, "10.1.0.2");
        assert_eq!(running.node_address, "10.0.0.1");
        assert_eq!(running.node, "w0");
    }

    #[test]
    fn the_schedulers_sentence_is_kept() {
        let message = "0/2 nodes are available: 2 Insufficient cpu.";
        let status = json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
              "message": message } ] });
        assert_eq!(look(&pod(status)), Look::Unschedulable(format!("p-0-x: {message}")));
    }

    #[test]
    fn an_image_that_is_not_there_dooms_the_pod() {
        for reason in ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"] {
            let status = json!({ "phase": "Pending", "containerStatuses": [{ "state": { "waiting": {
                "reason": reason, "message": "manifest unknown" } } }] });
            let (trouble, said) = doomed(status);
            assert_eq!(trouble, Trouble::Image);
            assert_eq!(said, format!("p-0-x: {reason}: manifest unknown"));
        }
    }

    #[test]
    fn an_end_is_told_with_its_code() {
        let status = json!({ "phase": "Failed", "containerStatuses": [{ "state": { "terminated": {
            "reason": "OOMKilled", "exitCode": 137 } } }] });
        let (trouble, said) = doomed(status);
        assert_eq!(trouble, Trouble::Ended);
        assert_eq!(said, "p-0-x has ended: OOMKilled (exit code 137)");
        let status = json!({ "phase": "Failed", "reason": "Evicted", "message": "low on memory" });
        assert_eq!(doomed(status).1, "p-0-x has ended: Evicted: low on memory");
    }

    #[test]
    fn a_pod_on_its_way_waits() {
        let status = json!({ "phase": "Pending", "containerStatuses": [{ "state": { "waiting": {
            "reason": "ContainerCreating" } } }] });
        assert_eq!(look(&pod(status)), Look::Waits("p-0-x: ContainerCreating".to_owned()));
        assert_eq!(look(&json!({})), Look::Waits(": ".to_owned()));
    }

    #[test]
    fn a_volume_that_is_not_there_hinders_until_something_else_happens() {
        let event = |reason: &str, at: &str| json!({ "reason": reason, "message": "m", "lastTimestamp": at });
        let (first, second, third) =
            ("2026-11-26T22:08:05Z", "2026-11-26T22:08:06Z", "2026-11-26T22:08:07Z");
        let failed = event("FailedMount", second);
        // Lists have no order in time.
        let events = json!({ "items": [failed, event("Scheduled", first)] });
        assert!(hinders(&newest(&events).unwrap()));
        assert_eq!(newest(&events).unwrap().to_string(), "FailedMount: m");
        let events =
            json!({ "items": [failed, event("Pulling", third), event("Scheduled", first)] });
        assert_eq!(newest(&events).unwrap().reason, PULLING);
        assert!(!hinders(&newest(&events).unwrap()));
        assert_eq!(newest(&json!({})), None);
        let event = json!({ "reason": "FailedCreatePodSandBox", "lastTimestamp": null,
            "eventTime": "2026-11-26T22:08:05.000000Z" });
        let told = newest(&json!({ "items": [event] })).unwrap();
        assert!(hinders(&told));
        assert_eq!(told.to_string(), "FailedCreatePodSandBox: ");
    }

    #[test]
    fn a_load_balancers_address_is_a_number_or_a_name() {
        let service =
            |ingress: Value| json!({ "status": { "loadBalancer": { "ingress": ingress } } });
        for (ingress, expected) in [
            (json!([{ "ip": "192.0.2.1", "ipMode": "VIP" }]), Some("192.0.2.1")),
            (json!([{ "hostname": "lb.example" }]), Some("lb.example")),
            (json!([{ "ip": "", "hostname": "lb.example" }]), Some("lb.example")),
            (json!([{ "ip": 7 }, { "ip": "2001:db8::1" }]), Some("2001:db8::1")),
            (json!([]), None),
            (json!("x"), None),
        ] {
            let found = balanced_address(&service(ingress));
            assert_eq!(found.as_deref(), expected);
        }
        assert_eq!(balanced_address(&json!({ "status": { "loadBalancer": {} } })), None);
    }

    #[test]
    fn a_job_without_pods_says_why() {
        let events = json!({ "items": [
            { "reason": "FailedCreate", "message": "one" },
            { "reason": "FailedCreate", "message": "violates PodSecurity \"restricted:latest\"" },
            { "reason": "Other", "message": "two" } ] });
        assert_eq!(why_no_pod(&events).unwrap(), "violates PodSecurity \"restricted:latest\"");
        assert_eq!(why_no_pod(&json!({})), None);
    }
}
