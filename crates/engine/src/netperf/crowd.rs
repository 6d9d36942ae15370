//! Clients of a server whose test isn't under way, and which of them makes room for others.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pending::{Acquaintance, Origin, Strangers};
use crate::waker::Waker;

/// All such clients of a server.
#[derive(Default)]
pub(super) struct Crowd(Mutex<Members>);

#[derive(Default)]
struct Members {
    strangers: Strangers,
    doors: HashMap<usize, Arc<Door>>,
    next: usize,
    /// Members that were told to go, and haven't gone.
    leaving: usize,
}

/// How a session is told to go.
struct Door {
    open: AtomicBool,
    waker: Arc<Waker>,
}

impl Crowd {
    fn members(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has come, whose session waits at this waker.
    pub(super) fn admit(self: &Arc<Self>, client: SocketAddr, waker: Arc<Waker>) -> Seat {
        let door = Arc::new(Door { open: AtomicBool::new(false), waker });
        let mut members = self.members();
        let number = members.next;
        members.next += 1;
        members.doors.insert(number, Arc::clone(&door));
        drop(members);
        let origin = Origin::of(client);
        let mut seat = Seat { crowd: Arc::clone(self), number, origin, door, placed: None };
        seat.place(Some(Acquaintance::Silent));
        seat
    }

    /// Clients without a test.
    pub(super) fn idle(&self) -> usize {
        self.members().strangers.len()
    }

    /// Clients that were told to go, and haven't gone.
    pub(super) fn leaving(&self) -> usize {
        self.members().leaving
    }

    /// Tells one to go; whether there is any.
    pub(super) fn push_out_one(&self) -> bool {
        let mut members = self.members();
        let Some(number) = members.strangers.first_to_go() else { return false };
        members.strangers.remove(number);
        let Some(door) = members.doors.get(&number) else { return false };
        door.open.store(true, Ordering::Relaxed);
        door.waker.wake();
        members.leaving += 1;
        true
    }
}

/// One client's place in the crowd, until it is dropped.
pub(super) struct Seat {
    crowd: Arc<Crowd>,
    number: usize,
    origin: Origin,
    door: Arc<Door>,
    placed: Option<Acquaintance>,
}

impl Seat {
    /// How far the client has come; `None`: its test is under way, and it makes room for nobody.
    pub(super) fn place(&mut self, acquaintance: Option<Acquaintance>) {
        if self.placed == acquaintance {
            return;
        }
        self.placed = acquaintance;
        let mut members = self.crowd.members();
        match acquaintance.filter(|_| !self.must_go()) {
            Some(acquaintance) => members.strangers.place(self.number, self.origin, acquaintance),
            None => members.strangers.remove(self.number),
        }
    }

    /// Whether others need its place.
    pub(super) fn must_go(&self) -> bool {
        self.door.open.load(Ordering::Relaxed)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut members = self.crowd.members();
        members.strangers.remove(self.number);
        members.doors.remove(&self.number);
        members.leaving -= usize::from(self.must_go());
    }
}
