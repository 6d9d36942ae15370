//! What a server writes to files as it goes.

use std::sync::Arc;

use crate::clock::SECOND_NS;
use crate::control::CacheWriter;
use crate::transport::quic::EventLog;

/// The files of a server.
pub(super) struct Files {
    events: Option<Arc<EventLog>>,
    cache: Option<CacheWriter>,
    /// When they are next looked at.
    next_ns: u64,
}

impl Files {
    pub(super) fn new(events: Option<Arc<EventLog>>, cache: Option<CacheWriter>) -> Self {
        let is_idle = events.is_none() && cache.is_none();
        let next_ns = if is_idle { u64::MAX } else { 0 };
        Self { events, cache, next_ns }
    }

    /// Writes what is there to be written; why a file is not whole. Of each file that is told once.
    pub(super) fn finish(mut self) -> Vec<String> {
        let events = self.write_events();
        let cache = self.cache.and_then(CacheWriter::finish);
        events.into_iter().chain(cache).collect()
    }

    /// Likewise, now and then.
    pub(super) fn tick(&mut self, now_ns: u64) -> Option<String> {
        if now_ns < self.next_ns {
            return None;
        }
        self.next_ns = now_ns.saturating_add(SECOND_NS);
        self.write_events().or_else(|| self.cache.as_ref()?.take_fault())
    }

    fn write_events(&mut self) -> Option<String> {
        let fault = self.events.as_ref()?.finish().err();
        if fault.is_some() {
            self.events = None;
        }
        fault
    }
}
