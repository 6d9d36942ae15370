//! A server without clients ends after a while.

use crate::clock::monotonic_ns;

/// When a server without a test ends.
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    /// Absent: never.
    limit_ns: Option<u64>,
    busy_ns: u64,
}

impl IdleTimeout {
    pub(crate) fn new(limit_ns: Option<u64>) -> Self {
        Self { limit_ns, busy_ns: monotonic_ns() }
    }

    /// The server has something to do.
    pub(crate) fn note_busy(&mut self) {
        self.busy_ns = monotonic_ns();
    }

    /// The time after which it ends, where it has had nothing to do for so long.
    pub(crate) fn overdue_ns(&self) -> Option<u64> {
        let idle_ns = monotonic_ns().saturating_sub(self.busy_ns);
        self.limit_ns.filter(|limit_ns| idle_ns >= *limit_ns)
    }
}
