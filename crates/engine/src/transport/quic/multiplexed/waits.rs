//! What streams wait for before they can send.
//!
//! After each turn of the endpoint every stream is in one state; the time until the next turn is counted
//! to it. What holds a connection holds all of its streams, as in the original.

use std::collections::HashMap;
use std::time::Instant;

use super::super::connection::Held;
use crate::transport::multiplexer::{Link, StreamWaits};

/// How often a connection has told its peer that it is at the limit of all streams, and of one.
pub(super) type LimitsTold = (u64, u64);

/// What a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Nothing,
    Turn,
    Pacing,
    Congestion,
    ConnectionFlow,
    StreamFlow,
    Application,
}

/// Streams that are open to send.
#[derive(Default)]
pub(super) struct Watch {
    streams: HashMap<(Link, u64), Watched>,
    /// Since when connections wait for another stream to be allowed.
    refused: HashMap<Link, Instant>,
}

struct Watched {
    waits: StreamWaits,
    now: Wait,
    since: Instant,
    /// Nothing more was taken, when so much had been told.
    blocked: Option<LimitsTold>,
    finished: bool,
}

impl Watched {
    fn settle(&mut self, now: Instant) {
        let waited = now.saturating_duration_since(self.since);
        let waited_us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        let waits = &mut self.waits;
        let counter = match self.now {
            Wait::Nothing => return self.since = now,
            Wait::Turn => &mut waits.scheduling_us,
            Wait::Pacing => &mut waits.pacing_us,
            Wait::Congestion => &mut waits.congestion_us,
            Wait::ConnectionFlow => &mut waits.connection_flow_us,
            Wait::StreamFlow => &mut waits.stream_flow_us,
            Wait::Application => &mut waits.application_us,
        };
        *counter += waited_us;
        // What is below a microsecond is counted with what follows.
        self.since += std::time::Duration::from_micros(waited_us);
    }

    /// What it waits for, when this holds its connection.
    fn judge(&self, held: Held, told: LimitsTold) -> Wait {
        match (held, self.blocked) {
            (Held::Waiting, _) => Wait::Turn,
            (Held::Pacing, _) => Wait::Pacing,
            (Held::Congestion, _) => Wait::Congestion,
            (Held::Empty, Some(before)) if told.0 > before.0 => Wait::ConnectionFlow,
            (Held::Empty, Some(before)) if told.1 > before.1 => Wait::StreamFlow,
            // What it is sent from is full, and the peer has not been told of any limit.
            (Held::Empty, Some(_)) => Wait::Turn,
            (Held::Empty, None) if self.finished => Wait::Nothing,
            (Held::Empty, None) => Wait::Application,
        }
    }
}

impl Watch {
    /// A stream was opened, or refused.
    pub(super) fn record_opening(&mut self, link: Link, stream: Option<u64>, now: Instant) {
        let Some(stream) = stream else {
            self.refused.entry(link).or_insert(now);
            return;
        };
        let since = self.refused.remove(&link);
        let waited = since.map_or(0, |since| now.saturating_duration_since(since).as_micros());
        let stream_number_us = u64::try_from(waited).unwrap_or(u64::MAX);
        let waits = StreamWaits { stream_number_us, ..StreamWaits::default() };
        let watched =
            Watched { waits, now: Wait::Application, since: now, blocked: None, finished: false };
        self.streams.insert((link, stream), watched);
    }

    /// Something was sent: all of it and the end, all, or not all, when so much had been told.
    pub(super) fn record_sent(
        &mut self,
        link: Link,
        stream: u64,
        finished: bool,
        blocked: Option<LimitsTold>,
    ) {
        if let Some(watched) = self.streams.get_mut(&(link, stream)) {
            watched.finished |= finished;
            // What was told when it was first blocked counts.
            watched.blocked = blocked.map(|told| watched.blocked.unwrap_or(told));
        }
    }

    /// There is room again.
    pub(super) fn record_writable(&mut self, link: Link, stream: u64) {
        if let Some(watched) = self.streams.get_mut(&(link, stream)) {
            watched.blocked = None;
        }
    }

    /// A turn has ended.
    pub(super) fn record_turn(
        &mut self,
        now: Instant,
        mut of: impl FnMut(Link) -> Option<(Held, LimitsTold)>,
    ) {
        self.refused.retain(|link, _| of(*link).is_some());
        let mut known: HashMap<Link, Option<(Held, LimitsTold)>> = HashMap::new();
        for ((link, _), watched) in &mut self.streams {
            watched.settle(now);
            // A connection that is gone holds nothing any more.
            let seen = known.entry(*link).or_insert_with(|| of(*link));
            watched.now = seen.map_or(Wait::Nothing, |(held, told)| watched.judge(held, told));
        }
    }

    /// The stream's sending is over.
    pub(super) fn take(&mut self, link: Link, stream: u64, now: Instant) -> Option<StreamWaits> {
        let mut watched = self.streams.remove(&(link, stream))?;
        watched.settle(now);
        Some(watched.waits)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LINK: Link = Link { index: 0, generation: 1 };

    #[test]
    fn each_time_is_counted_to_what_was_waited_for() {
        let mut now = Instant::now();
        let mut watch = Watch::default();
        watch.record_opening(LINK, None, now);
        now += Duration::from_micros(7);
        watch.record_opening(LINK, None, now);
        now += Duration::from_micros(3);
        watch.record_opening(LINK, Some(4), now);
        let mut turn = |watch: &mut Watch, held, told, waited_us| {
            watch.record_turn(now, |_| Some((held, told)));
            now += Duration::from_micros(waited_us);
            now
        };
        turn(&mut watch, Held::Empty, (0, 0), 20);
        turn(&mut watch, Held::Congestion, (0, 0), 300);
        turn(&mut watch, Held::Pacing, (0, 0), 4000);
        turn(&mut watch, Held::Waiting, (0, 0), 50_000);
        watch.record_sent(LINK, 4, false, Some((0, 0)));
        turn(&mut watch, Held::Empty, (0, 1), 600_000);
        // A further try doesn't make it forget when it was blocked.
        watch.record_sent(LINK, 4, false, Some((0, 1)));
        turn(&mut watch, Held::Empty, (0, 1), 1);
        watch.record_writable(LINK, 4);
        watch.record_sent(LINK, 4, false, Some((0, 1)));
        turn(&mut watch, Held::Empty, (1, 1), 7_000_000);
        watch.record_sent(LINK, 4, true, None);
        let end = turn(&mut watch, Held::Empty, (1, 1), 999);
        let waits = StreamWaits {
            scheduling_us: 50_000,
            pacing_us: 4000,
            congestion_us: 300,
            connection_flow_us: 7_000_000,
            stream_number_us: 10,
            stream_flow_us: 600_001,
            application_us: 20,
        };
        assert_eq!(watch.take(LINK, 4, end), Some(waits));
        assert_eq!(watch.take(LINK, 4, end), None);
    }
}
