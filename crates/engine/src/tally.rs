//! What a flow has done so far, written by its shard and read by anybody.
//!
//! A counter has one writer. Adding is a plain load and a plain store (relaxed, so an ordinary
//! move on every processor): no lock, no read-modify-write, no clock. The reader sees a value that
//! was true a moment ago.

use std::ops::Deref;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use linerate_measure::sample::{QuicStatus, QuicWaits};

/// A count with one writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far a flow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// Not yet able to carry load.
    Opening = 0,
    /// Waits for the load to begin, or carries it.
    Ready = 1,
    /// Ended, as planned or not.
    Ended = 2,
}

/// Texts that connections exchange beside their payload, and what is counted of single connections beside them.
#[derive(Debug, Default)]
pub(crate) struct TextTally {
    pub(crate) sent_bytes: Counter,
    pub(crate) received_bytes: Counter,
    /// Bytes, payload included, of connections that the run itself ended, which their peers had not acknowledged then.
    pub(crate) unacknowledged_bytes: Counter,
}

impl TextTally {
    /// Sent, and received.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.sent_bytes.value(), self.received_bytes.value())
    }
}

/// What a flow has done so far. Aligned so that two flows never share a cache line (two lines, as
/// processors fetch them in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    pub(crate) sent_bytes: Counter,
    pub(crate) send_calls: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) receive_calls: Counter,
    pub(crate) transactions: Counter,
    timed: TimedTransactions,
    pub(crate) datagrams: DatagramTally,
    /// Start and end of the flow's own time, on the monotonic clock; 0: not yet.
    pub(crate) first_ns: Counter,
    pub(crate) last_ns: Counter,
    progress: AtomicU8,
    /// A hundred thousand flows without these take two cache lines each.
    extra: OnceLock<Box<ExtraTally>>,
}

/// Tallies that are allocated together.
const TALLIES_TOGETHER: usize = 32;

/// Where a flow's tally is: among others, since one that is allocated alone takes three times its size.
#[derive(Debug)]
pub(crate) struct TallyPlace {
    together: Arc<[Tally]>,
    /// There is one at this place.
    place: usize,
}

impl TallyPlace {
    /// A tally by itself.
    pub(crate) fn alone() -> Self {
        Tallies::new(1).next_place()
    }
}

impl Deref for TallyPlace {
    type Target = Tally;

    #[inline]
    fn deref(&self) -> &Tally {
        &self.together[self.place]
    }
}

/// Allocates the tallies of a load's flows.
pub(crate) struct Tallies {
    together: Arc<[Tally]>,
    used: usize,
}

impl Tallies {
    /// Those of so many flows.
    pub(crate) fn new(flows: usize) -> Self {
        Self { together: tallies(flows.clamp(1, TALLIES_TOGETHER)), used: 0 }
    }

    /// The place of the next.
    pub(crate) fn next_place(&mut self) -> TallyPlace {
        if self.used == self.together.len() {
            (self.together, self.used) = (tallies(TALLIES_TOGETHER), 0);
        }
        self.used += 1;
        TallyPlace { together: Arc::clone(&self.together), place: self.used - 1 }
    }
}

fn tallies(count: usize) -> Arc<[Tally]> {
    (0..count).map(|_| Tally::default()).collect()
}

/// Counts that only some kinds of load have.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ExtraTally {
    pub(crate) texts: TextTally,
    pub(crate) arrivals: ArrivalTally,
    /// Datagrams that this machine's stack refused. Most flows have none, and a flow's tally is small.
    pub(crate) refused_datagrams: Counter,
    frames: OnceLock<FrameTally>,
}

impl ExtraTally {
    /// The frames of a media stream, to count in.
    #[inline]
    pub(crate) fn frames(&self) -> &FrameTally {
        self.frames.get_or_init(FrameTally::default)
    }
}

/// What the dialect's receiver of datagrams counts as they come.
#[derive(Debug, Default)]
pub(crate) struct ArrivalTally {
    pub(crate) lost: Counter,
    pub(crate) reordered: Counter,
    /// Jitter in nanoseconds: the bits of a floating-point number.
    pub(crate) jitter_ns: Counter,
}

#[derive(Debug, Default)]
struct TimedTransactions {
    /// Those that began after the warm-up.
    measured: Counter,
    latency_sum_ns: Counter,
}

/// Frames of a media stream, warm-up left out.
#[derive(Debug, Default)]
pub(crate) struct FrameTally {
    pub(crate) sent: Counter,
    pub(crate) completed: Counter,
    pub(crate) late: Counter,
    pub(crate) dropped: Counter,
}

