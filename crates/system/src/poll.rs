//! Waiting for descriptors until a time.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::clock::{SECOND_NS, monotonic_ns};

/// A length of time as system calls take it.
pub fn timespec(wait_ns: u64) -> Timespec {
    Timespec { tv_sec: (wait_ns / SECOND_NS) as i64, tv_nsec: (wait_ns % SECOND_NS) as _ }
}

/// Waits until one of the descriptors is ready, or until a time (monotonic, ns); whether one is. A signal ends the
/// wait as the time does.
pub fn poll_until(polled: &mut [PollFd<'_>], until_ns: u64) -> bool {
    let wait_ns = until_ns.saturating_sub(monotonic_ns());
    poll(polled, Some(&timespec(wait_ns))).is_ok_and(|ready| ready > 0)
}

/// Likewise, until one of them can be read.
pub fn readable_until<'a>(
    sources: impl IntoIterator<Item = BorrowedFd<'a>>,
    until_ns: u64,
) -> bool {
    let watched = |source| PollFd::from_borrowed_fd(source, PollFlags::IN);
    let mut polled: Vec<PollFd<'_>> = sources.into_iter().map(watched).collect();
    poll_until(&mut polled, until_ns)
}
