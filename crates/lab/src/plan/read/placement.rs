//! `[topology]`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fields, Node, PlanError, read_words, suggest};
use crate::plan::{Crossing, HostSpec, Pair, Placement, Topology, TopologyError};

/// The port of the first pair where a workload's server can't choose one.
const FIRST_PORT: u16 = 20_000;
/// The most groups, and the most pairs of a group.
const SCALE_MAX: u32 = 4096;

/// Pairs whose ports may not be chosen yet.
pub(super) struct Placed {
    pub(super) pairs: Vec<Pair>,
    /// The port of the first pair, as written.
    first_port: Option<u16>,
}

/// Reads the topology and makes the pairs.
pub(super) fn read_placement(
    node: Option<Node>,
    hosts: &BTreeMap<String, HostSpec>,
    order: &[String],
) -> Result<Placed, PlanError> {
    let mut fields = Fields::new("topology", node.unwrap_or(Node::Table(Vec::new())))?;
    let named = Named { hosts };
    let written = match fields.take("pairs") {
        None => None,
        Some(node) => Some(named.read_pairs(node)?),
    };
    let kind = read_kind(&mut fields, written.is_some())?;
    let mut placement = Placement {
        hosts: named.list(&mut fields, "hosts")?.unwrap_or_else(|| order.to_vec()),
        scale_out: fields.count("scale_out", 1, SCALE_MAX)?,
        scale_up: fields.count("scale_up", 1, SCALE_MAX)?.unwrap_or(1),
        topology: Topology::Intranode,
    };
    placement.topology = match kind.as_str() {
        "internode" => Topology::Internode,
        "ingress" => Topology::Ingress { outside: named.outside(&mut fields, &mut placement)? },
        "egress" => Topology::Egress { outside: named.outside(&mut fields, &mut placement)? },
        "interhost" => Topology::Interhost(read_crossing(&mut fields)?),
        "mesh" => {
            placement.hosts = named.list(&mut fields, "mesh")?.unwrap_or(placement.hosts);
            Topology::Mesh
        }
        "incast" => named.read_incast(&mut fields, &mut placement)?,
        "pairs" => {
            let pairs = written.iter().flatten();
            Topology::Pairs(
                pairs.map(|(client, server, _)| (client.clone(), server.clone())).collect(),
            )
        }
        _ => Topology::Intranode,
    };
    let first_port = fields.count("port", 1, u16::MAX.into())?;
    let first_port = first_port.and_then(|port| u16::try_from(port).ok());
    fields.finish()?;
    let made = placement.pairs().map_err(|TopologyError(why)| PlanError::new("topology", why))?;
    let each = usize::try_from(placement.scale_up).unwrap_or(1).max(1);
    let mut pairs = Vec::with_capacity(made.len());
    for (place, (client, server)) in made.into_iter().enumerate() {
        let address = named.address(&client, &server)?;
        let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
        let port = written.as_ref().and_then(|written| written.get(place / each)?.2);
        if each > 1 && port.is_some() {
            let why = "is given beside scale_up: leave it out, and give topology.port";
            return Err(PlanError::new("topology.pairs.port", why));
        }
        pairs.push(Pair { number, client, server, address, port: port.unwrap_or(0) });
    }
    Ok(Placed { pairs, first_port })
}

fn read_kind(fields: &mut Fields, has_pairs: bool) -> Result<String, PlanError> {
    let has = |fields: &Fields, name: &str| fields.has(name);
    let implied: Vec<&str> =
        [("pairs", has_pairs), ("mesh", has(fields, "mesh")), ("incast", has(fields, "incast"))]
            .into_iter()
            .filter_map(|(name, is_there)| is_there.then_some(name))
            .collect();
    let kind = fields.word("kind")?;
    let kind = match (kind, implied.as_slice()) {
        (None, []) => "intranode".to_owned(),
        (None, [one]) => (*one).to_owned(),
        (Some(kind), []) => kind,
        (Some(kind), [one]) if kind == *one => kind,
        (Some(kind), [one, ..]) => {
            let why = format!("is {kind}, and topology has {one}: leave one of them out");
            return Err(fields.fault("kind", why));
        }
        (None, [one, other, ..]) => {
            let why = format!("is given beside {other}: leave one of them out");
            return Err(fields.fault(one, why));
        }
    };
    if kind == "pairs" && !has_pairs {
        let why = "is missing: write pairs = [[\"CLIENT\", \"SERVER\"]]";
        return Err(fields.fault("pairs", why));
    }
    if !Topology::KINDS.contains(&kind.as_str()) {
        let known = Topology::KINDS.map(str::to_owned);
        return Err(fields.fault("kind", format!("is {kind}: {}", suggest(&kind, &known))));
    }
    Ok(kind)
}

fn read_crossing(fields: &mut Fields) -> Result<Crossing, PlanError> {
    match fields.word("direction")?.as_deref() {
        None | Some("forward") => Ok(Crossing::Forward),
        Some("reverse") => Ok(Crossing::Reverse),
        Some("both") => Ok(Crossing::Both),
        Some(word) => {
            Err(fields.fault("direction", format!("is {word}: write forward, reverse or both")))
        }
    }
}

/// The hosts that names must be of.
struct Named<'a> {
    hosts: &'a BTreeMap<String, HostSpec>,
}