impl FrameTally {
    fn counts(&self) -> [u64; 4] {
        [&self.sent, &self.completed, &self.late, &self.dropped].map(Counter::value)
    }
}

/// What a flow has done with datagrams so far.
#[derive(Debug, Default)]
pub(crate) struct DatagramTally {
    pub(crate) sent: Counter,
    pub(crate) received: Counter,
    /// Those that the peer has sent at least, by the numbers that have come.
    pub(crate) expected: Counter,
    /// Runs of lost datagrams.
    pub(crate) loss_events: Counter,
}

impl Tally {
    #[inline]
    pub(crate) fn record_sent(&self, bytes: usize) {
        self.sent_bytes.add(bytes as u64);
        self.send_calls.add(1);
    }

    #[inline]
    pub(crate) fn record_received(&self, bytes: usize) {
        self.received_bytes.add(bytes as u64);
        self.receive_calls.add(1);
    }

    #[inline]
    pub(crate) fn record_transaction(&self, latency_ns: u64, warm_up: bool) {
        self.transactions.add(1);
        self.timed.measured.add(u64::from(!warm_up));
        self.timed.latency_sum_ns.add(latency_ns);
    }

    /// Transactions that began after the warm-up.
    pub(crate) fn measured_transactions(&self) -> u64 {
        self.timed.measured.value()
    }

    /// The counts that only some kinds of load have, to count in.
    #[inline]
    pub(crate) fn extra(&self) -> &ExtraTally {
        self.extra.get_or_init(Box::default)
    }

    /// The same, where something was counted in them.
    pub(crate) fn known_extra(&self) -> Option<&ExtraTally> {
        self.extra.get().map(|extra| &**extra)
    }

    /// Media: frames sent, completed, late and dropped.
    pub(crate) fn frame_counts(&self) -> Option<[u64; 4]> {
        self.known_extra()?.frames.get().map(FrameTally::counts)
    }

    pub(crate) fn progress(&self) -> Progress {
        match self.progress.load(Ordering::Acquire) {
            0 => Progress::Opening,
            1 => Progress::Ready,
            _ => Progress::Ended,
        }
    }

    /// Also publishes everything that was counted before.
    pub(crate) fn set_progress(&self, progress: Progress) {
        self.progress.store(progress as u8, Ordering::Release);
    }

    pub(crate) fn counts(&self) -> Counts {
        let extra = self.known_extra();
        let arrivals = extra.map(|extra| &extra.arrivals);
        Counts {
            sent_bytes: self.sent_bytes.value(),
            send_calls: self.send_calls.value(),
            received_bytes: self.received_bytes.value(),
            receive_calls: self.receive_calls.value(),
            transactions: self.transactions.value(),
            latency_sum_ns: self.timed.latency_sum_ns.value(),
            datagrams: DatagramTotals {
                sent: self.datagrams.sent.value(),
                refused: extra.map_or(0, |extra| extra.refused_datagrams.value()),
                received: self.datagrams.received.value(),
                expected: self.datagrams.expected.value(),
                loss_events: self.datagrams.loss_events.value(),
                lost: arrivals.map_or(0, |arrivals| arrivals.lost.value()),
                reordered: arrivals.map_or(0, |arrivals| arrivals.reordered.value()),
            },
        }
    }
}

/// What a QUIC connection last said of its path. Its numbers are read one by one, and so may be of
/// two moments that follow each other.
#[derive(Debug, Default)]
pub(crate) struct PathGauge {
    rtt_us: Counter,
    min_rtt_us: Counter,
    cwnd_bytes: Counter,
    mtu_bytes: Counter,
    sent_packets: Counter,
    lost_packets: Counter,
    congestion_events: Counter,
    /// Those that may be unknown, as [`PathGauge::optional`] has them: their value and one more; 0: unknown.
    optional: [Counter; 11],
    /// Times, where they are known; each may be unknown, as those above.
    waits: [Counter; 5],
    knows_waits: Counter,
}

impl PathGauge {
    pub(crate) fn set(&self, status: &QuicStatus) {
        self.rtt_us.set(status.rtt_us.into());
        self.min_rtt_us.set(status.min_rtt_us.into());
        self.cwnd_bytes.set(status.cwnd_bytes);
        self.mtu_bytes.set(status.mtu_bytes.into());
        self.sent_packets.set(status.sent_packets);
        self.lost_packets.set(status.lost_packets);
        self.congestion_events.set(status.congestion_events);
        let mut status = *status;
        for (counter, value) in self.optional.iter().zip(Self::optional(&mut status)) {
            counter.set(value.map_or(0, |value| value.saturating_add(1)));
        }
        let waits = status.waits.unwrap_or_default();
        for (counter, value) in self.waits.iter().zip(waits.times()) {
            counter.set(value.map_or(0, |value| value.saturating_add(1)));
        }
        self.knows_waits.set(status.waits.is_some().into());
    }

