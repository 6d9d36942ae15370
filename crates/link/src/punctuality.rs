//! How exact the emulator is, as it sees it itself.

use linerate_measure::histogram::Histogram;
use linerate_measure::link::report::{Accuracy, Waiting};
use linerate_system::socket::RealTime;

/// Later than this after its time a packet is late.
const LATE_SPINNING_NS: u64 = 200_000;
const LATE_SLEEPING_NS: u64 = 1_000_000;

/// Records how late packets leave and how long they may have stood unseen.
#[derive(Debug)]
pub(super) struct Punctuality {
    late_after_ns: u64,
    error: Histogram,
    unseen: Histogram,
    late: u64,
    behind_ns: u64,
    /// When the last look for due packets was.
    looked_ns: u64,
    /// When both directions' packets that left first and last did, and the first's bytes.
    spans: [Span; 2],
}

/// The time from the first packet delivered to the last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    first_ns: Option<u64>,
    last_ns: u64,
    /// Bytes of the first packet.
    pub(super) first_bytes: u64,
}

impl Span {
    /// Its length.
    pub(super) fn length_ns(&self) -> u64 {
        self.first_ns.map_or(0, |first_ns| self.last_ns.saturating_sub(first_ns))
    }
}

impl Punctuality {
    pub(super) fn new(waiting: Waiting, now_ns: u64) -> Self {
        Self {
            late_after_ns: match waiting {
                Waiting::Spinning => LATE_SPINNING_NS,
                Waiting::Sleeping => LATE_SLEEPING_NS,
            },
            error: Histogram::new(),
            unseen: Histogram::new(),
            late: 0,
            behind_ns: 0,
            looked_ns: now_ns,
            spans: [Span::default(); 2],
        }
    }

    /// A packet of a direction (0 to the right, 1 to the left) left now.
    #[inline]
    pub(super) fn record_departure(
        &mut self,
        direction: usize,
        due_ns: u64,
        now_ns: u64,
        bytes: usize,
    ) {
        let error_ns = now_ns.saturating_sub(due_ns);
        self.error.record_ns(error_ns);
        if error_ns > self.late_after_ns {
            self.late += 1;
            self.behind_ns += now_ns.saturating_sub(self.looked_ns.max(due_ns));
        }
        self.looked_ns = now_ns;
        let span = &mut self.spans[direction & 1];
        if span.first_ns.is_none() {
            (span.first_ns, span.first_bytes) = (Some(now_ns), bytes as u64);
        }
        span.last_ns = now_ns;
    }

    /// A packet was taken that may have stood there for so long.
    #[inline]
    pub(super) fn record_unseen(&mut self, unseen_ns: u64) {
        self.unseen.record_ns(unseen_ns);
    }

    /// The time that a direction's packets took.
    pub(super) fn span(&self, direction: usize) -> Span {
        self.spans[direction & 1]
    }

    /// What it comes to, as long as the calling thread is the emulating one.
    pub(super) fn accuracy(&self) -> Accuracy {
        Accuracy {
            delay_error_ns: self.error.latency(),
            unseen_ns: self.unseen.latency(),
            real_time: RealTime::has_thread(),
            late_after_ns: self.late_after_ns,
            late: self.late,
            behind_ns: self.behind_ns,
        }
    }
}
