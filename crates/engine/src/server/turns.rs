//! The order in which clients are served when many have sent something.

use std::net::{IpAddr, SocketAddr};

use super::acceptor::{Incoming, NativeAcceptor};
use super::test::Test;
use crate::acceptor::{Origin, Progress};
use crate::clock::{MILLISECOND_NS, monotonic_ns};

/// Pending clients have their turns for so long before others have theirs: some dozens of handshakes.
const PENDING_TURN_NS: u64 = 10 * MILLISECOND_NS;
/// A connection of a test usually sends its opening within this time.
const SHORTAGE_NS: u64 = 250 * MILLISECOND_NS;

impl NativeAcceptor {
    /// There is no descriptor for another connection. While a test waits for its connections, those accepted soon
    /// send their opening and leave the shared file table. Only if that takes too long, one is closed.
    pub(super) fn make_room(&mut self) {
        let is_short_for_long = monotonic_ns() >= self.listener.accepted_ns + SHORTAGE_NS;
        if is_short_for_long || !self.running_tests().any(Test::awaits_connections) {
            self.push_out_one();
        }
    }

    pub(super) fn push_out_one(&mut self) {
        if let Some(number) = self.clients.first_to_go() {
            self.remove(number, Some("too many connections without a request".to_owned()));
        }
    }

    /// Notes how far the client has come.
    pub(super) fn place(&mut self, number: usize) {
        let progress = self.clients.kept(number).and_then(Incoming::progress);
        self.clients.note(number, progress);
    }

    /// A client has data to read. Clients with a test are served at once, and so are a connection's first
    /// bytes, which cost nothing to read. TLS handshakes of pending clients take turns.
    pub(super) fn take_notice(&mut self, number: usize) {
        match self.clients.kept(number) {
            Some(Incoming::Arriving(arrival)) if !arrival.has_spoken => self.identify(number),
            Some(known) if known.progress().is_none() => self.handle_ready(number),
            Some(pending) => self.turns.push(number, Origin::of(pending.client())),
            None => {}
        }
    }

    pub(super) fn give_turns(&mut self) {
        let until_ns = monotonic_ns() + PENDING_TURN_NS;
        for number in self.turns.take_unread() {
            self.take_notice(number);
        }
        while let Some(number) = self.turns.pop() {
            self.handle_ready(number);
            self.place(number);
            if monotonic_ns() > until_ns {
                return;
            }
        }
    }
}

impl Incoming {
    fn client(&self) -> SocketAddr {
        match self {
            Incoming::Arriving(arrival) => arrival.client,
            Incoming::Control(control) => control.client,
        }
    }

    /// The address that it comes from, however the socket writes that.
    pub(super) fn address(&self) -> IpAddr {
        self.client().ip().to_canonical()
    }

    /// How far a pending client has come; `None` of one that holds a test or waits for one.
    fn progress(&self) -> Option<Progress> {
        match self {
            Incoming::Arriving(arrival) if arrival.has_spoken => Some(Progress::Spoken),
            Incoming::Arriving(_) => Some(Progress::Silent),
            Incoming::Control(control) => control.progress(),
        }
    }
}
