//! Whose turn it is where work for many costs time: that of each origin, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::pending::Origin;

/// Clients that have said something, or gone.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    queues: BTreeMap<Origin, BTreeSet<usize>>,
    last: Option<Origin>,
    /// Clients of which more has arrived than was taken at once.
    unread: Vec<usize>,
}

impl Turns {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.unread.is_empty()
    }

    /// More has arrived of the client than was taken at once.
    pub(crate) fn push_unread(&mut self, client: usize) {
        self.unread.push(client);
    }

    /// The clients of which more has arrived.
    pub(crate) fn take_unread(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.unread)
    }

    /// The client shall have a turn.
    pub(crate) fn push(&mut self, client: usize, origin: Origin) {
        self.queues.entry(origin).or_default().insert(client);
    }

    /// The client is gone.
    pub(crate) fn remove(&mut self, client: usize, origin: Origin) {
        if let Some(queue) = self.queues.get_mut(&origin) {
            queue.remove(&client);
            if queue.is_empty() {
                self.queues.remove(&origin);
            }
        }
    }

    /// Whose turn it is: that of the next origin's newest client. Where there are more than can be
    /// served, the oldest are about to be pushed out, and work for them would be lost.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.queues.range((after, Bound::Unbounded)).next();
        let (origin, queue) = next.or_else(|| self.queues.first_key_value())?;
        let (origin, client) = (*origin, *queue.last()?);
        self.last = Some(origin);
        self.remove(client, origin);
        Some(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(address: &str) -> Origin {
        Origin::of(std::net::SocketAddr::new(address.parse().unwrap(), 1))
    }

    #[test]
    fn each_origin_has_its_turn() {
        let [one, two, three] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(origin);
        let mut turns = Turns::default();
        for (client, origin) in [(1, one), (2, one), (3, one), (4, two), (5, three), (6, three)] {
            turns.push(client, origin);
            turns.push(client, origin);
        }
        turns.remove(6, three);
        let order: Vec<usize> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, [3, 4, 5, 2, 1]);
        assert!(turns.is_empty());
    }
}
