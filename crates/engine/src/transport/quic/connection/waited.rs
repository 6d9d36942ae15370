//! How long a connection waited for what before it could send.

use std::time::{Duration, Instant};

use linerate_measure::sample::QuicWaits;
use quinn_proto::FrameStats;

use super::Held;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Turn,
    Pacing,
    Congestion,
    /// The peer's limit of all streams, or of one.
    ConnectionLimit,
    StreamLimit,
    Application,
}

/// Times that a connection waited. After each try to send it is in one state; the time until the next try is
/// counted to that.
#[derive(Debug, Default)]
pub(super) struct Waited {
    waits: QuicWaits,
    held_ns: HeldTimes,
    now: Option<(Wait, Instant)>,
    of_connection: Limited,
    of_stream: Limited,
    /// Whether several streams could send at a time. Frames are counted for all streams together: which of them the
    /// peer holds by a limit of their own isn't known then.
    had_several: bool,
}

/// How long the peer's limit of all streams held the connection, and how long only that of its stream.
#[derive(Clone, Copy, Debug, Default)]
struct HeldTimes {
    by_connection: u64,
    by_stream: u64,
}

/// A limit of the peer's.
#[derive(Debug, Default)]
struct Limited {
    /// How often the peer was told that this limit holds the connection or its stream.
    told: u64,
    /// How often the peer had raised it when it was last told.
    raised: u64,
    holds: bool,
}

impl Limited {
    /// Takes down how often the peer was told and has raised the limit.
    fn note(&mut self, told: u64, raised: u64) {
        if told > self.told {
            *self = Self { told, raised, holds: true };
        }
        self.holds &= raised <= self.raised;
    }
}

impl Waited {
    /// Takes down the peer's limits: before anything else comes from the peer after packets were sent, and before
    /// [`Held::Empty`] is recorded.
    pub(super) fn note_limits(&mut self, sent: &FrameStats, received: &FrameStats) {
        self.of_connection.note(sent.data_blocked, received.max_data);
        self.of_stream.note(sent.stream_data_blocked, received.max_stream_data);
    }

    /// The stream that could send was given up: no limit holds it any more.
    pub(super) fn release(&mut self) {
        self.of_connection.holds = false;
        self.of_stream.holds = false;
    }

    /// A try to send has ended, and this holds the connection now, which has so many streams that can send.
    pub(super) fn record(&mut self, now: Instant, held: Held, streams: usize) {
        (self.waits, self.held_ns) = self.until(now);
        self.had_several |= streams > 1;
        if streams == 0 {
            self.release();
        }
        let wait = match held {
            Held::Waiting => Wait::Turn,
            Held::Pacing => Wait::Pacing,
            Held::Congestion => Wait::Congestion,
            Held::Empty if self.of_connection.holds => Wait::ConnectionLimit,
            Held::Empty if self.of_stream.holds => Wait::StreamLimit,
            Held::Empty => Wait::Application,
        };
        self.now = Some((wait, now));
    }

    /// The times until now. Where several streams could send, flow control is that of the connection's limit, and absent
    /// if that limit was never told.
    pub(super) fn at(&self, now: Instant) -> QuicWaits {
        let (mut waits, held_ns) = self.until(now);
        let HeldTimes { by_connection, by_stream } = held_ns;
        if self.had_several {
            waits.application_ns = waits.application_ns.saturating_add(by_stream);
            waits.flow_control_ns = (self.of_connection.told > 0).then_some(by_connection);
        } else {
            waits.flow_control_ns = Some(by_connection.saturating_add(by_stream));
        }
        waits
    }

