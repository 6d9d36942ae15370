//! What a connection has carried, interval by interval.

pub use linerate_wire::qperf::Counts;

use crate::load::Intervals;
use crate::transport::quic::SharedConnection;

/// What a server has sent over a connection.
pub(super) fn sent(connection: &SharedConnection) -> Counts {
    let connection = connection.borrow();
    let status = connection.status();
    Counts {
        bytes: connection.sent_stream_bytes().unwrap_or(0),
        packets: status.sent_packets,
        lost_packets: status.lost_packets,
    }
}

/// What a client has received over a connection, so many bytes of streams.
pub(super) fn received(bytes: u64, connection: &SharedConnection) -> Counts {
    let packets = connection.borrow().statistics().received_packets.unwrap_or(0);
    Counts { bytes, packets, lost_packets: 0 }
}

/// An interval that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its number, from 0.
    pub index: u32,
    /// When it began and ended, ns since the first interval began.
    pub from_ns: u64,
    /// Likewise.
    pub to_ns: u64,
    /// When it ended (UTC, ns since 1970).
    pub utc_ns: i64,
    /// What was counted in it.
    pub counts: Counts,
}

/// Cuts what is counted into intervals.
#[derive(Debug)]
pub(super) struct Meter {
    intervals: Intervals,
    last: Counts,
}

impl Meter {
    /// The first interval begins, with so much counted before.
    pub(super) fn begin(interval_ns: u64, now_ns: u64, counted: Counts) -> Self {
        Self { intervals: Intervals::begin(interval_ns, now_ns).making_up(), last: counted }
    }

    pub(super) fn next_ns(&self) -> u64 {
        self.intervals.next_ns()
    }

    pub(super) fn began_ns(&self) -> u64 {
        self.intervals.began_ns()
    }

    /// The interval that is over at this time.
    pub(super) fn tick(
        &mut self,
        now_ns: u64,
        counted: impl FnOnce() -> Counts,
    ) -> Option<Interval> {
        if now_ns < self.intervals.next_ns() {
            return None;
        }
        let all = counted();
        let cut = self.intervals.cut(now_ns);
        let counts = all.since(&std::mem::replace(&mut self.last, all));
        let (index, from_ns, to_ns, utc_ns) = (cut.index, cut.from_ns, cut.to_ns, cut.utc_ns);
        Some(Interval { index, from_ns, to_ns, utc_ns, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interval_has_what_came_in_it() {
        let counts = |bytes| Counts { bytes, packets: bytes / 10, lost_packets: 0 };
        let mut meter = Meter::begin(100, 1_000, counts(50));
        assert_eq!(meter.tick(1_099, || counts(70)), None);
        let first = meter.tick(1_103, || counts(80)).unwrap();
        assert_eq!((first.index, first.from_ns, first.to_ns), (0, 0, 103));
        assert_eq!((first.counts, meter.next_ns()), (counts(30), 1_200));
        let second = meter.tick(1_200, || counts(90)).unwrap();
        assert_eq!((second.index, second.counts.bytes), (1, 10));
    }
}