    /// The figures of a status that may be unknown.
    fn optional(status: &mut QuicStatus) -> [&mut Option<u64>; 11] {
        [
            &mut status.ecn_events,
            &mut status.lost_bytes,
            &mut status.in_flight_bytes,
            &mut status.received_datagrams,
            &mut status.received_ce_datagrams,
            &mut status.sent_acks,
            &mut status.received_acks,
            &mut status.acked_bytes,
            &mut status.data_blocked,
            &mut status.stream_data_blocked,
            &mut status.socket_drops,
        ]
    }

    pub(crate) fn status(&self) -> QuicStatus {
        let short = |counter: &Counter| u32::try_from(counter.value()).unwrap_or(u32::MAX);
        let mut status = QuicStatus {
            rtt_us: short(&self.rtt_us),
            min_rtt_us: short(&self.min_rtt_us),
            cwnd_bytes: self.cwnd_bytes.value(),
            mtu_bytes: short(&self.mtu_bytes),
            sent_packets: self.sent_packets.value(),
            lost_packets: self.lost_packets.value(),
            congestion_events: self.congestion_events.value(),
            ..QuicStatus::default()
        };
        for (counter, value) in self.optional.iter().zip(Self::optional(&mut status)) {
            *value = counter.value().checked_sub(1);
        }
        let waits = self.waits.each_ref().map(|counter| counter.value().checked_sub(1));
        status.waits = (self.knows_waits.value() > 0).then(|| QuicWaits::of_times(waits));
        status
    }
}

/// A tally at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sent_bytes: u64,
    pub(crate) send_calls: u64,
    pub(crate) received_bytes: u64,
    pub(crate) receive_calls: u64,
    pub(crate) transactions: u64,
    pub(crate) latency_sum_ns: u64,
    pub(crate) datagrams: DatagramTotals,
}

/// Datagrams in a tally at one moment; the fields are those of [`DatagramTally`] and of its arrivals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DatagramTotals {
    pub(crate) sent: u64,
    pub(crate) refused: u64,
    pub(crate) received: u64,
    pub(crate) expected: u64,
    pub(crate) loss_events: u64,
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
}

impl DatagramTotals {
    /// Both added up. They are of different flows.
    fn plus(&self, other: &Self) -> Self {
        Self {
            sent: self.sent.wrapping_add(other.sent),
            refused: self.refused.wrapping_add(other.refused),
            received: self.received.wrapping_add(other.received),
            expected: self.expected.wrapping_add(other.expected),
            loss_events: self.loss_events.wrapping_add(other.loss_events),
            lost: self.lost.wrapping_add(other.lost),
            reordered: self.reordered.wrapping_add(other.reordered),
        }
    }

    /// Those that were sent, as far as the numbers tell that have come, and have not arrived yet.
    pub(crate) fn missing(&self) -> u64 {
        self.expected.saturating_sub(self.received)
    }

    /// What was added since an earlier moment.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(earlier.sent),
            refused: self.refused.saturating_sub(earlier.refused),
            received: self.received.saturating_sub(earlier.received),
            expected: self.expected.saturating_sub(earlier.expected),
            loss_events: self.loss_events.saturating_sub(earlier.loss_events),
            lost: self.lost.saturating_sub(earlier.lost),
            reordered: self.reordered.saturating_sub(earlier.reordered),
        }
    }
}

impl Counts {
    /// Both added up. They are of different flows.
    pub(crate) fn plus(&self, other: &Counts) -> Counts {
        Counts {
            sent_bytes: self.sent_bytes.wrapping_add(other.sent_bytes),
            send_calls: self.send_calls.wrapping_add(other.send_calls),
            received_bytes: self.received_bytes.wrapping_add(other.received_bytes),
            receive_calls: self.receive_calls.wrapping_add(other.receive_calls),
            transactions: self.transactions.wrapping_add(other.transactions),
            latency_sum_ns: self.latency_sum_ns.wrapping_add(other.latency_sum_ns),
            datagrams: self.datagrams.plus(&other.datagrams),
        }
    }

    /// What was added since an earlier moment.
    pub(crate) fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            send_calls: self.send_calls.saturating_sub(earlier.send_calls),
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
            receive_calls: self.receive_calls.saturating_sub(earlier.receive_calls),
            transactions: self.transactions.saturating_sub(earlier.transactions),
            latency_sum_ns: self.latency_sum_ns.saturating_sub(earlier.latency_sum_ns),
            datagrams: self.datagrams.since(&earlier.datagrams),
        }
    }
}
