//! A sender in bulk lets others on its processor have a turn now and then.

use super::counts::record_yield;

/// After so many bytes a sender of datagrams without a rate does. A receiver there has at most half of the
/// processor, and what a faster sender fills its buffer with beyond that is lost. (Beside iperf3's receiver with
/// buffers of 4 MiB, half of the datagrams of 64 bytes were lost, four fifths of those of 1400, and 1.3 and 1.4
/// times as many arrive now; with 1 and 4 MiB fewer. On another processor it changes nothing.)
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
