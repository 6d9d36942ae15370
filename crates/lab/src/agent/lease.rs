//! How long a peer may be silent.

/// A time that begins anew with everything that is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    length_ns: u64,
    heard_ns: u64,
}

impl Lease {
    /// A lease of this length that begins now, on a clock that never goes back.
    pub fn new(length_ns: u64, now_ns: u64) -> Self {
        Self { length_ns, heard_ns: now_ns }
    }

    /// The peer was heard. A lease that was over stays over: the lines of a controller that was
    /// stopped for longer than the lease arrive late, all at once.
    pub fn renew(&mut self, now_ns: u64) {
        if !self.is_over(now_ns) {
            self.heard_ns = self.heard_ns.max(now_ns);
        }
    }

    /// Whether the peer has been silent for the whole length.
    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.ends_ns()
    }

    /// When the lease is over, unless it is renewed before.
    pub fn ends_ns(&self) -> u64 {
        self.heard_ns.saturating_add(self.length_ns)
    }

    /// How long nothing was heard, nanoseconds.
    pub fn silent_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.heard_ns)
    }

    /// The length, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }
}
