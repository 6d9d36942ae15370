//! Endpoints: where engines run.
//!
//! `remotehosts` reaches machines by ssh, as the original does. `local` and `netns` are this machine and its network
//! namespaces. [`kube`](super::kube) has pods of a cluster.

use serde_json::{Map, Value};

use super::document::{
    read_bool, read_count, read_list, read_object, read_required, read_text, read_word,
};
use super::kube::{Pod, read_kube};
use super::numbers::{parse_numbers, read_numbers};
use super::parameter::EngineRole;

/// Where engines run, and how pairs of them are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its machines.
    pub hosts: Vec<Host>,
    /// How engines are placed on them, where the machines don't list engines.
    pub topology: Option<Topology>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// How it is reached.
    pub transport: Transport,
    /// The address that clients use; absent: what the transport or the server's interface gives.
    pub address: Option<String>,
    /// The numbers of its clients.
    pub clients: Vec<u32>,
    /// The numbers of its servers.
    pub servers: Vec<u32>,
    /// Whether counters are collected on it.
    pub has_tools: bool,
}

/// How a machine is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// By ssh, as USER@HOST.
    Ssh(String),
    /// This machine.
    Local,
    /// A network namespace of this machine.
    Netns(String),
    /// A pod of a cluster.
    Pod(Box<Pod>),
}

/// Where clients and servers are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyKind {
    /// Both on the same machine.
    Intranode,
    /// On machines 2k and 2k + 1.
    Internode,
    /// Clients outside.
    Ingress,
    /// Servers outside.
    Egress,
}

/// A rule that places engines. It is linerate's own: the original leaves this to a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Where clients and servers are placed.
    pub kind: TopologyKind,
    /// Groups of machines; absent: as many as there are machines for.
    pub scale_out: Option<u32>,
    /// Pairs in each group.
    pub scale_up: u32,
}

/// The most groups or pairs.
const MOST_SCALE: u64 = 4096;

const TYPES: &str = "remotehosts, kube, local, netns";

const KINDS: &[(&str, TopologyKind)] = &[
    ("intranode", TopologyKind::Intranode),
    ("internode", TopologyKind::Internode),
    ("ingress", TopologyKind::Ingress),
    ("egress", TopologyKind::Egress),
];

/// Settings of remotehosts that concern containers, which there are none of here.
const CONTAINER_SETTINGS: [&str; 7] = [
    "userenv",
    "osruntime",
    "host-mounts",
    "image-cache-size",
    "podman-settings",
    "controller-ip-address",
    "hypervisor-host",
];

/// Reads an endpoint. Sentences about settings without effect go to `notes`.
///
/// # Errors
/// A sentence that names the place.
pub fn read_endpoint(
    value: &Value,
    place: &str,
    notes: &mut Vec<String>,
) -> Result<Endpoint, String> {
    let Value::Object(members) = value else {
        return Err(format!("{place} isn't an object"));
    };
    let kind = read_text(read_required(members, "type", place)?, &format!("{place}.type"))?;
    match kind {
        "remotehosts" | "netns" => read_remotes(value, kind, place, notes),
        "local" => read_local(value, place),
        "remotehost" => read_first_form(members, place, notes),
        "kube" | "k8s" => read_kube(members, place, notes),
        other => Err(format!("{place}.type is {other:?}, and has to be one of {TYPES}")),
    }
}

fn read_remotes(
    value: &Value,
    kind: &str,
    place: &str,
    notes: &mut Vec<String>,
) -> Result<Endpoint, String> {
    let members = read_object(value, place, &["type", "settings", "remotes", "topology"])?;
    let common = match members.get("settings") {
        Some(settings) => read_settings(settings, &format!("{place}.settings"), notes)?,
        None => Settings::default(),
    };
    let topology = read_topology(members, place)?;
    let remotes_place = format!("{place}.remotes");
    let mut hosts = Vec::new();
    for (index, remote) in
        read_list(read_required(members, "remotes", place)?, &remotes_place, 1)?.iter().enumerate()
    {
        let place = format!("{remotes_place}[{index}]");
        hosts.push(read_remote(remote, kind, topology.is_some(), &common, &place, notes)?);
    }
    Ok(Endpoint { hosts, topology })
}

fn read_remote(
    remote: &Value,
    kind: &str,
    is_placed: bool,
    common: &Settings,
    place: &str,
    notes: &mut Vec<String>,
) -> Result<Host, String> {
    let members = read_object(remote, place, &["engines", "config"])?;
    let mut engines = Engines::default();
    match members.get("engines") {
        Some(_) if is_placed => {
            return Err(format!(
                "{place} lists engines, and the endpoint's topology places them; remove one of both"
            ));
        }
        Some(list) => engines.read(list, &format!("{place}.engines"))?,
        None if is_placed => {}
        None => return Err(format!("{place} lacks \"engines\"")),
    }
    let config_place = format!("{place}.config");
    let key = if kind == "netns" { "namespace" } else { "host" };
    let config = read_required(members, "config", place)?;
    let config = read_object(config, &config_place, &[key, "settings", "address"])?;
    let name =
        read_text(read_required(config, key, &config_place)?, &format!("{config_place}.{key}"))?;
    let own = match config.get("settings") {
        Some(settings) => read_settings(settings, &format!("{config_place}.settings"), notes)?,
        None => Settings::default(),
    };
    let transport = match kind {
        "netns" => Transport::Netns(name.to_owned()),
        _ => Transport::Ssh(ssh_address(name, own.user.as_ref().or(common.user.as_ref()))),
    };
    Ok(Host {
        transport,
        address: read_address(config, &config_place)?,
        clients: engines.clients,
        servers: engines.servers,
        has_tools: !own.disable_tools.or(common.disable_tools).unwrap_or_default(),
    })
}

