//! Wakes a thread that polls.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use crate::error::Error;
use crate::poll::poll_until;

/// A file descriptor that becomes readable when its reader is woken.
#[derive(Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// A new one.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn new() -> Result<Self, Error> {
        let opened = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        opened.map(Self::of).map_err(|error| {
            Error::Host(format!(
                "can't open another file descriptor ({error}): raise the limit (ulimit -n) or \
                 close some"
            ))
        })
    }

    /// The one that a descriptor belongs to.
    pub fn of(descriptor: OwnedFd) -> Self {
        Self(Arc::new(descriptor))
    }

    /// Its descriptor, for another file table.
    pub fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.0)
    }

    /// Wakes the threads that poll it.
    pub fn wake(&self) {
        // Fails only when so many calls are unread that one more makes no difference.
        let _woken_anyway = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Waits for a call of [`wake`](Self::wake), or until a time.
    pub fn wait(&self, until_ns: u64) {
        poll_until(&mut [PollFd::new(self, PollFlags::IN)], until_ns);
        self.silence();
    }

    /// Makes it ready for the next call.
    pub fn silence(&self) {
        let mut calls = [0_u8; 8];
        // Fails only without a call.
        let _silent_anyway = rustix::io::read(&*self.0, &mut calls);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
