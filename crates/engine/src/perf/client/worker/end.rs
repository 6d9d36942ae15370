//! How connections of a thread end, and whether their server was lost before the run's end.

use std::io;
use std::time::Duration;

use super::deliveries::DeliveryLooks;
use super::{Connection, Worker, now_us};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::perf::Ending;
use crate::perf::client::ClientEvent;
use crate::transport::multiplexer::{Link, LinkEvent, Multiplexer};

/// A server from which nothing comes for so long was lost.
const SILENCE_US: u64 = 1_000_000;
/// How long the end of a run may take.
const CLOSING_LIMIT_NS: u64 = 2 * SECOND_NS;

/// When something last came from the server, and how long that took before.
pub(super) struct Progress {
    pub(super) last_us: u64,
    longest_us: u64,
    /// When it is next looked whether something has come that isn't told by itself.
    pub(super) looks: DeliveryLooks,
}

impl Progress {
    pub(super) fn new(now_us: u64, looks: DeliveryLooks) -> Self {
        Self { last_us: now_us, longest_us: 0, looks }
    }

    #[inline]
    pub(super) fn record(&mut self, now_us: u64) {
        self.longest_us = self.longest_us.max(now_us.saturating_sub(self.last_us));
        self.last_us = now_us;
    }

    /// Whether the server has been silent for long, and for longer than it is at times.
    fn is_silent(&self, now_us: u64) -> bool {
        now_us.saturating_sub(self.last_us) > SILENCE_US.max(2 * self.longest_us)
    }
}

impl<M: Multiplexer> Worker<'_, M> {
    /// Whether something was to come from the server until now, and nothing did for long.
    pub(super) fn is_silent(&mut self) -> bool {
        let unfinished = |connection: &Connection| connection.streams.len() > 0;
        let waits = |worker: &Self| {
            let lacks = worker.to_dial > 0 || worker.opening > 0 || worker.totals.broken_off > 0;
            let lacks = lacks || worker.links.values().any(unfinished);
            lacks
                && worker.context.counts.connections.value() > 0
                && worker.progress.is_silent(now_us())
        };
        if waits(self) && self.endpoint.wait(Duration::ZERO).is_ok() {
            // What came while this thread had no processor was there in time.
            while let Some((link, event)) = self.endpoint.poll_event() {
                self.handle_event(link, event);
            }
            self.look_for_deliveries();
        }
        waits(self)
    }

    /// Counts what there is of streams that haven't ended, and closes all connections. `vanished`: the server fell silent
    /// before the end.
    pub(super) fn end(&mut self, vanished: bool) -> io::Result<()> {
        self.running = false;
        if vanished {
            self.count_broken_off();
        }
        let links: Vec<Link> = self.links.keys().copied().collect();
        for link in links {
            self.settle_all(link, vanished);
            self.endpoint.close(link);
        }
        let limit_ns = monotonic_ns() + CLOSING_LIMIT_NS;
        while !self.links.is_empty() && monotonic_ns() < limit_ns {
            self.endpoint.wait(Duration::from_millis(20))?;
            while let Some((link, event)) = self.endpoint.poll_event() {
                if let LinkEvent::Ended { ending } = event {
                    self.handle_ended(link, ending);
                }
            }
        }
        Ok(())
    }

    /// The server fell silent: connections with unfinished streams were broken off; at least one was.
    fn count_broken_off(&mut self) {
        let unfinished = self.links.values().filter(|one| one.streams.len() > 0).count() as u64;
        if unfinished > 0 {
            *self.totals.failures.entry("no answer any more").or_default() += unfinished;
        }
        let totals = &mut self.totals;
        totals.broken_off = totals.broken_off.saturating_add(unfinished).max(1);
    }

    /// Counts the streams of a connection that is about to end, as they are. `vanished`: its other end is gone.
    pub(super) fn settle_all(&mut self, link: Link, vanished: bool) {
        let Some(connection) = self.links.get_mut(&link) else { return };
        let now_us = now_us();
        let streams: Vec<_> = connection.streams.drain().collect();
        let at_us = (!vanished).then_some(now_us);
        let mut unacked_bytes = self.endpoint.unacknowledged_bytes(link);
        for (stream, mut exchange) in streams {
            if let Some(bytes) = self.endpoint.delivered_bytes(link, stream) {
                let counts = self.context.counts;
                counts.record(&mut exchange, |exchange| exchange.record_delivered(bytes, now_us));
            }
            let taken_back = exchange.take_back_delivered(unacked_bytes, at_us);
            if taken_back > 0 {
                unacked_bytes -= taken_back;
                self.context.counts.take_back_uploaded(taken_back);
            }
            match vanished {
                true => exchange.handle_vanished(),
                false => exchange.handle_cut(now_us),
            }
            self.tell_waits(link, stream);
            self.settle(&exchange);
        }
    }

    pub(super) fn handle_ended(&mut self, link: Link, ending: Box<Ending>) {
        // A connection that this end closed has no streams left.
        let unfinished = self.links.get(&link).is_some_and(|one| one.streams.len() > 0);
        let broken_off = self.running && unfinished;
        self.totals.broken_off += u64::from(broken_off);
        self.settle_all(link, broken_off);
        if self.links.remove(&link).is_some_and(|connection| !connection.established) {
            self.opening = self.opening.saturating_sub(1);
        }
        match ending.failure {
            Some(kind) if !ending.established => self.handle_failure(kind),
            failure => {
                let closed = broken_off.then_some("closed by the server");
                if let Some(kind) = failure.or(closed) {
                    *self.totals.failures.entry(kind).or_default() += 1;
                }
                self.to_dial += u64::from(self.plan.repeats_connections);
            }
        }
        if self.plan.tells.connections {
            let _unheard = self.context.sender.send(ClientEvent::ConnectionEnded(ending));
        }
    }
}
