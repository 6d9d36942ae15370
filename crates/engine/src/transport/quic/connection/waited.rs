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
    FlowControl,
    Application,
}

/// Times that a connection waited. After each try to send it is in one state; the time until the next try is
/// counted to that.
#[derive(Debug, Default)]
pub(super) struct Waited {
    waits: QuicWaits,
    now: Option<(Wait, Instant)>,
    of_connection: Limited,
    of_streams: Limited,
}

/// A limit of the peer's.
#[derive(Debug, Default)]
struct Limited {
    /// How often the peer was told that this limit holds the connection or a stream.
    told: u64,
    /// How often the peer had raised it when it was last told.
    raised: u64,
}

impl Limited {
    /// Takes down how often the peer was told and has raised the limit; whether it holds now.
    fn holds(&mut self, told: u64, raised: u64) -> bool {
        if told > self.told {
            *self = Self { told, raised };
        }
        self.told > 0 && raised <= self.raised
    }
}

impl Waited {
    /// A try to send has ended, and this holds the connection now.
    pub(super) fn record(
        &mut self,
        now: Instant,
        held: Held,
        (sent, received): (&FrameStats, &FrameStats),
    ) {
        self.waits = self.at(now);
        let wait = match held {
            Held::Waiting => Wait::Turn,
            Held::Pacing => Wait::Pacing,
            Held::Congestion => Wait::Congestion,
            Held::Empty => {
                let connection = self.of_connection.holds(sent.data_blocked, received.max_data);
                let told = sent.stream_data_blocked;
                let streams = self.of_streams.holds(told, received.max_stream_data);
                if connection || streams { Wait::FlowControl } else { Wait::Application }
            }
        };
        self.now = Some((wait, now));
    }

    /// The times until now.
    pub(super) fn at(&self, now: Instant) -> QuicWaits {
        let Some((wait, since)) = self.now else { return self.waits };
        let waited_ns = nanoseconds(now.saturating_duration_since(since));
        let mut waits = self.waits;
        let counter = match wait {
            Wait::Turn => &mut waits.turn_ns,
            Wait::Pacing => &mut waits.pacing_ns,
            Wait::Congestion => &mut waits.congestion_ns,
            Wait::FlowControl => &mut waits.flow_control_ns,
            Wait::Application => &mut waits.application_ns,
        };
        *counter = counter.saturating_add(waited_ns);
        waits
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_counted_to_what_held_the_connection() {
        let mut waited = Waited::default();
        let mut now = Instant::now();
        let frames = |told, raised| {
            let mut both = (FrameStats::default(), FrameStats::default());
            (both.0.stream_data_blocked, both.1.max_stream_data) = (told, raised);
            both
        };
        for (held, (sent, received), waited_ns) in [
            (Held::Empty, frames(0, 0), 1),
            (Held::Waiting, frames(0, 0), 20),
            (Held::Pacing, frames(0, 0), 300),
            (Held::Congestion, frames(0, 1), 4_000),
            (Held::Empty, frames(1, 1), 50_000),
            // Nothing has changed; the peer raises the limit; it holds again.
            (Held::Empty, frames(1, 1), 50_000),
            (Held::Empty, frames(1, 2), 2),
            (Held::Empty, frames(2, 2), 600_000),
        ] {
            waited.record(now, held, (&sent, &received));
            now += Duration::from_nanos(waited_ns);
        }
        let waits = QuicWaits {
            turn_ns: 20,
            pacing_ns: 300,
            congestion_ns: 4_000,
            flow_control_ns: 700_000,
            application_ns: 3,
        };
        assert_eq!(waited.at(now), waits);
    }
}
