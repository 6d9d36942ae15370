//! Wakes a thread that polls.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use crate::error::Error;

/// A file descriptor that becomes readable when somebody rings.
#[derive(Debug)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    pub(crate) fn new() -> Result<Self, Error> {
        let opened = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        opened.map(Self::of).map_err(|error| {
            Error::Host(format!(
                "can't open another file descriptor ({error}): raise the limit (ulimit -n) or \
                 close some"
            ))
        })
    }

    /// The bell that a descriptor belongs to.
    pub(crate) fn of(descriptor: OwnedFd) -> Self {
        Self(Arc::new(descriptor))
    }

    /// Its descriptor, for another file table.
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.0)
    }

    pub(crate) fn ring(&self) {
        // Fails only when so many rings are unheard that one more makes no difference.
        let _heard_anyway = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Makes the bell ready for the next ring.
    pub(crate) fn silence(&self) {
        let mut rings = [0_u8; 8];
        // Fails only when nobody has rung.
        let _silent_anyway = rustix::io::read(&*self.0, &mut rings);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
