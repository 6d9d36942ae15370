//! What a server writes to files as it goes.

use std::sync::Arc;

use crate::clock::SECOND_NS;
use crate::control::SessionCache;
use crate::transport::quic::EventLog;

/// The files of a server.
pub(super) struct Files {
    events: Option<Arc<EventLog>>,
    cache: Option<Arc<SessionCache>>,
    /// When they are next looked at.
    next_ns: u64,
}

impl Files {
    pub(super) fn new(events: Option<Arc<EventLog>>, cache: Option<Arc<SessionCache>>) -> Self {
        let is_idle = events.is_none() && cache.is_none();
        Self { events, cache, next_ns: if is_idle { u64::MAX } else { 0 } }
    }

    /// Writes what is there to be written; why a file is not whole, told once.
    pub(super) fn finish(&mut self) -> Option<String> {
        if let Some(Err(fault)) = self.events.as_ref().map(|events| events.finish()) {
            self.events = None;
            return Some(fault);
        }
        let fault = self.cache.as_ref()?.take_fault();
        if fault.is_some() {
            self.cache = None;
        }
        fault
    }

    /// Likewise, now and then.
    pub(super) fn tick(&mut self, now_ns: u64) -> Option<String> {
        if now_ns < self.next_ns {
            return None;
        }
        self.next_ns = now_ns.saturating_add(SECOND_NS);
        self.finish()
    }
}