/// The original logs in as root where no user is given.
fn ssh_address(host: &str, user: Option<&String>) -> String {
    format!("{}@{host}", user.map_or("root", String::as_str))
}

fn read_address(members: &Map<String, Value>, place: &str) -> Result<Option<String>, String> {
    match members.get("address") {
        Some(text) => Ok(Some(read_text(text, &format!("{place}.address"))?.to_owned())),
        None => Ok(None),
    }
}

fn read_local(value: &Value, place: &str) -> Result<Endpoint, String> {
    let members = read_object(value, place, &["type", "engines", "topology", "address"])?;
    let topology = read_topology(members, place)?;
    let mut engines = Engines::default();
    match (members.get("engines"), &topology) {
        (Some(list), None) => engines.read(list, &format!("{place}.engines"))?,
        (None, Some(_)) => {}
        _ => return Err(format!("{place} needs either \"engines\" or \"topology\"")),
    }
    let host = Host {
        transport: Transport::Local,
        address: read_address(members, place)?,
        clients: engines.clients,
        servers: engines.servers,
        has_tools: true,
    };
    Ok(Endpoint { hosts: vec![host], topology })
}

/// Numbers of engines.
#[derive(Debug, Default)]
pub(super) struct Engines {
    pub(super) clients: Vec<u32>,
    pub(super) servers: Vec<u32>,
}

