//! The clients of a server that gives each a thread, and which of them makes room for others.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pending::{Origin, Pending, Progress};
use crate::waker::Waker;

/// How many clients a server has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotLimits {
    /// At once, without those that were told to go.
    pub(crate) most: usize,
    /// Without a test under way; when there are more, one of them makes room.
    pub(crate) most_idle: usize,
    /// That were told to go and haven't gone; while there are so many, no other client is.
    pub(crate) most_leaving: usize,
    /// Whether a client that has a slot was promised a test with it: then it makes room only as
    /// [`Pending::first_to_go_for`] says.
    pub(crate) promised: bool,
}

/// All clients of a server.
pub(crate) struct Slots {
    limits: SlotLimits,
    members: Mutex<Members>,
}

struct Members {
    pending: Pending<Arc<Eviction>>,
    leaving: usize,
}

/// How a client's thread is told to end.
struct Eviction {
    requested: AtomicBool,
    waker: Arc<Waker>,
}

impl Slots {
    pub(crate) fn new(limits: SlotLimits) -> Arc<Self> {
        let members = Mutex::new(Members { pending: Pending::new(0), leaving: 0 });
        Arc::new(Self { limits, members })
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has come, whose thread waits at this waker; `None`: there is no room, and no other client makes
    /// room.
    pub(crate) fn admit(
        self: &Arc<Self>,
        client: SocketAddr,
        waker: Arc<Waker>,
    ) -> Option<ClientSlot> {
        let SlotLimits { most, most_idle, .. } = self.limits;
        let mut members = self.members();
        let is_full = members.pending.len() - members.leaving >= most;
        let needs_room = is_full || members.pending.waiting() >= most_idle.min(most);
        let has_room = needs_room && self.push_out(&mut members, Some(Origin::of(client)));
        if is_full && !has_room {
            return None;
        }
        let eviction = Arc::new(Eviction { requested: AtomicBool::new(false), waker });
        let number = members.pending.add(client, Arc::clone(&eviction));
        Some(ClientSlot {
            slots: Arc::clone(self),
            number,
            eviction,
            progress: Some(Progress::Silent),
        })
    }

    /// Clients, those among them that were told to go.
    pub(crate) fn len(&self) -> usize {
        self.members().pending.len()
    }

    /// Whether so many were told to go that others wait until they have gone.
    pub(crate) fn is_settling(&self) -> bool {
        self.members().leaving >= self.limits.most_leaving
    }

    /// Tells one to go; whether there is any.
    pub(crate) fn push_out_one(&self) -> bool {
        self.push_out(&mut self.members(), None)
    }

    fn push_out(&self, members: &mut Members, newcomer: Option<Origin>) -> bool {
        let first = match newcomer.filter(|_| self.limits.promised) {
            _ if members.leaving >= self.limits.most_leaving => None,
            Some(newcomer) => members.pending.first_to_go_for(newcomer),
            None => members.pending.first_to_go(),
        };
        let Some(number) = first else { return false };
        members.pending.note(number, None);
        let Some(eviction) = members.pending.kept(number) else { return false };
        eviction.requested.store(true, Ordering::Relaxed);
        eviction.waker.wake();
        members.leaving += 1;
        true
    }
}

/// One client's slot, until it is dropped.
pub(crate) struct ClientSlot {
    slots: Arc<Slots>,
    number: usize,
    eviction: Arc<Eviction>,
    progress: Option<Progress>,
}

impl ClientSlot {
    /// How far the client has come; `None`: its test is under way, and it is never displaced.
    pub(crate) fn note(&mut self, progress: Option<Progress>) {
        if self.progress == progress {
            return;
        }
        self.progress = progress;
        let mut members = self.slots.members();
        if !self.must_go() {
            members.pending.note(self.number, progress);
        }
    }

    /// Whether others need it.
    pub(crate) fn must_go(&self) -> bool {
        self.eviction.requested.load(Ordering::Relaxed)
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut members = self.slots.members();
        members.pending.remove(self.number);
        members.leaving -= usize::from(self.must_go());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(promised: bool) -> Arc<Slots> {
        Slots::new(SlotLimits { most: 2, most_idle: 2, most_leaving: 1, promised })
    }

    fn admit(slots: &Arc<Slots>, address: &str) -> Option<ClientSlot> {
        let client = SocketAddr::new(address.parse().unwrap(), 1);
        slots.admit(client, Arc::new(Waker::new().unwrap()))
    }

    #[test]
    fn waiting_client_makes_room_and_testing_client_does_not() {
        let slots = slots(false);
        let mut first = admit(&slots, "192.0.2.1").unwrap();
        let second = admit(&slots, "192.0.2.1").unwrap();
        first.note(None);
        let third = admit(&slots, "192.0.2.1").unwrap();
        assert!(second.must_go() && !first.must_go() && slots.is_settling());
        assert!(admit(&slots, "192.0.2.2").is_none(), "one is on its way out already");
        drop(second);
        assert!(!slots.is_settling());
        let mut fourth = admit(&slots, "192.0.2.2").unwrap();
        assert!(third.must_go());
        drop(third);
        fourth.note(None);
        assert!(admit(&slots, "192.0.2.3").is_none(), "both have tests");
        assert_eq!(slots.len(), 2);
    }

    #[test]
    fn client_promised_a_test_makes_room_only_for_another_address() {
        let slots = slots(true);
        let kept = [(); 2].map(|()| admit(&slots, "192.0.2.1").unwrap());
        assert!(admit(&slots, "192.0.2.1").is_none());
        let other = admit(&slots, "192.0.2.2").unwrap();
        assert_eq!(kept.each_ref().map(ClientSlot::must_go), [true, false]);
        drop(kept);
        drop(other);
        assert_eq!(slots.len(), 0);
    }
}
