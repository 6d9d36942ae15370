//! What linerate may do in a namespace: the role as YAML, and whether we have it.

use serde_json::{Value, json};

use super::look::text;
use super::objects::{Group, MANAGED_BY, RUN};
use super::rest::{Client, Method};
use super::trouble::ClusterError;
use crate::plan::KubernetesHost;

/// What is needed: the group of the API, the resource, and the verbs.
pub const RULES: [(&str, &str, &[&str]); 6] = [
    ("batch", "jobs", &["create", "get", "list", "watch", "delete"]),
    ("", "services", &["create", "get", "list", "watch", "delete"]),
    ("", "pods", &["get", "list", "watch"]),
    // `create` from Kubernetes 1.35 on, `get` before.
    ("", "pods/attach", &["get", "create"]),
    ("", "pods/log", &["get"]),
    ("", "events", &["list", "watch"]),
];

/// The namespace, the account, its role and the binding of both, as YAML for `kubectl apply -f -`.
pub fn manifest(namespace: &str, account: &str) -> String {
    let (managed, by) = MANAGED_BY;
    let mut text = format!(
        "apiVersion: v1\n\
         kind: Namespace\n\
         metadata:\n\
         \x20 name: {namespace}\n\
         \x20 labels:\n\
         \x20   pod-security.kubernetes.io/enforce: restricted\n\
         ---\n\
         apiVersion: v1\n\
         kind: ServiceAccount\n\
         metadata:\n\
         \x20 name: {account}\n\
         \x20 namespace: {namespace}\n\
         \x20 labels:\n\
         \x20   {managed}: {by}\n\
         ---\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: Role\n\
         metadata:\n\
         \x20 name: {account}\n\
         \x20 namespace: {namespace}\n\
         rules:\n"
    );
    for (group, resource, verbs) in RULES {
        text += &format!(
            "- apiGroups: [\"{group}\"]\n  resources: [{resource}]\n  verbs: [{}]\n",
            verbs.join(", ")
        );
    }
    text += &format!(
        "---\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: RoleBinding\n\
         metadata:\n\
         \x20 name: {account}\n\
         \x20 namespace: {namespace}\n\
         roleRef:\n\
         \x20 apiGroup: rbac.authorization.k8s.io\n\
         \x20 kind: Role\n\
         \x20 name: {account}\n\
         subjects:\n\
         - kind: ServiceAccount\n\
         \x20 name: {account}\n\
         \x20 namespace: {namespace}\n"
    );
    text
}

/// Whether we may do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// The answer.
    pub is_allowed: bool,
}

/// Asks for each verb of [`RULES`] whether we have it in the namespace.
///
/// # Errors
/// Those of a request.
pub fn permissions(client: &Client, namespace: &str) -> Result<Vec<Permission>, ClusterError> {
    let mut all = Vec::new();
    for (group, resource, verbs) in RULES {
        let (name, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        for verb in verbs {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": { "resourceAttributes": {
                    "namespace": namespace,
                    "group": group,
                    "resource": name,
                    "subresource": subresource,
                    "verb": verb,
                } },
            });
            let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
            let answer = client.ask(Method::Post, path, Some(&review))?;
            let is_allowed = answer["status"]["allowed"] == true;
            all.push(Permission { resource, verb, is_allowed });
        }
    }
    Ok(all)
}

/// Has the API server look at the Job of a pod without making it.
///
/// # Errors
/// What the server has against the Job.
pub fn try_job(
    client: &Client,
    namespace: &str,
    host: &KubernetesHost,
) -> Result<(), ClusterError> {
    let group = Group {
        name: "linerate-check".to_owned(),
        run: "check".to_owned(),
        role: "client".to_owned(),
        pods: 1,
        host: host.clone(),
        host_ports: Vec::new(),
        deadline_s: 60,
    };
    let path =
        format!("/apis/batch/v1/namespaces/{namespace}/jobs?dryRun=All&fieldValidation=Strict");
    client.ask(Method::Post, &path, Some(&group.job())).map(drop)
}

/// Something of a run that is in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// `Job` or `Service`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The run's id.
    pub run: String,
}

/// What there is of a run, or of all runs, in a namespace.
///
/// # Errors
/// Those of a request.
pub fn left(
    client: &Client,
    namespace: &str,
    run: Option<&str>,
) -> Result<Vec<Left>, ClusterError> {
    let (managed, by) = MANAGED_BY;
    let mut selector = format!("{managed}={by}");
    if let Some(run) = run {
        selector += &format!(",{RUN}={run}");
    }
    let mut all = Vec::new();
    for (kind, path) in kinds(namespace) {
        let list = client.get(&format!("{path}?labelSelector={selector}"))?;
        all.extend(super::look::items(&list).iter().map(|item: &Value| Left {
            kind,
            name: text(&item["metadata"]["name"]),
            run: text(&item["metadata"]["labels"][RUN]),
        }));
    }
    Ok(all)
}

/// Removes something, with all that it owns.
///
/// # Errors
/// Those of a request.
pub fn remove(client: &Client, namespace: &str, left: &Left) -> Result<(), ClusterError> {
    let path = kinds(namespace).into_iter().find(|(kind, _)| *kind == left.kind);
    match path {
        Some((_, path)) => client.delete(&format!("{path}/{}", left.name)),
        None => Ok(()),
    }
}

fn kinds(namespace: &str) -> [(&'static str, String); 2] {
    [
        ("Service", format!("/api/v1/namespaces/{namespace}/services")),
        ("Job", format!("/apis/batch/v1/namespaces/{namespace}/jobs")),
    ]
}

#[cfg(test)]
mod tests {
    use saphyr::{LoadableYamlNode as _, Yaml};

    use super::*;

    #[test]
    fn the_manifest_is_four_documents_of_yaml() {
        let text = manifest("perf", "linerate");
        let documents = Yaml::load_from_str(&text).unwrap();
        let kind = |document: &Yaml<'_>| document["kind"].as_str().unwrap().to_owned();
        let kinds: Vec<String> = documents.iter().map(kind).collect();
        assert_eq!(kinds, ["Namespace", "ServiceAccount", "Role", "RoleBinding"]);
        assert_eq!(documents[2]["rules"].as_vec().unwrap().len(), RULES.len());
        assert_eq!(documents[2]["rules"][3]["resources"][0].as_str(), Some("pods/attach"));
        assert_eq!(documents[3]["subjects"][0]["namespace"].as_str(), Some("perf"));
    }
}
