//! What every machine of a conversation has in common, so that one driver moves the bytes of all dialects.

use std::collections::VecDeque;

/// The time at which something happened, on the two clocks that a conversation needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds on any clock that never steps; time-outs count on it.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970 (UTC); only clock samples use it.
    pub utc_ns: i64,
}

impl Now {
    /// A time of which only the monotonic clock counts.
    pub fn at(monotonic_ns: u64) -> Self {
        Self { monotonic_ns, utc_ns: 0 }
    }
}

/// What a connection, or a flow beside it, shows of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Its bytes arrive on a flow of the load. A queue that flows and messages share may hold the messages.
    Life,
    /// It is so far away, ns: the connection's round-trip time, as its transport knows it.
    RoundTrip(u64),
    /// The transport retransmits what its machine has not acknowledged. To be told several times a second while that
    /// lasts, as it may be over before a message of the other end arrives.
    DarkPath,
}

/// One end of a control connection, as a pure state machine. Its caller owns the connection and the clock.
pub trait Machine {
    /// What the machine tells its caller.
    type Event;

    /// Bytes arrived. None at all are no event.
    fn handle_bytes(&mut self, now: Now, bytes: &[u8]);

    /// The other end closed its direction of the connection, or the connection broke.
    fn handle_end(&mut self, now: Now);

    /// Time has passed. Too early a call does nothing.
    fn handle_timeout(&mut self, now: Now);

    /// Something shows that the other end is there, or may be, while its machine says nothing.
    fn handle_sign(&mut self, _now: Now, _sign: Sign) {}

    /// Appends the next message to `into`; whether there was one. Ask only when the message before is written: what
    /// was not asked for counts as unsent.
    fn poll_transmit(&mut self, into: &mut Vec<u8>) -> bool;

    /// The next message by itself, for callers that look at each.
    fn poll_message(&mut self) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        self.poll_transmit(&mut message).then_some(message)
    }

    /// What happened next.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When (monotonic, ns) to call [`Machine::handle_timeout`]; `None`: nothing is awaited.
    fn next_time(&self) -> Option<u64>;

    /// Whether the conversation is over. Events and messages may be left: try to write the messages without
    /// waiting, then close.
    fn is_over(&self) -> bool;
}

/// A machine that begins later: until then bytes are lost on it, and nothing is said or due.
impl<M: Machine> Machine for Option<M> {
    type Event = M::Event;

    fn handle_bytes(&mut self, now: Now, bytes: &[u8]) {
        self.iter_mut().for_each(|machine| machine.handle_bytes(now, bytes));
    }

    fn handle_end(&mut self, now: Now) {
        self.iter_mut().for_each(|machine| machine.handle_end(now));
    }

    fn handle_timeout(&mut self, now: Now) {
        self.iter_mut().for_each(|machine| machine.handle_timeout(now));
    }

    fn handle_sign(&mut self, now: Now, sign: Sign) {
        self.iter_mut().for_each(|machine| machine.handle_sign(now, sign));
    }

    fn poll_transmit(&mut self, into: &mut Vec<u8>) -> bool {
        self.as_mut().is_some_and(|machine| machine.poll_transmit(into))
    }

    fn poll_event(&mut self) -> Option<M::Event> {
        self.as_mut()?.poll_event()
    }

    fn next_time(&self) -> Option<u64> {
        self.as_ref()?.next_time()
    }

    fn is_over(&self) -> bool {
        self.as_ref().is_some_and(Machine::is_over)
    }
}

/// Moves the first of the messages that wait to the end of `into`; whether there was one.
pub(crate) fn transmit_first(waiting: &mut VecDeque<Vec<u8>>, into: &mut Vec<u8>) -> bool {
    let first = waiting.pop_front();
    into.extend_from_slice(first.as_deref().unwrap_or_default());
    first.is_some()
}
