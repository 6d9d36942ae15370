//! Endpoints of type `kube`: engines in pods of a cluster.
//!
//! The original reaches kubectl by ssh on another host. Here the API server is asked directly, by the kubeconfig of
//! this machine, so `host` and `user` have no effect.

use serde_json::{Map, Value, json};

use super::document::{read_bool, read_list, read_object, read_required, read_text};
use super::endpoint::{Endpoint, Engines, Host, Transport};
use super::numbers::read_numbers;

/// The namespace that the original uses where none is given, of type `crucible`.
const NAMESPACE: &str = "crucible-rickshaw";

/// A pod, with what its settings say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its name: the engine's, or that of `pods`.
    pub name: String,
    /// The kubeconfig file.
    pub kubeconfig: Option<String>,
    /// The namespace; absent: that of the kubeconfig's context.
    pub namespace: Option<String>,
    /// The image; the original builds one.
    pub image: Option<String>,
    /// How servers are reached, in linerate's words; absent: as it chooses.
    pub via: Option<String>,
    /// Whether the pod uses the node's network.
    pub host_network: bool,
    /// Members of the pod: `node_selector`, `resources`, `annotations`, `runtime_class`, `security_context`,
    /// `container_security_context`, `volumes`, `service_annotations`.
    pub members: Map<String, Value>,
}

const KEYS: [&str; 17] = [
    "type",
    "host",
    "user",
    "engines",
    "client",
    "server",
    "profiler",
    "controller-ip-address",
    "kubeconfig",
    "namespace",
    "metallb-pool",
    "disable-tools",
    "host-mounts",
    "sysinfo",
    "tool-deployment",
    "pods",
    "config",
];

/// linerate's own: the image, and how servers are reached.
const OWN: [&str; 2] = [IMAGE, VIA];
const IMAGE: &str = "image";
const VIA: &str = "via";

/// How servers are reached where a pool of MetalLB is named.
const BALANCED: &str = "load-balancer";

const WITHOUT_EFFECT: [&str; 6] =
    ["host", "user", "controller-ip-address", "host-mounts", "sysinfo", "tool-deployment"];

/// Reads an endpoint of type `kube`, or of type `k8s` as the first form of run files has it.
///
/// # Errors
/// A sentence that names the place.
pub(super) fn read_kube(
    members: &Map<String, Value>,
    place: &str,
    notes: &mut Vec<String>,
) -> Result<Endpoint, String> {
    let known: Vec<&str> = KEYS.into_iter().chain(OWN).collect();
    read_object(&Value::Object(members.clone()), place, &known)?;
    for key in WITHOUT_EFFECT.into_iter().filter(|key| members.contains_key(*key)) {
        notes.push(format!(
            "{place}.{key} has no effect: linerate asks the cluster's API server itself, by the \
             kubeconfig of this machine"
        ));
    }
    let engines = read_engines(members, place)?;
    let mut common = Pod {
        kubeconfig: text_of(members, "kubeconfig", place)?,
        namespace: read_namespace(members, place, notes)?,
        image: text_of(members, IMAGE, place)?,
        via: text_of(members, VIA, place)?,
        ..Pod::default()
    };
    if let Some(pool) = text_of(members, "metallb-pool", place)? {
        common.via.get_or_insert_with(|| BALANCED.to_owned());
        let annotations = json!({ "metallb.universe.tf/address-pool": pool });
        common.members.insert("service_annotations".to_owned(), annotations);
    }
    let config = read_config(members, place, notes)?;
    let has_tools = !are_tools_disabled(members, place)?;
    let mut pods = share_pods(members, &engines, place)?;
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    let hosts = pods
        .into_iter()
        .map(|shared| {
            let mut pod = Pod { name: shared.name.clone(), ..common.clone() };
            // Engines of one pod have what is said of any of them; what comes later wins.
            for block in config.iter().filter(|block| block.meets(&shared)) {
                pod.host_network = block.host_network.unwrap_or(pod.host_network);
                for (name, value) in &block.members {
                    merge(&mut pod.members, name, value);
                }
            }
            Host {
                transport: Transport::Pod(Box::new(pod)),
                address: None,
                clients: shared.clients,
                servers: shared.servers,
                has_tools,
            }
        })
        .collect();
    Ok(Endpoint { hosts, topology: None })
}

fn text_of(members: &Map<String, Value>, key: &str, place: &str) -> Result<Option<String>, String> {
    match members.get(key) {
        None => Ok(None),
        // The first form had 0 and 1 here.
        Some(Value::Number(_) | Value::Bool(_)) if key == "kubeconfig" => Ok(None),
        Some(value) => Ok(Some(read_text(value, &format!("{place}.{key}"))?.to_owned())),
    }
}

