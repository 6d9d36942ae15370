//! Which hosts measure against which.

use serde::{Deserialize, Serialize};

/// The most pairs of a plan.
const PAIRS_MAX: usize = 4096;

/// A client host and a server host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Its number, from 1: pair p of group g is scale_up * (g - 1) + p.
    pub number: u32,
    /// The client's host.
    pub client: String,
    /// The server's host.
    pub server: String,
    /// The address of the server.
    pub address: String,
    /// The port of the server; 0: whichever is free.
    pub port: u16,
}

/// How pairs are made of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Client and server on the same host, for each of the first `scale_out` hosts.
    Intranode,
    /// The client on host 2k, the server on host 2k + 1.
    Internode,
    /// Clients on the host outside, servers on the others.
    Ingress {
        /// The host outside.
        outside: String,
    },
    /// Clients on the others, servers on the host outside.
    Egress {
        /// The host outside.
        outside: String,
    },
    /// Two hosts, in one direction or both.
    Interhost(Crossing),
    /// These, client first.
    Pairs(Vec<(String, String)>),
    /// Every host against every other, in both directions.
    Mesh,
    /// All hosts against one.
    Incast {
        /// The one, which has the servers.
        to: String,
    },
}

/// The directions of [`Topology::Interhost`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Crossing {
    /// The clients on the first host.
    #[default]
    Forward,
    /// The clients on the second host.
    Reverse,
    /// Odd pairs forward, even pairs in reverse: twice as many.
    Both,
}

/// A topology with the hosts that it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// How pairs are made.
    pub topology: Topology,
    /// The hosts in order, without the one outside.
    pub hosts: Vec<String>,
    /// Groups, each of a host or two; absent: as many as the hosts give.
    pub scale_out: Option<u32>,
    /// Pairs of each group.
    pub scale_up: u32,
}

/// Why there are no such pairs: a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError(pub String);

impl Placement {
    /// The pairs as (client, server), in order of their numbers.
    ///
    /// # Errors
    ///
    /// [`TopologyError`] where there are too few hosts, or too many pairs.
    pub fn pairs(&self) -> Result<Vec<(String, String)>, TopologyError> {
        let groups = self.groups()?;
        let each = usize::try_from(self.scale_up).unwrap_or(usize::MAX);
        let count = groups.len().checked_mul(each).filter(|count| *count <= PAIRS_MAX);
        if count.is_none() {
            let text = format!(
                "topology has more than {PAIRS_MAX} pairs: lower scale_up ({}) or scale_out",
                self.scale_up
            );
            return Err(TopologyError(text));
        }
        if self.topology == Topology::Interhost(Crossing::Both) {
            // One group: odd pairs forward, even pairs in reverse.
            let turns = std::iter::repeat_n(&groups, each).flatten();
            return Ok(turns.cloned().collect());
        }
        let all = groups.iter().flat_map(|group| std::iter::repeat_n(group.clone(), each));
        Ok(all.collect())
    }

    fn groups(&self) -> Result<Vec<(String, String)>, TopologyError> {
        let pair = |client: &String, server: &String| (client.clone(), server.clone());
        let hosts = &self.hosts;
        Ok(match &self.topology {
            Topology::Intranode => {
                self.first_groups(hosts.iter().map(|host| pair(host, host)).collect(), 1)?
            }
            Topology::Internode => {
                let pairs = hosts.chunks_exact(2).filter_map(|two| match two {
                    [client, server] => Some(pair(client, server)),
                    _ => None,
                });
                self.first_groups(pairs.collect(), 2)?
            }
            Topology::Ingress { outside } => {
                self.first_groups(hosts.iter().map(|host| pair(outside, host)).collect(), 1)?
            }
            Topology::Egress { outside } => {
                self.first_groups(hosts.iter().map(|host| pair(host, outside)).collect(), 1)?
            }
            Topology::Interhost(crossing) => {
                let [first, second] = hosts.as_slice() else {
                    return Err(self.too_few("exactly two hosts"));
                };
                match crossing {
                    Crossing::Forward => vec![pair(first, second)],
                    Crossing::Reverse => vec![pair(second, first)],
                    Crossing::Both => vec![pair(first, second), pair(second, first)],
                }
            }
            Topology::Pairs(pairs) => pairs.clone(),
            Topology::Mesh => {
                if hosts.len() < 2 {
                    return Err(self.too_few("two hosts at least"));
                }
                let others = hosts.iter().flat_map(|client| {
                    hosts.iter().filter(move |server| *server != client).map(move |s| (client, s))
                });
                others.map(|(client, server)| pair(client, server)).collect()
            }
            Topology::Incast { to } => {
                let from: Vec<&String> = hosts.iter().filter(|host| *host != to).collect();
                if from.is_empty() {
                    return Err(self.too_few("a host at least beside the one in incast.to"));
                }
                from.into_iter().map(|client| pair(client, to)).collect()
            }
        })
    }