impl Named<'_> {
    fn check(&self, place: &str, name: &str) -> Result<(), PlanError> {
        if self.hosts.contains_key(name) {
            return Ok(());
        }
        let known: Vec<String> = self.hosts.keys().cloned().collect();
        let why = format!("names {name}, which is no host: {}", suggest(name, &known));
        Err(PlanError::new(place, why))
    }

    fn list(
        &self,
        fields: &mut Fields,
        name: &'static str,
    ) -> Result<Option<Vec<String>>, PlanError> {
        let Some(names) = fields.words(name)? else { return Ok(None) };
        let place = fields.place_of(name);
        let mut seen = BTreeSet::new();
        for name in &names {
            self.check(&place, name)?;
            if !seen.insert(name) {
                return Err(PlanError::new(&place, format!("has {name} twice: name it once")));
            }
        }
        Ok(Some(names))
    }

    fn outside(&self, fields: &mut Fields, placement: &mut Placement) -> Result<String, PlanError> {
        let Some(outside) = fields.word("outside")? else {
            return Err(fields.fault("outside", "is missing: name the host outside"));
        };
        self.check(&fields.place_of("outside"), &outside)?;
        placement.hosts.retain(|host| *host != outside);
        Ok(outside)
    }

    fn read_incast(
        &self,
        fields: &mut Fields,
        placement: &mut Placement,
    ) -> Result<Topology, PlanError> {
        let node = fields.take("incast").unwrap_or(Node::Table(Vec::new()));
        let mut incast = Fields::new("topology.incast", node)?;
        let Some(to) = incast.word("to")? else {
            return Err(incast.fault("to", "is missing: name the host with the servers"));
        };
        self.check("topology.incast.to", &to)?;
        if let Some(from) = self.list(&mut incast, "from")? {
            if from.contains(&to) {
                let why = format!("has {to}, which is incast.to: leave it out");
                return Err(PlanError::new("topology.incast.from", why));
            }
            placement.hosts = from;
        }
        incast.finish()?;
        Ok(Topology::Incast { to })
    }

    /// Client, server and port of each pair.
    fn read_pairs(&self, node: Node) -> Result<Vec<(String, String, Option<u16>)>, PlanError> {
        let Node::List(items) = node else {
            return Err(PlanError::new("topology.pairs", "is no list: write [[\"a\", \"b\"]]"));
        };
        if items.is_empty() {
            return Err(PlanError::new("topology.pairs", "is empty: write [[\"a\", \"b\"]]"));
        }
        let mut pairs = Vec::with_capacity(items.len());
        for (place, item) in items.into_iter().enumerate() {
            let place = format!("topology.pairs[{place}]");
            let pair = match item {
                Node::Table(_) => {
                    let mut fields = Fields::new(&place, item)?;
                    let client = fields.word("client")?;
                    let server = fields.word("server")?;
                    let port = fields.count("port", 1, u16::MAX.into())?;
                    fields.finish()?;
                    client.zip(server).map(|(client, server)| (client, server, port))
                }
                item => match read_words(&place, item)?.as_slice() {
                    [client, server] => Some((client.clone(), server.clone(), None)),
                    _ => None,
                },
            };
            let Some((client, server, port)) = pair else {
                let why = "is no pair: write [\"CLIENT\", \"SERVER\"], or a table with client, \
                           server and port";
                return Err(PlanError::new(&place, why));
            };
            self.check(&place, &client)?;
            self.check(&place, &server)?;
            pairs.push((client, server, port.and_then(|port| u16::try_from(port).ok())));
        }
        Ok(pairs)
    }

    /// The address at which a client reaches a server.
    fn address(&self, client: &str, server: &str) -> Result<String, PlanError> {
        let host = self.hosts.get(server);
        // A pod's address is known when it runs.
        if matches!(host, Some(HostSpec::Kubernetes(_))) {
            return Ok(String::new());
        }
        if let Some(address) = host.and_then(HostSpec::data_address) {
            return Ok(address.to_owned());
        }
        // A pod's address is known when it runs.
        if matches!(host, Some(HostSpec::Kubernetes(_))) {
            return Ok(String::new());
        }
        if client == server {
            return Ok("127.0.0.1".to_owned());
        }
        let why = format!(
            "is missing, and the client on {client} needs it: write the address of {server} that \
             {client} reaches"
        );
        Err(PlanError::new(&format!("hosts.{server}.data_address"), why))
    }
}

impl Placed {
    /// Gives pairs without a port theirs: from the written one on, or where a workload's server can't choose.
    pub(super) fn assign_ports(&mut self, needs_port: bool) -> Result<(), PlanError> {
        let first = self.first_port.or(needs_port.then_some(FIRST_PORT));
        if let Some(first) = first {
            for (place, pair) in self.pairs.iter_mut().enumerate().filter(|(_, p)| p.port == 0) {
                let port = u32::from(first) + u32::try_from(place).unwrap_or(u32::MAX / 2);
                pair.port = u16::try_from(port).map_err(|_| {
                    let why = format!(
                        "is {first}, and pair {} would have port {port}: begin at a lower one",
                        pair.number
                    );
                    PlanError::new("topology.port", why)
                })?;
            }
        }
        let mut taken: BTreeMap<(&str, u16), u32> = BTreeMap::new();
        for pair in self.pairs.iter().filter(|pair| pair.port != 0) {
            if let Some(other) = taken.insert((&pair.server, pair.port), pair.number) {
                let why = format!(
                    "collide: pairs {other} and {} both have their server on {} at port {}; give \
                     one of them another port, or leave the ports out",
                    pair.number, pair.server, pair.port
                );
                return Err(PlanError::new("topology.pairs", why));
            }
        }
        Ok(())
    }
}
