//! Clients that may be accepted, where the endpoint's user decides.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use quinn_proto::{ConnectionId, EcnCodepoint, Incoming, ServerConfig};

use super::super::first_flight::{Arrived, FirstFlight, destination};
use super::super::settings::UNDECIDED_TOTAL_BYTES;
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
    flights: Flights,
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
            && self.flights.link(&id) == Some(link)
        {
            self.flights.remove(&id);
        }
        Some(candidate)
    }

    /// Reads a datagram that may be one of a client's first, and spoils it: the client that it is of, its address, and
    /// what its packets say so far. A client whose message isn't whole and has no room to be kept counts as wrong.
    pub(super) fn read(&mut self, datagram: &mut [u8]) -> Option<(Link, SocketAddr, Arrived)> {
        let newest = self.newest.take().map(|link| (link, FirstFlight::default()));
        let id = destination(datagram)?;
        let (link, mut flight) = newest.or_else(|| self.flights.remove(&id))?;
        let (candidate, waits_at) = self.candidates.get_mut(&link.index)?;
        if candidate.link != link {
            return None;
        }
        let from = candidate.incoming.remote_address();
        let mut arrived = flight.record(datagram);
        let is_kept = arrived == Arrived::Part && self.flights.insert(id, link, flight);
        if arrived == Arrived::Part && !is_kept {
            arrived = Arrived::Wrong;
        }
        *waits_at = is_kept.then_some(id);
        Some((link, from, arrived))
    }
}

/// Messages of clients that aren't whole, by what the clients' packets go to.
#[derive(Default)]
struct Flights {
    all: HashMap<ConnectionId, (Link, FirstFlight)>,
    /// What is kept of all of them, which is at most [`UNDECIDED_TOTAL_BYTES`].
    bytes: usize,
}

impl Flights {
    fn link(&self, id: &ConnectionId) -> Option<Link> {
        self.all.get(id).map(|(link, _)| *link)
    }

    /// Keeps a message; whether there is room for it.
    fn insert(&mut self, id: ConnectionId, link: Link, flight: FirstFlight) -> bool {
        // Clients of other sockets may have the same id.
        self.remove(&id);
        let bytes = self.bytes + flight.kept_bytes();
        let has_room = bytes as u64 <= UNDECIDED_TOTAL_BYTES;
        if has_room {
            self.bytes = bytes;
            self.all.insert(id, (link, flight));
        }
        has_room
    }

    fn remove(&mut self, id: &ConnectionId) -> Option<(Link, FirstFlight)> {
        let (link, flight) = self.all.remove(id)?;
        self.bytes -= flight.kept_bytes();
        Some((link, flight))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::first_flight::tests::{crypto, packet};
    use super::*;

    #[test]
    fn what_is_kept_of_all_clients_together_is_bounded() {
        // One byte at the end takes the memory of all before it.
        let far = packet(b"a client", 0, &crypto((16 << 10) - 1, &[7]));
        let mut flights = Flights::default();
        let ids = (0_u64..).map(|number| ConnectionId::new(&number.to_be_bytes()));
        let link = Link { index: 1, generation: 0 };
        let insert = |flights: &mut Flights, id| {
            let mut flight = FirstFlight::default();
            assert_eq!(flight.record(&mut far.clone()), Arrived::Part);
            flights.insert(id, link, flight)
        };
        let kept = ids.take_while(|id| insert(&mut flights, *id)).count();
        assert!((900..=1024).contains(&kept), "{kept}");
        assert!(flights.bytes as u64 <= UNDECIDED_TOTAL_BYTES);
        let [first, other] =
            [0, 1 << 32].map(|number: u64| ConnectionId::new(&number.to_be_bytes()));
        assert!(!insert(&mut flights, other));
        assert!(insert(&mut flights, first), "the same client goes on");
        assert!(flights.remove(&first).is_some());
        assert!(insert(&mut flights, other));
        let all: Vec<_> = flights.all.keys().copied().collect();
        assert!(all.iter().all(|id| flights.remove(id).is_some()));
        assert_eq!(flights.bytes, 0);
    }
}