    /// The first `scale_out` groups.
    fn first_groups(
        &self,
        groups: Vec<(String, String)>,
        hosts_each: u32,
    ) -> Result<Vec<(String, String)>, TopologyError> {
        let wanted = self
            .scale_out
            .map_or(groups.len().max(1), |count| usize::try_from(count).unwrap_or(usize::MAX));
        if groups.len() < wanted {
            let needed = wanted.saturating_mul(usize::try_from(hosts_each).unwrap_or(1));
            return Err(self.too_few(&format!("{needed} hosts for {wanted} groups")));
        }
        Ok(groups.into_iter().take(wanted).collect())
    }

    fn too_few(&self, needed: &str) -> TopologyError {
        let name = self.topology.name();
        let given = match self.hosts.as_slice() {
            [] => "none".to_owned(),
            hosts => hosts.join(", "),
        };
        TopologyError(format!(
            "topology {name} needs {needed}, and topology.hosts has {given}: name more hosts, or \
             lower scale_out"
        ))
    }
}

impl Topology {
    /// The names of all kinds.
    pub const KINDS: [&'static str; 8] =
        ["intranode", "internode", "ingress", "egress", "interhost", "pairs", "mesh", "incast"];

    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Intranode => "intranode",
            Self::Internode => "internode",
            Self::Ingress { .. } => "ingress",
            Self::Egress { .. } => "egress",
            Self::Interhost(_) => "interhost",
            Self::Pairs(_) => "pairs",
            Self::Mesh => "mesh",
            Self::Incast { .. } => "incast",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(topology: Topology, hosts: &[&str], out: Option<u32>, up: u32) -> String {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let placement = Placement { topology, hosts, scale_out: out, scale_up: up };
        match placement.pairs() {
            Ok(pairs) => pairs
                .iter()
                .map(|(client, server)| format!("{client}{server}"))
                .collect::<Vec<_>>()
                .join(" "),
            Err(TopologyError(why)) => why,
        }
    }

    #[test]
    fn pairs_of_each_kind() {
        let outside = || "o".to_owned();
        let abcd = ["a", "b", "c", "d"];
        for (topology, hosts, out, up, expected) in [
            (Topology::Intranode, &abcd[..2], None, 2, "aa aa bb bb"),
            (Topology::Intranode, &abcd[..], Some(1), 1, "aa"),
            (Topology::Internode, &abcd[..], None, 1, "ab cd"),
            (Topology::Internode, &abcd[..], Some(2), 2, "ab ab cd cd"),
            (Topology::Ingress { outside: outside() }, &abcd[..2], None, 1, "oa ob"),
            (Topology::Egress { outside: outside() }, &abcd[..2], None, 2, "ao ao bo bo"),
            (Topology::Interhost(Crossing::Forward), &abcd[..2], None, 2, "ab ab"),
            (Topology::Interhost(Crossing::Reverse), &abcd[..2], None, 1, "ba"),
            (Topology::Interhost(Crossing::Both), &abcd[..2], None, 2, "ab ba ab ba"),
            (Topology::Mesh, &abcd[..3], None, 1, "ab ac ba bc ca cb"),
            (Topology::Incast { to: "b".into() }, &abcd[..3], None, 1, "ab cb"),
            (Topology::Pairs(vec![("a".into(), "c".into())]), &abcd[..], None, 2, "ac ac"),
        ] {
            assert_eq!(placed(topology, hosts, out, up), expected);
        }
    }

    #[test]
    fn too_few_hosts_are_named() {
        for (topology, hosts, out, part) in [
            (Topology::Internode, &["a", "b"][..], Some(2), "needs 4 hosts for 2 groups"),
            (Topology::Internode, &["a"], None, "needs 2 hosts for 1 groups"),
            (Topology::Interhost(Crossing::Forward), &["a"], None, "exactly two hosts"),
            (Topology::Mesh, &["a"], None, "two hosts at least"),
            (Topology::Incast { to: "a".into() }, &["a"], None, "beside the one in incast.to"),
            (Topology::Intranode, &["a"], Some(7), "topology.hosts has a:"),
        ] {
            let why = placed(topology, hosts, out, 1);
            assert!(why.contains(part), "{why}");
        }
        assert!(placed(Topology::Mesh, &["a", "b"], None, 4000).contains("more than 4096 pairs"));
    }
}
