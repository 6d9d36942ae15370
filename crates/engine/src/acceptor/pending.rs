//! Clients that hold no test, and which of them is closed when there are too many. Every server uses this rule.
//!
//! A flood must not push out other clients, so age alone doesn't decide. The clients of one origin that have made
//! the same progress are a group, and the oldest of the largest group is closed. So a client is pushed out only by
//! its own group, and only while that group is the largest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Where a client comes from: its IPv4 address, or the network (/64) of its IPv6 address, all of
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

/// How far a client without a test has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Progress {
    /// It has sent nothing, or not all of a client's first bytes.
    Silent,
    /// It has sent them.
    Spoken,
    /// The server has answered.
    Answered,
    /// TLS is agreed on.
    Agreed,
    /// It had a test, whose result it may still be taking in.
    Served,
}

type Group = (Origin, Progress);

/// A client and what its server keeps of it.
#[derive(Debug)]
struct Entry<T> {
    kept: T,
    origin: Origin,
    /// How far it has come; `None`: it holds a test, and is never closed.
    progress: Option<Progress>,
}

/// The clients of a server, by their numbers, and which of them make room. They are numbered as they come.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    entries: BTreeMap<usize, Entry<T>>,
    groups: BTreeMap<Group, BTreeSet<usize>>,
    /// Clients in groups.
    waiting: usize,
    next: usize,
}

impl<T> Pending<T> {
    /// Without clients; the first client gets this number.
    pub(crate) fn new(first: usize) -> Self {
        Self { entries: BTreeMap::new(), groups: BTreeMap::new(), waiting: 0, next: first }
    }

    /// A client has come, and said nothing so far; its number.
    pub(crate) fn add(&mut self, client: SocketAddr, kept: T) -> usize {
        let number = self.next;
        self.next += 1;
        let entry = Entry { kept, origin: Origin::of(client), progress: None };
        self.entries.insert(number, entry);
        self.note(number, Some(Progress::Silent));
        number
    }

    /// A client has come so far; `None`: it holds a test, and is never closed.
    pub(crate) fn note(&mut self, number: usize, progress: Option<Progress>) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let before = std::mem::replace(&mut entry.progress, progress);
        if before == progress {
            return;
        }
        let origin = entry.origin;
        self.leave(number, origin, before);
        if let Some(progress) = progress {
            self.groups.entry((origin, progress)).or_default().insert(number);
            self.waiting += 1;
        }
    }

    /// Keeps something else of a client; `None`: it is gone.
    pub(crate) fn replace(&mut self, number: usize, with: impl FnOnce(T) -> Option<T>) {
        let Some(Entry { kept, origin, progress }) = self.entries.remove(&number) else { return };
        match with(kept) {
            Some(kept) => drop(self.entries.insert(number, Entry { kept, origin, progress })),
            None => self.leave(number, origin, progress),
        }
    }

    /// A client is gone; what was kept of it.
    pub(crate) fn remove(&mut self, number: usize) -> Option<T> {
        let Entry { kept, origin, progress } = self.entries.remove(&number)?;
        self.leave(number, origin, progress);
        Some(kept)
    }

    fn leave(&mut self, number: usize, origin: Origin, progress: Option<Progress>) {
        let Some(group) = progress.map(|progress| (origin, progress)) else { return };
        let Some(members) = self.groups.get_mut(&group) else { return };
        self.waiting -= usize::from(members.remove(&number));
        if members.is_empty() {
            self.groups.remove(&group);
        }
    }

    /// Clients, those with a test among them.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Clients that may have to make room.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn kept(&self, number: usize) -> Option<&T> {
        self.entries.get(&number).map(|entry| &entry.kept)
    }

    pub(crate) fn kept_mut(&mut self, number: usize) -> Option<&mut T> {
        self.entries.get_mut(&number).map(|entry| &mut entry.kept)
    }

    pub(crate) fn origin(&self, number: usize) -> Option<Origin> {
        self.entries.get(&number).map(|entry| entry.origin)
    }

    /// All of them, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.entries.iter().map(|(number, entry)| (*number, &entry.kept))
    }

    /// The client to close first: the oldest of the largest group. Of groups of one size, the group with
    /// less progress; of these, the group with the oldest client.
    pub(crate) fn first_to_go(&self) -> Option<usize> {
        self.largest_group().map(|(oldest, ..)| oldest)
    }

    /// Likewise, for clients that were promised a test: none makes room for another client of its own origin, and
    /// none that is alone in its group.
    pub(crate) fn first_to_go_for(&self, newcomer: Origin) -> Option<usize> {
        let (oldest, origin, count) = self.largest_group()?;
        (count > 1 && origin != newcomer).then_some(oldest)
    }

    fn largest_group(&self) -> Option<(usize, Origin, usize)> {
        let groups = self.groups.iter().filter_map(|((origin, progress), members)| {
            let oldest = *members.first()?;
            Some((members.len(), Reverse(*progress), Reverse(oldest), *origin))
        });
        groups.max().map(|(count, _, Reverse(oldest), origin)| (oldest, origin, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 1)
    }

    fn origin(address: &str) -> Origin {
        Origin::of(at(address))
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
        let [flood, client] = ["192.0.2.1", "192.0.2.2"].map(at);
        let mut pending = Pending::new(0);
        pending.add(client, ());
        // From the flood's own address too, once it has said something.
        let spoken = pending.add(flood, ());
        pending.note(spoken, Some(Progress::Answered));
        for _ in 2..1_000 {
            pending.add(flood, ());
            if pending.waiting() > 100 {
                let out = pending.first_to_go().unwrap();
                assert!(out > 1, "{out}");
                pending.remove(out);
            }
        }
        assert_eq!((pending.waiting(), pending.len()), (100, 100));
    }

    #[test]
    fn alike_in_all_the_oldest_goes() {
        let mut pending = Pending::new(5);
        let clients = ["192.0.2.7", "192.0.2.5", "192.0.2.6"];
        assert_eq!(clients.map(|client| pending.add(at(client), ())), [5, 6, 7]);
        assert_eq!(pending.first_to_go(), Some(5));
        pending.note(5, Some(Progress::Agreed));
        assert_eq!(pending.first_to_go(), Some(6));
    }

    #[test]
    fn a_client_with_a_test_is_never_closed() {
        let mut pending = Pending::new(0);
        let number = pending.add(at("192.0.2.1"), ());
        pending.note(number, None);
        assert_eq!((pending.first_to_go(), pending.waiting(), pending.len()), (None, 0, 1));
        pending.note(number, Some(Progress::Served));
        assert_eq!(pending.first_to_go(), Some(number));
        pending.remove(number);
        assert_eq!((pending.first_to_go(), pending.waiting(), pending.len()), (None, 0, 0));
    }

    #[test]
    fn a_promised_slot_goes_only_to_another_origin_and_only_from_a_group_of_several() {
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(at);
        let mut pending = Pending::new(0);
        pending.add(one, ());
        assert_eq!(pending.first_to_go_for(Origin::of(other)), None);
        pending.add(one, ());
        assert_eq!(pending.first_to_go_for(Origin::of(one)), None);
        assert_eq!(pending.first_to_go_for(Origin::of(other)), Some(0));
    }
}
