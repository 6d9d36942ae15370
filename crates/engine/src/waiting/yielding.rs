//! A bulk sender yields its processor now and then.

use super::counts::record_yield;

/// A sender of datagrams without a rate yields after so many bytes. A receiver on its processor gets at most half
/// of the processor, and datagrams that a faster sender puts into its buffer beyond that are lost.
pub(crate) const DATAGRAM_BYTES_PER_YIELD: usize = 2 << 20;

/// Yields the processor after every so many bytes.
pub(crate) struct Yielding {
    every_bytes: usize,
    unyielded_bytes: usize,
}

impl Yielding {
    pub(crate) fn new(every_bytes: usize) -> Self {
        Self { every_bytes, unyielded_bytes: 0 }
    }

    #[inline]
    pub(crate) fn record_sent(&mut self, bytes: usize) {
        self.unyielded_bytes += bytes;
        if self.unyielded_bytes >= self.every_bytes {
            self.unyielded_bytes = 0;
            rustix::thread::sched_yield();
            record_yield();
        }
    }
}
