//! Accepted connections whose handshake isn't done, and which of them makes room for others.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::undecided::Undecided;
use crate::acceptor::{Origin, Pending};

/// Accepted connections whose handshake isn't done.
pub(super) struct HalfOpen {
    /// The place of each in the endpoint, and since when it is there.
    pending: Pending<(usize, Instant)>,
    most: usize,
    /// How long a handshake may take.
    limit: Duration,
    /// Clients that the endpoint's user hasn't decided about, where it decides.
    pub(super) undecided: Option<Undecided>,
}

/// What becomes of a connection that a client begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Accept,
    /// The client must first show that it receives at its address (RFC 9000, section 8.1.2).
    Retry,
    /// It comes from where most come from.
    Ignore,
    /// It is accepted, and the one at this place goes.
    Replace(usize),
}

impl HalfOpen {
    pub(super) fn new(most: usize, limit: Duration) -> Self {
        Self { pending: Pending::new(0), most, limit, undecided: None }
    }

    /// How to reply to a new client; `shown`: whether its address is validated. A client that is replaced is
    /// forgotten.
    pub(super) fn reply(&mut self, from: SocketAddr, shown: bool) -> Reply {
        let count = self.pending.len();
        if !shown && count >= self.most / 4 {
            return Reply::Retry;
        }
        if count < self.most {
            return Reply::Accept;
        }
        let Some(number) = self.pending.first_to_go() else { return Reply::Ignore };
        if self.pending.origin(number) == Some(Origin::of(from)) {
            return Reply::Ignore;
        }
        self.pending.remove(number).map_or(Reply::Ignore, |(place, _)| Reply::Replace(place))
    }

    /// One is accepted; its number.
    pub(super) fn add(&mut self, from: SocketAddr, place: usize, now: Instant) -> usize {
        self.pending.add(from, (place, now))
    }

    /// One is done, or gone.
    pub(super) fn remove(&mut self, number: usize) {
        self.pending.remove(number);
    }

    /// The place of one that has taken too long, and is forgotten.
    pub(super) fn poll_overdue(&mut self, now: Instant) -> Option<usize> {
        let (number, &(place, since)) = self.pending.iter().next()?;
        if now.saturating_duration_since(since) < self.limit {
            return None;
        }
        self.remove(number);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn from(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 4433)
    }

    #[test]
    fn a_flood_makes_room_and_is_asked_to_show_its_address() {
        let (mut half_open, now) = (HalfOpen::new(8, LIMIT), Instant::now());
        let (flood, client) = (from("192.0.2.1"), from("192.0.2.2"));
        for place in 0..2 {
            assert_eq!(half_open.reply(flood, false), Reply::Accept);
            half_open.add(flood, place, now);
        }
        assert_eq!(half_open.reply(flood, false), Reply::Retry);
        for place in 2..8 {
            assert_eq!(half_open.reply(flood, true), Reply::Accept);
            half_open.add(flood, place, now);
        }
        assert_eq!(half_open.reply(flood, true), Reply::Ignore);
        assert_eq!(half_open.reply(client, false), Reply::Retry);
        assert_eq!(half_open.reply(client, true), Reply::Replace(0));
        half_open.add(client, 0, now);
        assert_eq!(half_open.reply(flood, true), Reply::Ignore);

        assert_eq!(half_open.poll_overdue(now + LIMIT / 2), None);
        let overdue = std::iter::from_fn(|| half_open.poll_overdue(now + LIMIT));
        assert_eq!(overdue.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 0]);
        assert_eq!(half_open.reply(flood, false), Reply::Accept);
    }
}
