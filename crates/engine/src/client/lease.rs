//! Places at a server for more than one test.

use std::sync::{Arc, Mutex, PoisonError};

use linerate_measure::{Plan, Run};
use linerate_wire::native::LeaseWish;

use super::run_from;
use super::session::{KeptConversation, Place};
use super::start::LaterStart;
use crate::access::Access;
use crate::event::{Cancel, Sink};

/// The token of a lease, once the server has granted it: tests on other connections belong to the lease by it.
#[derive(Clone, Debug, Default)]
pub struct LeaseToken(Arc<Mutex<Option<[u8; 16]>>>);

impl LeaseToken {
    /// Whether a server has granted the lease. One that knows no leases counts each test by itself.
    pub fn is_known(&self) -> bool {
        self.get().is_some()
    }

    pub(super) fn set(&self, token: Option<[u8; 16]>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    fn get(&self) -> Option<[u8; 16]> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place at a server for one test after the other, on one control connection. A server that speaks version 1 of
/// the protocol has a connection for each.
#[derive(Default)]
pub struct Lease {
    kept: Option<KeptConversation>,
    /// Where tests beside those of this connection find its token.
    shared: Option<LeaseToken>,
}

impl Lease {
    /// A lease that begins with its first test.
    pub fn new() -> Self {
        Self::default()
    }

    /// Likewise, and other tests may run within it ([`run_within`]). The server keeps its place between tests too.
    pub fn shared() -> Self {
        Self { kept: None, shared: Some(LeaseToken::default()) }
    }

    /// What tests need that are to run within it. It stays unknown of a lease that isn't shared.
    pub fn token(&self) -> LeaseToken {
        self.shared.clone().unwrap_or_default()
    }

    /// Measures as [`run`](super::run) does. All plans of a lease have the same server.
    pub fn run(&mut self, plan: &Plan, access: &Access, sink: &Sink, cancel: &Cancel) -> Run {
        run_from(plan, access, self.place(), None, sink, cancel)
    }

    /// Measures as [`run_when_told`](super::run_when_told) does.
    pub fn run_when_told(
        &mut self,
        plan: &Plan,
        access: &Access,
        start: &LaterStart,
        sink: &Sink,
        cancel: &Cancel,
    ) -> Run {
        run_from(plan, access, self.place(), Some(start), sink, cancel)
    }

    fn place(&mut self) -> Place<'_> {
        Place {
            wish: if self.shared.is_some() { LeaseWish::Begin } else { LeaseWish::None },
            token: self.shared.as_ref(),
            kept: Some(&mut self.kept),
        }
    }

    /// Says that this end is still there, where that is due. A server that hears nothing for four seconds after a test
    /// gives the place to others, so this is to be called several times a second between tests.
    pub fn keep(&mut self) {
        self.kept = self.kept.take().and_then(KeptConversation::if_it_goes_on);
    }
}

impl Drop for Lease {
    /// Closes the conversation in order, so that the place is free at once.
    fn drop(&mut self) {
        self.keep();
        if let Some(kept) = self.kept.take() {
            kept.close();
        }
    }
}

/// Measures as [`run_when_told`](super::run_when_told) does, within a lease where the server has granted it.
pub fn run_within(
    token: &LeaseToken,
    plan: &Plan,
    access: &Access,
    start: &LaterStart,
    sink: &Sink,
    cancel: &Cancel,
) -> Run {
    let wish = token.get().map_or(LeaseWish::None, LeaseWish::Join);
    let place = Place { wish, ..Place::default() };
    run_from(plan, access, place, Some(start), sink, cancel)
}
