//! How the reception deals with many at once.

use std::net::SocketAddr;

use super::reception::{Guest, Reception};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::pending::{Acquaintance, Origin};

/// Strangers have their turns for so long before others have theirs: some dozens of handshakes.
const STRANGERS_TURN_NS: u64 = 10 * MILLISECOND_NS;
/// A connection that comes for a test says whose it is within this time, as a rule.
const SHORTAGE_NS: u64 = 250 * MILLISECOND_NS;

impl Reception {
    /// There is no descriptor for another connection. While a test waits for its own, those that have come say in a
    /// moment whose they are, and leave the table that all share: only where that takes too long does one have to go.
    pub(super) fn make_room(&mut self) {
        let is_short_for_long = monotonic_ns() >= self.accepted_ns + SHORTAGE_NS;
        if is_short_for_long || self.awaiting_tests().next().is_none() {
            self.push_out_one();
        }
    }

    pub(super) fn push_out_one(&mut self) {
        if let Some(guest) = self.strangers.first_to_go() {
            self.remove(guest, Some("too many connections that asked for nothing".to_owned()));
        }
    }

    /// Notes how far the guest has come.
    pub(super) fn place(&mut self, guest: usize) {
        match self.guests.get(&guest).map(|who| (who.client(), who.acquaintance())) {
            Some((client, Some(acquaintance))) => {
                self.strangers.place(guest, Origin::of(client), acquaintance);
            }
            Some((_, None)) | None => self.strangers.remove(guest),
        }
    }

    /// Something is to be read. Who holds a test is heard at once, and so is what a connection says
    /// it is: that costs nothing. For TLS strangers have their turns.
    pub(super) fn take_notice(&mut self, guest: usize) {
        match self.guests.get(&guest) {
            Some(Guest::Arriving(arrival)) if !arrival.has_spoken => self.identify(guest),
            Some(known) if known.acquaintance().is_none() => self.handle_ready(guest),
            Some(stranger) => self.turns.push(guest, Origin::of(stranger.client())),
            None => {}
        }
    }

    pub(super) fn give_turns(&mut self) {
        let until_ns = monotonic_ns() + STRANGERS_TURN_NS;
        for guest in std::mem::take(&mut self.unread) {
            self.take_notice(guest);
        }
        while let Some(guest) = self.turns.pop() {
            self.handle_ready(guest);
            self.place(guest);
            if monotonic_ns() > until_ns {
                return;
            }
        }
    }
}

impl Guest {
    fn client(&self) -> SocketAddr {
        match self {
            Guest::Arriving(arrival) => arrival.client,
            Guest::Control(control) => control.client,
        }
    }

    /// How far a stranger has come; `None` of one that holds a test or waits for one.
    fn acquaintance(&self) -> Option<Acquaintance> {
        match self {
            Guest::Arriving(arrival) if arrival.has_spoken => Some(Acquaintance::Spoken),
            Guest::Arriving(_) => Some(Acquaintance::Silent),
            Guest::Control(control) => control.acquaintance(),
        }
    }
}