impl Engines {
    /// Adds those of a list of `{role, ids}`.
    pub(super) fn read(&mut self, list: &Value, place: &str) -> Result<(), String> {
        for (index, engine) in read_list(list, place, 1)?.iter().enumerate() {
            let place = format!("{place}[{index}]");
            let members = read_object(engine, &place, &["role", "ids"])?;
            let role = read_required(members, "role", &place)?;
            if role == "profiler" {
                continue;
            }
            let roles = [("client", EngineRole::Client), ("server", EngineRole::Server)];
            let role = read_word(role, &format!("{place}.role"), &roles)?;
            let ids_place = format!("{place}.ids");
            let ids = read_numbers(read_required(members, "ids", &place)?, &ids_place)?;
            match role {
                EngineRole::Server => self.servers.extend(ids),
                _ => self.clients.extend(ids),
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Settings {
    user: Option<String>,
    disable_tools: Option<bool>,
}

fn read_settings(value: &Value, place: &str, notes: &mut Vec<String>) -> Result<Settings, String> {
    let mut known = vec![
        "user",
        "disable-tools",
        "cpu-partitioning",
        "numa-node",
        "tool-opt-in-tags",
        "tool-opt-out-tags",
    ];
    known.extend(CONTAINER_SETTINGS);
    let members = read_object(value, place, &known)?;
    for key in members.keys() {
        if CONTAINER_SETTINGS.contains(&key.as_str()) {
            notes.push(format!(
                "{place}.{key} has no effect: engines run on the machine itself, without a container"
            ));
        }
    }
    for key in ["cpu-partitioning", "numa-node", "tool-opt-in-tags", "tool-opt-out-tags"] {
        if members.get(key).is_some_and(|value| *value != Value::Bool(false)) {
            notes.push(format!("{place}.{key} has no effect here"));
        }
    }
    let user = match members.get("user") {
        Some(user) => Some(read_text(user, &format!("{place}.user"))?.to_owned()),
        None => None,
    };
    let disable_tools = match members.get("disable-tools") {
        Some(value) => Some(read_bool(value, &format!("{place}.disable-tools"))?),
        None => None,
    };
    Ok(Settings { user, disable_tools })
}

fn read_topology(members: &Map<String, Value>, place: &str) -> Result<Option<Topology>, String> {
    let Some(value) = members.get("topology") else { return Ok(None) };
    let place = format!("{place}.topology");
    let members = read_object(value, &place, &["kind", "scale_out", "scale_up"])?;
    let kind = read_word(read_required(members, "kind", &place)?, &format!("{place}.kind"), KINDS)?;
    let scale = |key: &str| match members.get(key) {
        Some(value) => {
            let place = format!("{place}.{key}");
            let count = read_count(value, &place, 1)?;
            u32::try_from(count)
                .ok()
                .filter(|_| count <= MOST_SCALE)
                .map(Some)
                .ok_or_else(|| format!("{place} is {count}, and may be {MOST_SCALE} at most"))
        }
        None => Ok(None),
    };
    Ok(Some(Topology {
        kind,
        scale_out: scale("scale_out")?,
        scale_up: scale("scale_up")?.unwrap_or(1),
    }))
}

/// An endpoint of the first form of run files: one machine with lists of numbers.
fn read_first_form(
    members: &Map<String, Value>,
    place: &str,
    notes: &mut Vec<String>,
) -> Result<Endpoint, String> {
    let mut options = FirstForm::default();
    for (key, value) in members {
        let place = format!("{place}.{key}");
        match key.as_str() {
            "type" => {}
            "client" => options.host.clients = read_numbers(value, &place)?,
            "server" => options.host.servers = read_numbers(value, &place)?,
            "profiler" => {
                read_numbers(value, &place)?;
            }
            "host" | "user" => options.take(key, read_text(value, &place)?, &place, notes)?,
            "config" => {
                read_list(value, &place, 1)?;
                notes.push(format!("{place} has no effect: it is about containers and pods"));
            }
            key if FirstForm::UNUSED.contains(&key) => notes.push(unused(&place)),
            other => return Err(format!("{place}: {other:?} is no option of an endpoint")),
        }
    }
    options.finish(place)
}

/// An endpoint as the command line has it: `remotehost,user:root,host:HOST,client:1-2,server:1`.
///
/// # Errors
/// A sentence that names the option.
pub fn parse_endpoint(text: &str, notes: &mut Vec<String>) -> Result<Endpoint, String> {
    let (kind, rest) = text.split_once(',').unwrap_or((text, ""));
    let place = format!("--endpoint {kind}");
    match kind {
        "remotehost" | "remotehosts" | "local" | "netns" => {}
        "k8s" | "kube" => {
            return Err(format!(
                "{place}: pods take more than this form says; write a run file with an endpoint of type \
                 kube, and give it to `crucible run --from-file`"
            ));
        }
        other => return Err(format!("--endpoint has the type {other:?}; known are {TYPES}")),
    }
    let mut options = FirstForm { kind: kind.to_owned(), ..FirstForm::default() };
    for option in rest.split(',').filter(|option| !option.is_empty()) {
        let Some((key, value)) = option.split_once(':') else {
            return Err(format!("{place} has {option:?}, which lacks a colon and a value"));
        };
        options.take(key, value, &format!("{place}: {key}"), notes)?;
    }
    options.finish(&place)
}

#[derive(Debug)]
struct FirstForm {
    kind: String,
    name: Option<String>,
    user: Option<String>,
    host: Host,
}

impl Default for FirstForm {
    fn default() -> Self {
        let host = Host {
            transport: Transport::Local,
            address: None,
            clients: Vec::new(),
            servers: Vec::new(),
            has_tools: true,
        };
        Self { kind: "remotehost".to_owned(), name: None, user: None, host }
    }
}

impl FirstForm {
    /// Options that are about containers, pods and clusters.
    const UNUSED: [&'static str; 17] = [
        "userenv",
        "osruntime",
        "controller-ip",
        "nodeSelector",
        "resources",
        "annotations",
        "securityContext",
        "volumes",
        "volumeMounts",
        "runtimeClassName",
        "hostNetwork",
        "cpu-partitioning",
        "masters-tool-collect",
        "kubeconfig",
        "unique-project",
        "host-mounts",
        "image-cache-size",
    ];

    fn take(
        &mut self,
        key: &str,
        value: &str,
        place: &str,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        if value.is_empty() {
            return Err(format!("{place} has no value"));
        }
        match key {
            "host" | "namespace" => self.name = Some(value.to_owned()),
            "user" => self.user = Some(value.to_owned()),
            "address" => self.host.address = Some(value.to_owned()),
            "client" => self.host.clients = parse_numbers(value, place)?,
            "server" => self.host.servers = parse_numbers(value, place)?,
            "profiler" => {
                parse_numbers(value, place)?;
            }
            key if Self::UNUSED.contains(&key) => notes.push(unused(place)),
            other => return Err(format!("{place}: {other:?} is no option of an endpoint")),
        }
        Ok(())
    }

    fn finish(mut self, place: &str) -> Result<Endpoint, String> {
        self.host.transport = match (self.kind.as_str(), self.name) {
            ("local", _) => Transport::Local,
            ("netns", Some(name)) => Transport::Netns(name),
            ("netns", None) => return Err(format!("{place} lacks namespace:NAME")),
            (_, Some(name)) => Transport::Ssh(ssh_address(&name, self.user.as_ref())),
            (_, None) => return Err(format!("{place} lacks the host")),
        };
        if self.host.clients.is_empty() && self.host.servers.is_empty() {
            return Err(format!("{place} has neither clients nor servers"));
        }
        Ok(Endpoint { hosts: vec![self.host], topology: None })
    }
}

fn unused(place: &str) -> String {
    format!("{place} has no effect: engines run on the machine itself, without container or pod")
}