/// `engines: {client, server}`; the first form has both beside the rest.
fn read_engines(members: &Map<String, Value>, place: &str) -> Result<Engines, String> {
    let engines_place = format!("{place}.engines");
    let (own, place) = match members.get("engines") {
        Some(engines) => {
            (read_object(engines, &engines_place, &["client", "server"])?, engines_place.as_str())
        }
        None => (members, place),
    };
    let numbers = |role: &str| match own.get(role) {
        Some(ids) => read_numbers(ids, &format!("{place}.{role}")),
        None => Ok(Vec::new()),
    };
    let engines = Engines { clients: numbers("client")?, servers: numbers("server")? };
    if engines.clients.is_empty() && engines.servers.is_empty() {
        return Err(format!("{place} has neither clients nor servers"));
    }
    Ok(engines)
}

fn read_namespace(
    members: &Map<String, Value>,
    place: &str,
    notes: &mut Vec<String>,
) -> Result<Option<String>, String> {
    let Some(value) = members.get("namespace") else { return Ok(None) };
    let place = format!("{place}.namespace");
    let members = read_object(value, &place, &["type", "prefix", "name"])?;
    match read_text(read_required(members, "type", &place)?, &format!("{place}.type"))? {
        "custom" => {
            let name = read_required(members, "name", &place)?;
            Ok(Some(read_text(name, &format!("{place}.name"))?.to_owned()))
        }
        "crucible" => Ok(Some(NAMESPACE.to_owned())),
        "unique" => {
            notes.push(format!(
                "{place} is unique, and linerate makes no namespaces: that of the kubeconfig's context \
                 is used"
            ));
            Ok(None)
        }
        other => {
            Err(format!("{place}.type is {other:?}, and has to be one of custom, crucible, unique"))
        }
    }
}

fn are_tools_disabled(members: &Map<String, Value>, place: &str) -> Result<bool, String> {
    let Some(value) = members.get("disable-tools") else { return Ok(false) };
    let place = format!("{place}.disable-tools");
    let members = read_object(value, &place, &["all", "masters", "workers"])?;
    let mut are_disabled = false;
    for (key, value) in members {
        let is = read_bool(value, &format!("{place}.{key}"))?;
        are_disabled |= is && key != "masters";
    }
    Ok(are_disabled)
}

/// A pod with the numbers of its engines.
#[derive(Debug)]
struct SharedPod {
    name: String,
    clients: Vec<u32>,
    servers: Vec<u32>,
}

/// The pods: those that engines share by `pods`, and one for each other engine.
fn share_pods(
    members: &Map<String, Value>,
    engines: &Engines,
    place: &str,
) -> Result<Vec<SharedPod>, String> {
    let mut pods: Vec<SharedPod> = Vec::new();
    let place = format!("{place}.pods");
    let listed = match members.get("pods") {
        Some(list) => read_list(list, &place, 1)?,
        None => &[],
    };
    for (index, pod) in listed.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let members = read_object(pod, &place, &["name", "engines"])?;
        let mut own = Engines::default();
        own.read(read_required(members, "engines", &place)?, &format!("{place}.engines"))?;
        let name =
            text_of(members, "name", &place)?.unwrap_or_else(|| format!("pod-{}", index + 1));
        pods.push(SharedPod { name, clients: own.clients, servers: own.servers });
    }
    for (role, all) in [("client", &engines.clients), ("server", &engines.servers)] {
        for id in all {
            let is_here = |pod: &&SharedPod| {
                let own = if role == "client" { &pod.clients } else { &pod.servers };
                own.contains(id)
            };
            if pods.iter().filter(is_here).count() > 1 {
                return Err(format!("{place} has {role}-{id} in two pods"));
            }
            if !pods.iter().any(|pod| is_here(&pod)) {
                let (mut clients, mut servers) = (Vec::new(), Vec::new());
                if role == "client" { &mut clients } else { &mut servers }.push(*id);
                pods.push(SharedPod { name: format!("{role}-{id}"), clients, servers });
            }
        }
    }
    let is_known = |pod: &SharedPod| {
        pod.clients.iter().all(|id| engines.clients.contains(id))
            && pod.servers.iter().all(|id| engines.servers.contains(id))
    };
    match pods.iter().find(|pod| !is_known(pod)) {
        Some(pod) => Err(format!("{place} has {}, with engines that the endpoint lacks", pod.name)),
        None => Ok(pods),
    }
}

/// Settings for some engines.
#[derive(Debug, Default)]
struct Block {
    /// None: all of them.
    targets: Option<Engines>,
    host_network: Option<bool>,
    members: Map<String, Value>,
}

impl Block {
    fn meets(&self, pod: &SharedPod) -> bool {
        self.targets.as_ref().is_none_or(|targets| {
            pod.clients.iter().any(|id| targets.clients.contains(id))
                || pod.servers.iter().any(|id| targets.servers.contains(id))
        })
    }
}

