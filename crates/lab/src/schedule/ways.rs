//! The ways of an attempt's clients to their servers.

use std::collections::BTreeMap;

use super::fleet::Fleet;
use super::run::Hosts;
use crate::host::Way;
use crate::plan::{Plan, Reached};

/// Where the servers of an attempt are reached.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// The server of each pair, as it told of itself; none for a pair that is left out.
    servers: Vec<Option<Reached>>,
    /// The ways to them that were asked for, by the pairs' places in the plan.
    ways: BTreeMap<usize, Way>,
}

impl Ways {
    /// Adds the server of the next pair, or that the pair is left out.
    pub(super) fn push(&mut self, server: Option<Reached>) {
        self.servers.push(server);
    }

    /// The server of a pair, to take what it tells.
    pub(super) fn server_mut(&mut self, place: usize) -> Option<&mut Reached> {
        self.servers.get_mut(place)?.as_mut()
    }

    /// Where the client of a pair reaches its server; none for a pair that is left out.
    pub(super) fn to(&self, place: usize) -> Option<Reached> {
        let mut reached = self.servers.get(place)?.clone()?;
        if let Some(Way::At(address, port)) = self.ways.get(&place) {
            (reached.address, reached.port) = (address.clone(), *port);
        }
        Some(reached)
    }

    /// Whether one of the ways is not there yet.
    pub(super) fn are_awaited(&self) -> bool {
        self.ways.values().any(|way| matches!(way, Way::Awaited(_)))
    }

    /// Asks for the ways that are not known yet; new sentences about those that are awaited.
    ///
    /// # Errors
    ///
    /// A sentence about the first way that can't be made.
    pub(super) fn look(
        &mut self,
        plan: &Plan,
        hosts: &Hosts,
        fleet: &mut dyn Fleet,
    ) -> Result<Vec<String>, String> {
        let mut said = Vec::new();
        for (place, pair) in plan.pairs.iter().enumerate() {
            let is_known = |way: &Way| !matches!(way, Way::Awaited(_));
            if self.ways.get(&place).is_some_and(is_known) {
                continue;
            }
            let (Some(Some(reached)), Some(server), Some(client)) =
                (self.servers.get(place), hosts.id(&pair.server), hosts.id(&pair.client))
            else {
                continue;
            };
            let number = pair.number;
            let way = fleet.reach(server, reached.port, client);
            let way =
                way.map_err(|why| format!("the server of pair {number} can't be reached: {why}"))?;
            if let Way::Awaited(Some(text)) = &way {
                said.push(format!("pair {number}: {text}"));
            }
            self.ways.insert(place, way);
        }
        Ok(said)
    }
}
