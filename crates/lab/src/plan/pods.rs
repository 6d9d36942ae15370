//! Pods of a plan: each end of each pair gets one of its own, with its share of the node's processors.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::{HostSpec, KubernetesHost, Plan};

/// The memory of a pod that has whole processors for itself, as the original's.
const STATIC_MEMORY: &str = "2048Mi";

/// The port of a server in a pod, where the plan names none: nothing else listens there.
const POD_PORT: u16 = 5250;

/// A pod may take so long until it runs, if the plan does not say, seconds.
const START_TIMEOUT_S: u32 = 120;

impl KubernetesHost {
    /// How long the pod may take until it runs.
    pub fn start_timeout(&self) -> Duration {
        Duration::from_secs(u64::from(self.start_timeout_s.unwrap_or(START_TIMEOUT_S)))
    }

    /// The resources of each of so many pods on a node, if the plan says how many processors it has: thousandths of
    /// a processor, 1000 * processors / pods, or whole ones with limits.
    pub fn share_resources(&mut self, pods: u32) {
        let Some(cpus) = self.node_cpus.filter(|_| !self.pod.contains_key("resources")) else {
            return;
        };
        let millis = u64::from(cpus) * 1000 / u64::from(pods.max(1));
        let resources = if self.static_cpus {
            let whole = (millis / 1000).max(1).to_string();
            let both = json!({ "cpu": whole, "memory": STATIC_MEMORY });
            json!({ "requests": both, "limits": both })
        } else {
            json!({ "requests": { "cpu": format!("{millis}m") } })
        };
        self.pod.insert("resources".to_owned(), resources);
    }
}

impl Plan {
    /// Gives each end of each pair that is on a host of Kubernetes a pod of its own, named `HOST-client-NUMBER` or
    /// `HOST-server-NUMBER`. The hosts that they came from are no hosts of the plan any more.
    pub fn spread_pods(&mut self) {
        let mut pods: BTreeMap<String, (String, KubernetesHost)> = BTreeMap::new();
        let mut on_node: BTreeMap<String, u32> = BTreeMap::new();
        for pair in &mut self.pairs {
            for (end, role) in [(&mut pair.client, "client"), (&mut pair.server, "server")] {
                let Some(HostSpec::Kubernetes(pod)) = self.hosts.get(end.as_str()) else {
                    continue;
                };
                let own = format!("{end}-{role}-{}", pair.number);
                *on_node.entry(end.clone()).or_default() += 1;
                pods.insert(own.clone(), (end.clone(), (**pod).clone()));
                *end = own;
                if role == "server" {
                    // The pod's address is known when it runs.
                    pair.address.clear();
                    if pair.port == 0 {
                        pair.port = POD_PORT;
                    }
                }
            }
        }
        self.hosts.retain(|_, host| !matches!(host, HostSpec::Kubernetes(_)));
        for (name, (from, mut pod)) in pods {
            pod.share_resources(on_node.get(&from).copied().unwrap_or(1));
            self.hosts.insert(name, HostSpec::Kubernetes(Box::new(pod)));
        }
    }