/// The blocks of `config`, those for all engines first.
fn read_config(
    members: &Map<String, Value>,
    place: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<Block>, String> {
    let Some(list) = members.get("config") else { return Ok(Vec::new()) };
    let place = format!("{place}.config");
    let mut blocks = Vec::new();
    for (index, block) in read_list(list, &place, 1)?.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let members = read_object(block, &place, &["targets", "settings", "verifications"])?;
        if members.contains_key("verifications") {
            notes.push(format!("{place}.verifications has no effect"));
        }
        let targets = match read_required(members, "targets", &place)? {
            Value::String(word) if word == "default" || word == "all" => None,
            list => {
                let mut targets = Engines::default();
                targets.read(list, &format!("{place}.targets"))?;
                Some(targets)
            }
        };
        let settings = read_required(members, "settings", &place)?;
        let block = read_settings(settings, &format!("{place}.settings"), notes)?;
        blocks.push(Block { targets, ..block });
    }
    blocks.sort_by_key(|block| block.targets.is_some());
    if blocks.iter().filter(|block| block.targets.is_none()).count() > 1 {
        return Err(format!("{place} has two blocks with the targets \"default\""));
    }
    Ok(blocks)
}

fn read_settings(value: &Value, place: &str, notes: &mut Vec<String>) -> Result<Block, String> {
    const PASSED_ON: [(&str, &str); 4] = [
        ("nodeSelector", "node_selector"),
        ("resources", "resources"),
        ("annotations", "annotations"),
        ("runtimeClassName", "runtime_class"),
    ];
    let mut known: Vec<&str> = PASSED_ON.iter().map(|(theirs, _)| *theirs).collect();
    known.extend(["userenv", "osruntime", "hostNetwork", "securityContext", "volumes", "arch"]);
    known.push("cpu-partitioning");
    let settings = read_object(value, place, &known)?;
    let mut block = Block::default();
    for (key, value) in settings {
        let at = format!("{place}.{key}");
        match key.as_str() {
            "hostNetwork" => block.host_network = Some(read_bool(value, &at)?),
            "osruntime" if value == "kata" => {
                block.members.insert("runtime_class".to_owned(), json!("kata"));
            }
            "osruntime" if value == "pod" => {}
            "osruntime" => return Err(format!("{at} has to be one of pod, kata")),
            "userenv" => notes.push(format!("{at} has no effect: the image is linerate's")),
            "cpu-partitioning" => notes.push(format!("{at} has no effect here")),
            "arch" => {
                let name = match read_text(value, &at)? {
                    "x86_64" => "amd64",
                    "aarch64" => "arm64",
                    other => {
                        return Err(format!("{at} is {other:?}, and has to be x86_64 or aarch64"));
                    }
                };
                let selector = json!({ "kubernetes.io/arch": name });
                merge(&mut block.members, "node_selector", &selector);
            }
            "securityContext" => {
                let contexts = read_object(value, &at, &["pod", "container"])?;
                let ours =
                    [("pod", "security_context"), ("container", "container_security_context")];
                for (theirs, ours) in ours {
                    if let Some(context) = contexts.get(theirs) {
                        block.members.insert(ours.to_owned(), context.clone());
                    }
                }
            }
            "volumes" => {
                let volumes =
                    read_list(value, &at, 1)?.iter().enumerate().map(|(index, volume)| {
                        let place = format!("{at}[{index}]");
                        let volume =
                            read_object(volume, &place, &["name", "volume", "volumeMount"])?;
                        Ok(json!({
                            "name": read_required(volume, "name", &place)?,
                            "volume": read_required(volume, "volume", &place)?,
                            "mount": read_required(volume, "volumeMount", &place)?,
                        }))
                    });
                let volumes = volumes.collect::<Result<_, String>>()?;
                block.members.insert("volumes".to_owned(), Value::Array(volumes));
            }
            key => {
                if let Some((_, ours)) = PASSED_ON.iter().find(|(theirs, _)| *theirs == key) {
                    merge(&mut block.members, ours, value);
                }
            }
        }
    }
    Ok(block)
}

