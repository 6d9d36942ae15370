//! `[hosts]`.

use std::collections::BTreeMap;

use linerate_measure::units::parse_duration;

use super::{Fields, Node, PlanError, suggest};
use crate::plan::{HostSpec, KubernetesHost, SshHost, Via};

/// What the machine of a plan without hosts is called.
pub(super) const LOCAL: &str = "local";

/// The hosts, and their names in the order in which they were written.
type Hosts = (BTreeMap<String, HostSpec>, Vec<String>);

/// Reads the hosts. Without any there is this machine.
pub(super) fn read_hosts(node: Option<Node>) -> Result<Hosts, PlanError> {
    let entries = match node {
        None => Vec::new(),
        Some(node) => Fields::new("hosts", node)?.rest(),
    };
    if entries.is_empty() {
        let host = HostSpec::Local { data_address: None };
        return Ok(([(LOCAL.to_owned(), host)].into(), vec![LOCAL.to_owned()]));
    }
    let (mut hosts, mut order) = (BTreeMap::new(), Vec::new());
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for (name, node) in entries {
        let place = format!("hosts.{name}");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            let why = "is no name for a host: use up to 64 letters, digits, - _ and .";
            return Err(PlanError::new(&place, why));
        }
        let host = read_host(&place, node)?;
        // Pods without a node are where the scheduler puts them.
        let is_anywhere = matches!(&host, HostSpec::Kubernetes(pod) if pod.node.is_none());
        if is_anywhere {
            order.push(name.clone());
            hosts.insert(name, host);
            continue;
        }
        if let Some(other) = seen.insert(host.identity(), name.clone()) {
            let why = format!(
                "is the same machine as hosts.{other} ({}): name it once, several pairs can use it",
                host.identity()
            );
            return Err(PlanError::new(&place, why));
        }
        order.push(name.clone());
        hosts.insert(name, host);
    }
    Ok((hosts, order))
}

fn read_host(place: &str, node: Node) -> Result<HostSpec, PlanError> {
    let mut fields = Fields::new(place, node)?;
    let transport = fields.word("transport")?;
    let Some(transport) = transport else {
        return Err(fields.fault("transport", "is missing: write local, netns, ssh or kubernetes"));
    };
    let host = match transport.as_str() {
        "local" => HostSpec::Local { data_address: fields.word("data_address")? },
        "netns" => {
            let Some(namespace) = fields.word("namespace")? else {
                let why = "is missing: write its name as `ip netns` lists it";
                return Err(fields.fault("namespace", why));
            };
            HostSpec::Netns { namespace, data_address: fields.word("data_address")? }
        }
        "ssh" => HostSpec::Ssh(read_ssh(&mut fields)?),
        "kubernetes" => HostSpec::Kubernetes(Box::new(read_pod(&mut fields)?)),
        other => {
            let known = HostSpec::TRANSPORTS.map(str::to_owned);
            let why = format!("is {other}: {}", suggest(other, &known));
            return Err(fields.fault("transport", why));
        }
    };
    fields.finish()?;
    Ok(host)
}

fn read_ssh(fields: &mut Fields) -> Result<SshHost, PlanError> {
    let Some(address) = fields.word("address")? else {
        return Err(fields.fault("address", "is missing: write what you would give to ssh"));
    };
    // ssh would take it for an option.
    if address.is_empty() || address.starts_with('-') {
        let why = format!("is {address:?}: write a host that ssh knows, not an option");
        return Err(fields.fault("address", why));
    }
    Ok(SshHost {
        address,
        data_address: fields.word("data_address")?,
        ssh_options: fields.words("ssh_options")?.unwrap_or_default(),
        sudo: fields.flag("sudo")?,
        binary_dir: fields.word("binary_dir")?,
    })
}

/// The most processors of a node, and the most seconds until a pod runs.
const NODE_CPUS_MAX: u32 = 4096;
const START_TIMEOUT_MAX_NS: u64 = 3_600_000_000_000;

fn read_pod(fields: &mut Fields) -> Result<KubernetesHost, PlanError> {
    let via = match fields.word("via")?.as_deref() {
        None => None,
        Some(word) => Some(Via::from_name(word).ok_or_else(|| {
            let known = Via::NAMES.map(|(name, _)| name.to_owned());
            fields.fault("via", format!("is {word}: {}", suggest(word, &known)))
        })?),
    };
    let start_timeout_s = match fields.word("start_timeout")? {
        None => None,
        Some(word) => {
            let ns = parse_duration(&word).ok().filter(|ns| *ns <= START_TIMEOUT_MAX_NS);
            let why = format!("is {word}: write a time up to 1h, such as 120s");
            let ns = ns.ok_or_else(|| fields.fault("start_timeout", why))?;
            u32::try_from(ns.div_ceil(1_000_000_000)).ok()
        }
    };
    let mut pod = serde_json::Map::new();
    for (name, _) in KubernetesHost::PASSED_ON {
        if let Some(node) = fields.take(name) {
            pod.insert(name.to_owned(), node.into_json());
        }
    }
    Ok(KubernetesHost {
        kubeconfig: fields.word("kubeconfig")?,
        context: fields.word("context")?,
        namespace: fields.word("namespace")?,
        node: fields.word("node")?,
        image: fields.word("image")?,
        via,
        node_cpus: fields.count("node_cpus", 1, NODE_CPUS_MAX)?,
        static_cpus: fields.flag("static_cpus")?,
        host_network: fields.flag("host_network")?,
        start_timeout_s,
        pod,
    })
}
