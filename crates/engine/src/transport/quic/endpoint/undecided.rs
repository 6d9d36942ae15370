//! Clients that may be accepted, where the endpoint's user decides.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use quinn_proto::{ConnectionId, EcnCodepoint, Incoming, ServerConfig};

use super::super::first_flight::{FirstFlight, destination};
use super::Link;

/// A client that may be accepted.
pub(super) struct Candidate {
    /// The slot that is reserved for it.
    pub(super) link: Link,
    /// The socket that it came to.
    pub(super) number: u32,
    pub(super) incoming: Incoming,
    pub(super) config: Arc<ServerConfig>,
    pub(super) packets: u64,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) half_open_number: usize,
}

/// Clients that the endpoint's user hasn't decided about.
#[derive(Default)]
pub(super) struct Undecided {
    /// By their slots, with what its packets go to where its first message isn't whole.
    candidates: HashMap<u32, (Candidate, Option<ConnectionId>)>,
    /// Messages that aren't whole, by what their packets go to.
    flights: HashMap<ConnectionId, (Link, FirstFlight)>,
    /// One that came with the datagram that is looked at.
    newest: Option<Link>,
}

impl Undecided {
    pub(super) fn insert(&mut self, candidate: Candidate) {
        self.newest = Some(candidate.link);
        self.candidates.insert(candidate.link.index, (candidate, None));
    }

    /// The link of the client in this slot.
    pub(super) fn link(&self, index: u32) -> Option<Link> {
        self.candidates.get(&index).map(|(candidate, _)| candidate.link)
    }

    /// A client that is decided about. A link of an earlier use of the slot names none.
    pub(super) fn take(&mut self, link: Link) -> Option<Candidate> {
        self.link(link.index).filter(|found| *found == link)?;
        let (candidate, id) = self.candidates.remove(&link.index)?;
        if let Some(id) = id
            && self.flights.get(&id).is_some_and(|(waiting, _)| *waiting == link)
        {
            self.flights.remove(&id);
        }
        Some(candidate)
    }

    /// Reads a datagram that may be one of a client's first; the client whose message is whole now, and what it
    /// offers.
    pub(super) fn read(&mut self, datagram: &[u8]) -> Option<(Link, SocketAddr, Vec<Vec<u8>>)> {
        let id = destination(datagram)?;
        let newest = self.newest.take().map(|link| (link, FirstFlight::default()));
        let (link, mut flight) = newest.or_else(|| self.flights.remove(&id))?;
        let (candidate, waits_at) = self.candidates.get_mut(&link.index)?;
        if candidate.link != link {
            return None;
        }
        *waits_at = None;
        let Some(offer) = flight.record(datagram) else {
            *waits_at = Some(id);
            self.flights.insert(id, (link, flight));
            return None;
        };
        Some((link, candidate.incoming.remote_address(), offer.protocols))
    }
}
