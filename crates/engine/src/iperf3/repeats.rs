//! What is said again because a path may lose it: the greetings of streams of datagrams, and their answers.

use std::os::fd::BorrowedFd;

use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::socket::tcp_status;

/// The shortest wait. An original at the other end takes what is said again for data where nothing was lost, so
/// that this has room for an end that is busy.
const LEAST_NS: u64 = 500 * MILLISECOND_NS;
/// Round trips that are waited for: as many as the first samples of RFC 6298 (2.2 and 2.3) come to.
const ROUND_TRIPS: u64 = 4;

/// How long an answer is waited for over the path of a control connection.
pub(super) fn wait_ns(control: BorrowedFd<'_>) -> u64 {
    let round_trip_us = tcp_status(control).map_or(0, |status| u64::from(status.rtt_us));
    LEAST_NS.max(round_trip_us.saturating_mul(1000 * ROUND_TRIPS))
}

/// When something is said again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeats {
    next_ns: u64,
    wait_ns: u64,
}

impl Repeats {
    /// It was said now, and is said again after this time.
    pub(super) fn after(wait_ns: u64) -> Self {
        Self { next_ns: monotonic_ns().saturating_add(wait_ns), wait_ns }
    }

    /// Whether it is time; the next wait has twice the length (RFC 6298, 5.5).
    pub(super) fn is_due(&mut self, now_ns: u64) -> bool {
        let due = now_ns >= self.next_ns;
        if due {
            self.wait_ns = self.wait_ns.saturating_mul(2);
            self.next_ns = now_ns.saturating_add(self.wait_ns);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND_NS;

    #[test]
    fn each_wait_has_twice_the_length() {
        let mut repeats = Repeats { next_ns: SECOND_NS, wait_ns: SECOND_NS };
        let due: Vec<u64> = (0..20).filter(|second| repeats.is_due(second * SECOND_NS)).collect();
        assert_eq!(due, [1, 3, 7, 15]);
    }
}
