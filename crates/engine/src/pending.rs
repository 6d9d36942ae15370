//! Guests that hold no test: which of them has its turn next, and which goes when they are many.
//!
//! A flood must not cost others their place. So nobody is judged by its age alone: the guests of
//! one origin that have come equally far are a group, and the oldest of the largest group goes. A
//! client is pushed out only by guests of its own kind, and only while they are the most; those of
//! another address push each other out. Work is shared out likewise, a turn for each origin.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Bound;

/// Where a guest comes from: its IPv4 address, or the network (/64) of its IPv6 address, all of
/// which one host may use (RFC 7934).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin(IpAddr);

impl Origin {
    pub(crate) fn of(client: SocketAddr) -> Self {
        Self(match client.ip().to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
            }
        })
    }
}

/// How far a stranger has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Acquaintance {
    /// It has said nothing, or not all of a client's first words.
    Silent,
    /// It has said them.
    Spoken,
    /// The server has answered.
    Answered,
    /// TLS is agreed on.
    Agreed,
    /// It had a test, whose result it may still be taking in.
    Served,
}

type Group = (Origin, Acquaintance);

/// The guests that hold no test.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    groups: BTreeMap<Group, BTreeSet<usize>>,
    group_of: HashMap<usize, Group>,
}

impl Strangers {
    pub(crate) fn len(&self) -> usize {
        self.group_of.len()
    }

    /// A guest is here, or has come further. Guests are numbered as they arrive.
    pub(crate) fn place(&mut self, guest: usize, origin: Origin, acquaintance: Acquaintance) {
        let group = (origin, acquaintance);
        if self.group_of.get(&guest) != Some(&group) {
            self.remove(guest);
            self.group_of.insert(guest, group);
            self.groups.entry(group).or_default().insert(guest);
        }
    }

    /// A guest is gone, or no stranger any more.
    pub(crate) fn remove(&mut self, guest: usize) {
        let Some(group) = self.group_of.remove(&guest) else { return };
        if let Some(guests) = self.groups.get_mut(&group) {
            guests.remove(&guest);
            if guests.is_empty() {
                self.groups.remove(&group);
            }
        }
    }

    /// Who goes first: the oldest of the largest group. Of groups of one size, one that has come
    /// less far; of these, the one with the oldest guest.
    pub(crate) fn first_to_go(&self) -> Option<usize> {
        let groups = self.groups.iter().filter_map(|((_, acquaintance), guests)| {
            let oldest = *guests.first()?;
            Some((guests.len(), Reverse(*acquaintance), Reverse(oldest)))
        });
        groups.max().map(|(_, _, Reverse(oldest))| oldest)
    }
}

/// Strangers that have said something, or gone.
#[derive(Debug, Default)]
pub(super) struct Turns {
    queues: BTreeMap<Origin, BTreeSet<usize>>,
    last: Option<Origin>,
}

impl Turns {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// The guest shall have a turn.
    pub(super) fn push(&mut self, guest: usize, origin: Origin) {
        self.queues.entry(origin).or_default().insert(guest);
    }

    /// The guest is gone.
    pub(super) fn remove(&mut self, guest: usize, origin: Origin) {
        if let Some(queue) = self.queues.get_mut(&origin) {
            queue.remove(&guest);
            if queue.is_empty() {
                self.queues.remove(&origin);
            }
        }
    }

    /// Whose turn it is: that of the next origin's newest guest. Where there are more than can be
    /// served, the oldest are about to be pushed out, and work for them would be lost.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.queues.range((after, Bound::Unbounded)).next();
        let (origin, queue) = next.or_else(|| self.queues.first_key_value())?;
        let (origin, guest) = (*origin, *queue.last()?);
        self.last = Some(origin);
        self.remove(guest, origin);
        Some(guest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(address: &str) -> Origin {
        Origin::of(SocketAddr::new(address.parse().unwrap(), 1))
    }

    #[test]
    fn an_ipv6_network_is_one_origin() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:1"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_ne!(origin("192.0.2.1"), origin("192.0.2.2"));
        assert_eq!(origin("192.0.2.1"), origin("::ffff:192.0.2.1"));
    }

    #[test]
    fn a_flood_pushes_out_its_own() {
        let (flood, client) = (origin("192.0.2.1"), origin("192.0.2.2"));
        let mut strangers = Strangers::default();
        strangers.place(0, client, Acquaintance::Silent);
        // From the client's own address too, once it has said something.
        strangers.place(1, flood, Acquaintance::Silent);
        strangers.place(1, flood, Acquaintance::Answered);
        for guest in 2..1_000 {
            strangers.place(guest, flood, Acquaintance::Silent);
            if strangers.len() > 100 {
                let out = strangers.first_to_go().unwrap();
                assert!(out > 1, "{out}");
                strangers.remove(out);
            }
        }
        assert_eq!(strangers.len(), 100);
        // Alike in all, the oldest goes.
        let mut alike = Strangers::default();
        for guest in [7, 5, 6] {
            alike.place(guest, origin(&format!("192.0.2.{guest}")), Acquaintance::Silent);
        }
        assert_eq!(alike.first_to_go(), Some(5));
        alike.place(5, origin("192.0.2.5"), Acquaintance::Agreed);
        assert_eq!(alike.first_to_go(), Some(6));
    }

    #[test]
    fn each_origin_has_its_turn() {
        let [one, two, three] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(origin);
        let mut turns = Turns::default();
        for (guest, origin) in [(1, one), (2, one), (3, one), (4, two), (5, three), (6, three)] {
            turns.push(guest, origin);
            turns.push(guest, origin);
        }
        turns.remove(6, three);
        let order: Vec<usize> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, [3, 4, 5, 2, 1]);
        assert!(turns.is_empty());
    }
}