    /// The times until now, and those that the peer's limits held the connection.
    fn until(&self, now: Instant) -> (QuicWaits, HeldTimes) {
        let (mut waits, mut held_ns) = (self.waits, self.held_ns);
        let Some((wait, since)) = self.now else { return (waits, held_ns) };
        let waited_ns = nanoseconds(now.saturating_duration_since(since));
        let counter = match wait {
            Wait::Turn => &mut waits.turn_ns,
            Wait::Pacing => &mut waits.pacing_ns,
            Wait::Congestion => &mut waits.congestion_ns,
            Wait::ConnectionLimit => &mut held_ns.by_connection,
            Wait::StreamLimit => &mut held_ns.by_stream,
            Wait::Application => &mut waits.application_ns,
        };
        *counter = counter.saturating_add(waited_ns);
        (waits, held_ns)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of one stream: the peer was told of its limit so often, and has raised it so often.
    fn note(waited: &mut Waited, told: u64, raised: u64) {
        let (mut sent, mut received) = (FrameStats::default(), FrameStats::default());
        (sent.stream_data_blocked, received.max_stream_data) = (told, raised);
        waited.note_limits(&sent, &received);
    }

    #[test]
    fn each_time_is_counted_to_what_held_the_connection() {
        let mut waited = Waited::default();
        let mut now = Instant::now();
        for (held, (told, raised), waited_ns) in [
            (Held::Empty, (0, 0), 1),
            (Held::Waiting, (0, 0), 20),
            (Held::Pacing, (0, 0), 300),
            (Held::Congestion, (0, 1), 4_000),
            (Held::Empty, (1, 1), 50_000),
            // Nothing has changed; the peer raises the limit; it holds again.
            (Held::Empty, (1, 1), 50_000),
            (Held::Empty, (1, 2), 2),
            (Held::Empty, (2, 2), 600_000),
        ] {
            note(&mut waited, told, raised);
            waited.record(now, held, 1);
            now += Duration::from_nanos(waited_ns);
        }
        let waits = QuicWaits {
            turn_ns: 20,
            pacing_ns: 300,
            congestion_ns: 4_000,
            flow_control_ns: Some(700_000),
            application_ns: 3,
        };
        assert_eq!(waited.at(now), waits);
    }

    #[test]
    fn a_limit_raised_between_telling_and_the_next_pause_holds_no_more() {
        let mut waited = Waited::default();
        let now = Instant::now();
        note(&mut waited, 1, 0);
        note(&mut waited, 1, 1);
        waited.record(now, Held::Empty, 1);
        let waits = waited.at(now + Duration::from_nanos(5));
        assert_eq!((waits.flow_control_ns, waits.application_ns), (Some(0), 5));
    }

    #[test]
    fn a_stream_that_is_gone_is_held_no_more() {
        let is_gone: fn(&mut Waited) = |waited| waited.record(Instant::now(), Held::Waiting, 0);
        let all: [fn(&mut Waited); 2] = [Waited::release, is_gone];
        for release in all {
            let mut waited = Waited::default();
            note(&mut waited, 1, 0);
            release(&mut waited);
            note(&mut waited, 1, 0);
            let now = Instant::now();
            waited.record(now, Held::Empty, 1);
            assert_eq!(waited.at(now + Duration::from_secs(1)).flow_control_ns, Some(0));
        }
    }

    #[test]
    fn the_connections_limit_is_known_with_several_streams() {
        let mut waited = Waited::default();
        let now = Instant::now();
        let mut sent = FrameStats::default();
        sent.data_blocked = 1;
        waited.note_limits(&sent, &FrameStats::default());
        waited.record(now, Held::Empty, 4);
        let waits = waited.at(now + Duration::from_nanos(5));
        assert_eq!((waits.flow_control_ns, waits.application_ns), (Some(5), 0));
    }

    #[test]
    fn with_several_streams_their_own_limits_are_unknown() {
        let mut waited = Waited::default();
        let now = Instant::now();
        note(&mut waited, 1, 0);
        waited.record(now, Held::Empty, 2);
        let waits = waited.at(now + Duration::from_nanos(5));
        assert_eq!((waits.flow_control_ns, waits.application_ns), (None, 5));
    }
}