/// Objects of the same name are united, other values replaced.
fn merge(members: &mut Map<String, Value>, name: &str, value: &Value) {
    match (members.get_mut(name), value) {
        (Some(Value::Object(before)), Value::Object(more)) => before.extend(more.clone()),
        _ => {
            members.insert(name.to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Endpoint, Vec<String>), String> {
        let value: Value = serde_json::from_str(text).unwrap();
        let mut notes = Vec::new();
        read_kube(value.as_object().unwrap(), "endpoints[0]", &mut notes).map(|e| (e, notes))
    }

    fn pod<'a>(endpoint: &'a Endpoint, name: &str) -> (&'a Host, &'a Pod) {
        let found = endpoint.hosts.iter().find_map(|host| match &host.transport {
            Transport::Pod(pod) if pod.name == name => Some((host, &**pod)),
            _ => None,
        });
        found.unwrap()
    }

    #[test]
    fn each_engine_has_a_pod_with_its_settings() {
        let (endpoint, notes) = read(
            r#"{"type":"kube","host":"bastion","user":"core","image":"reg/l:1",
                "engines":{"client":"1-2","server":[1,2]},
                "namespace":{"type":"custom","name":"perf"},
                "disable-tools":{"all":true},
                "config":[
                  {"targets":[{"role":"client","ids":2}],
                   "settings":{"nodeSelector":{"kubernetes.io/hostname":"w2"},"hostNetwork":true}},
                  {"targets":"default","settings":{"arch":"aarch64","userenv":"rhubi9",
                   "nodeSelector":{"pool":"a"},"osruntime":"kata",
                   "volumes":[{"name":"v","volume":{"emptyDir":{}},"volumeMount":{"mountPath":"/v"}}],
                   "securityContext":{"container":{"privileged":true}}}}]}"#,
        )
        .unwrap();
        assert_eq!(endpoint.hosts.len(), 4);
        let (host, one) = pod(&endpoint, "client-1");
        assert_eq!((host.clients.as_slice(), host.has_tools), (&[1][..], false));
        assert_eq!(
            (one.namespace.as_deref(), one.image.as_deref()),
            (Some("perf"), Some("reg/l:1"))
        );
        let selector = json!({ "kubernetes.io/arch": "arm64", "pool": "a" });
        assert_eq!(one.members["node_selector"], selector);
        assert_eq!(one.members["runtime_class"], "kata");
        assert_eq!(one.members["volumes"][0]["mount"]["mountPath"], "/v");
        assert_eq!(one.members["container_security_context"]["privileged"], true);
        assert!(!one.host_network);
        let (_, two) = pod(&endpoint, "client-2");
        assert!(two.host_network);
        assert_eq!(two.members["node_selector"]["kubernetes.io/hostname"], "w2");
        assert_eq!(two.members["node_selector"]["pool"], "a");
        let all = notes.join("\n");
        for part in [".host has no effect", ".user has no effect", ".userenv has no effect"] {
            assert!(all.contains(part), "{all}");
        }
    }

    #[test]
    fn engines_share_a_pod_where_pods_says_so() {
        let (endpoint, _) = read(
            r#"{"type":"kube","engines":{"server":"1-3"},"metallb-pool":"p",
                "pods":[{"name":"both","engines":[{"role":"server","ids":"1-2"}]}]}"#,
        )
        .unwrap();
        assert_eq!(endpoint.hosts.len(), 2);
        let (host, both) = pod(&endpoint, "both");
        assert_eq!(host.servers, [1, 2]);
        assert_eq!(both.via.as_deref(), Some("load-balancer"));
        let pool = &both.members["service_annotations"]["metallb.universe.tf/address-pool"];
        assert_eq!(pool, "p");
    }

    #[test]
    fn how_servers_are_reached_can_be_said() {
        let (endpoint, _) = read(
            r#"{"type":"kube","engines":{"server":"1"},"metallb-pool":"p","via":"node-port"}"#,
        )
        .unwrap();
        let (_, server) = pod(&endpoint, "server-1");
        assert_eq!(server.via.as_deref(), Some("node-port"));
    }

    #[test]
    fn the_first_form_has_its_numbers_beside_the_rest() {
        let (endpoint, _) = read(
            r#"{"type":"k8s","client":"1","server":"1","kubeconfig":1,
                "config":[{"targets":"all","settings":{"annotations":{"a":"b"}}}]}"#,
        )
        .unwrap();
        assert_eq!(pod(&endpoint, "server-1").1.members["annotations"]["a"], "b");
    }

    #[test]
    fn faults_name_their_place() {
        for (text, part) in [
            (r#"{"type":"kube"}"#, "endpoints[0] has neither clients nor servers"),
            (r#"{"type":"kube","engine":{}}"#, "unknown key \"engine\""),
            (
                r#"{"engines":{"client":1},"namespace":{"type":"x"}}"#,
                "namespace.type is \"x\", and has to be one of custom, crucible, unique",
            ),
            (
                r#"{"engines":{"client":1},"pods":[{"engines":[{"role":"client","ids":2}]}]}"#,
                "with engines that the endpoint lacks",
            ),
            (
                r#"{"engines":{"client":1},"config":[{"targets":"default","settings":{"arch":"m68k"}}]}"#,
                "config[0].settings.arch is \"m68k\"",
            ),
            (
                r#"{"engines":{"client":1},"config":[{"targets":"default","settings":{"x":1}}]}"#,
                "config[0].settings has an unknown key \"x\"",
            ),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
