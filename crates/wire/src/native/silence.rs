//! How long the other end may say nothing.

/// The longest round trip that is allowed for: a slow path's queue holds no message for longer.
const RTT_LIMIT_NS: u64 = 5_000_000_000;

/// When the other end was last heard, and how far away it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    heard_ns: u64,
    rtt_ns: u64,
}

impl Silence {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { heard_ns: now_ns, rtt_ns: 0 }
    }

    /// The other end was heard.
    pub(super) fn record_heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
    }

    /// The connection's round-trip time, as its transport knows it.
    pub(super) fn record_round_trip(&mut self, rtt_ns: u64) {
        self.rtt_ns = rtt_ns.min(RTT_LIMIT_NS);
    }

    /// When a silence of `least_ns` and two round trips is over, and how long that is: the queue of a slow
    /// path can hold a message, and what is sent again for it, for so long.
    pub(super) fn deadline(&self, least_ns: u64) -> (u64, u64) {
        let after_ns = least_ns.saturating_add(2 * self.rtt_ns);
        (self.heard_ns.saturating_add(after_ns), after_ns)
    }
}
