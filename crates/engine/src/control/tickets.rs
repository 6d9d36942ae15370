//! The tickets that a load's connections were given, for others of it to resume with.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The tickets of one load, all of one server. Each is used once (RFC 8446, appendix C.4).
pub(crate) struct Tickets {
    most: usize,
    held: Mutex<VecDeque<Tls13ClientSessionValue>>,
    /// How many have come.
    inserted: AtomicU64,
    group: Mutex<Option<NamedGroup>>,
}

impl Tickets {
    /// Room for so many; the oldest go when there are more.
    pub(crate) fn new(most: usize) -> Self {
        let (held, group) = (Mutex::new(VecDeque::new()), Mutex::new(None));
        Self { most, held, inserted: AtomicU64::new(0), group }
    }

    /// Drops those that are held.
    pub(super) fn clear(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How many have come.
    pub(crate) fn inserted(&self) -> u64 {
        self.inserted.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("most", &self.most).finish_non_exhaustive()
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _server: ServerName<'static>, group: NamedGroup) {
        *self.group.lock().unwrap_or_else(PoisonError::into_inner) = Some(group);
    }

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        *self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only TLS 1.3 is spoken.
    fn set_tls12_session(&self, _server: ServerName<'static>, _value: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= self.most {
            held.pop_front();
        }
        held.push_back(value);
        self.inserted.fetch_add(1, Ordering::Relaxed);
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).pop_back()
    }
}
