//! Wakes a thread that polls.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;

use crate::clock::{SECOND_NS, monotonic_ns};
use crate::error::Error;

/// A file descriptor that becomes readable when somebody wakes its reader.
#[derive(Debug)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(crate) fn new() -> Result<Self, Error> {
        let opened = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        opened.map(Self::of).map_err(|error| {
            Error::Host(format!(
                "can't open another file descriptor ({error}): raise the limit (ulimit -n) or \
                 close some"
            ))
        })
    }

    /// The one that a descriptor belongs to.
    pub(crate) fn of(descriptor: OwnedFd) -> Self {
        Self(Arc::new(descriptor))
    }

    /// Its descriptor, for another file table.
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.0)
    }

    pub(crate) fn wake(&self) {
        // Fails only when so many calls are unread that one more makes no difference.
        let _woken_anyway = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Waits until somebody calls [`wake`](Self::wake), or until a time.
    pub(crate) fn wait(&self, until_ns: u64) {
        let wait_ns = until_ns.saturating_sub(monotonic_ns());
        let timeout =
            Timespec { tv_sec: (wait_ns / SECOND_NS) as i64, tv_nsec: (wait_ns % SECOND_NS) as _ };
        let mut polled = [PollFd::new(self, PollFlags::IN)];
        let _interrupted = poll(&mut polled, Some(&timeout));
        self.silence();
    }

    /// Makes it ready for the next call.
    pub(crate) fn silence(&self) {
        let mut calls = [0_u8; 8];
        // Fails only when nobody has called.
        let _silent_anyway = rustix::io::read(&*self.0, &mut calls);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