    /// The pods of a plan whose pods were spread: name, role, what is said of each, and the ports of the servers
    /// there.
    pub fn pods(&self) -> Vec<(String, String, KubernetesHost, Vec<u16>)> {
        let mut all = Vec::new();
        for (name, host) in &self.hosts {
            let HostSpec::Kubernetes(pod) = host else { continue };
            let served = self.pairs.iter().filter(|pair| pair.server == *name);
            let ports: Vec<u16> = served.map(|pair| pair.port).collect();
            let role = if ports.is_empty() { "client" } else { "server" };
            all.push((name.clone(), role.to_owned(), (**pod).clone(), ports));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Pair, Schedule};

    fn plan(kubernetes: &[(&str, KubernetesHost)], pairs: &[(&str, &str)]) -> Plan {
        let ssh = HostSpec::Local { data_address: Some("192.0.2.1".to_owned()) };
        let mut hosts: BTreeMap<String, HostSpec> = [("outside".to_owned(), ssh)].into();
        for (name, host) in kubernetes {
            let host = HostSpec::Kubernetes(Box::new(host.clone()));
            hosts.insert((*name).to_owned(), host);
        }
        let pair = |(number, (client, server)): (usize, &(&str, &str))| Pair {
            number: u32::try_from(number + 1).unwrap(),
            client: (*client).to_owned(),
            server: (*server).to_owned(),
            address: "192.0.2.1".to_owned(),
            port: 0,
        };
        Plan {
            schema: Plan::SCHEMA.to_owned(),
            title: None,
            tags: BTreeMap::new(),
            hosts,
            pairs: pairs.iter().enumerate().map(pair).collect(),
            schedule: Schedule::default(),
            collect: None,
            points: Vec::new(),
        }
    }

    fn node(name: &str, cpus: u32) -> KubernetesHost {
        KubernetesHost {
            node: Some(name.to_owned()),
            node_cpus: Some(cpus),
            ..KubernetesHost::default()
        }
    }

    fn cpu(plan: &Plan, name: &str) -> String {
        let Some(HostSpec::Kubernetes(pod)) = plan.hosts.get(name) else { panic!("{name}") };
        pod.pod["resources"]["requests"]["cpu"].as_str().unwrap().to_owned()
    }

    #[test]
    fn each_end_of_a_pair_has_a_pod_with_its_share() {
        // The original: 1000 * cpus / P, halved for intranode.
        let mut internode =
            plan(&[("w0", node("w0", 16)), ("w1", node("w1", 8))], &[("w0", "w1"); 4]);
        internode.spread_pods();
        assert_eq!(internode.hosts.len(), 9);
        assert_eq!(internode.pairs[2].client, "w0-client-3");
        assert_eq!(internode.pairs[2].server, "w1-server-3");
        assert_eq!((internode.pairs[2].address.as_str(), internode.pairs[2].port), ("", 5250));
        assert_eq!(cpu(&internode, "w0-client-3"), "4000m");
        assert_eq!(cpu(&internode, "w1-server-1"), "2000m");

        let mut intranode = plan(&[("w0", node("w0", 16))], &[("w0", "w0"); 4]);
        intranode.spread_pods();
        assert_eq!(cpu(&intranode, "w0-client-1"), "2000m");
        assert_eq!(cpu(&intranode, "w0-server-4"), "2000m");
    }

    #[test]
    fn whole_processors_have_limits() {
        let host = KubernetesHost { static_cpus: true, ..node("w0", 9) };
        let mut plan = plan(&[("w0", host)], &[("w0", "outside"), ("w0", "outside")]);
        plan.spread_pods();
        let Some(HostSpec::Kubernetes(pod)) = plan.hosts.get("w0-client-2") else { panic!() };
        let expected = json!({ "cpu": "4", "memory": "2048Mi" });
        assert_eq!(pod.pod["resources"], json!({ "requests": expected, "limits": expected }));
        // Egress: the server outside keeps its address and may choose its port.
        assert_eq!((plan.pairs[1].address.as_str(), plan.pairs[1].port), ("192.0.2.1", 0));
        assert!(plan.hosts.contains_key("outside"));
    }

    #[test]
    fn written_resources_win() {
        let mut host = node("w0", 16);
        host.pod.insert("resources".to_owned(), json!({ "limits": { "cpu": 1 } }));
        let mut plan = plan(&[("w0", host)], &[("outside", "w0")]);
        plan.spread_pods();
        let pods = plan.pods();
        assert_eq!(pods[0].2.pod["resources"], json!({ "limits": { "cpu": 1 } }));
        assert_eq!((pods[0].0.as_str(), pods[0].1.as_str()), ("w0-server-1", "server"));
        assert_eq!(pods[0].3, [5250]);
    }
}
