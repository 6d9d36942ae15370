//! What a server's loop accepts from, and when it leaves that to the others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use socket2::Socket;

use super::{Accept, Poll};
use crate::flow::Local;
use crate::shard::Inlet;

/// Marks the first listener among the events.
pub(super) const LISTENER: usize = 0;
/// The first index of the other listeners among the events. There are fewer connections.
pub(super) const MORE_LISTENERS: usize = usize::MAX / 2;
/// How long a shard leaves the listener alone when there are no more descriptors.
const SHORTAGE: Duration = Duration::from_millis(1);

/// The sockets that a loop accepts from.
pub(super) struct Listeners {
    sockets: Vec<Arc<Socket>>,
    /// Where each loop accepts in a file table of its own: how many of these tables are full.
    full_tables: Option<Arc<AtomicU32>>,
    /// Whether this loop's table is, and the sockets are left to the other loops.
    is_table_full: bool,
}

impl Listeners {
    /// Those of a load: in the loop's own file table, where it has one.
    pub(super) fn new(accept: &Accept, waker: &Inlet) -> Self {
        let given = accept.listener.iter().chain(&accept.more_listeners);
        Self {
            sockets: given.chain(waker.listeners()).cloned().collect(),
            full_tables: accept.limits.full_tables.clone(),
            is_table_full: false,
        }
    }

    /// The one in this place, where the loop accepts now.
    pub(super) fn get(&self, place: usize) -> Option<&Socket> {
        self.sockets.get(place).map(|socket| &**socket).filter(|_| !self.is_table_full)
    }

    pub(super) fn watch(&self, poll: &Poll) -> bool {
        let index = |place| if place == 0 { LISTENER } else { MORE_LISTENERS + place - 1 };
        let mut placed = self.sockets.iter().enumerate();
        placed.all(|(place, socket)| poll.watch_listener(socket, index(place)))
    }

    pub(super) fn forget(&self, poll: &Poll) {
        self.sockets.iter().for_each(|socket| poll.forget(socket));
    }

    /// There is no descriptor for another connection. A loop with a file table of its own leaves the sockets to the
    /// others until a connection has gone.
    pub(super) fn handle_shortage(&mut self, error: &io::Error, poll: &Poll, local: &Local) {
        match &self.full_tables {
            Some(full_tables) if error.raw_os_error() == Some(libc::EMFILE) => {
                self.is_table_full = true;
                full_tables.fetch_add(1, Ordering::Relaxed);
                self.forget(poll);
                local.ring_conductor();
            }
            // The server's first thread makes room in time; the listener would be ready all the while.
            _ => std::thread::sleep(SHORTAGE),
        }
    }

    /// A connection goes: there is a descriptor for another one.
    #[inline]
    pub(super) fn handle_departure(&mut self, poll: &Poll) {
        if let (true, Some(full_tables)) = (self.is_table_full, &self.full_tables) {
            self.is_table_full = false;
            full_tables.fetch_sub(1, Ordering::Relaxed);
            let _is_watched = self.watch(poll);
        }
    }
}
