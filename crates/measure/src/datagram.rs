//! What became of the datagrams of one flow, from their sequence numbers and times.

use crate::one_way::{Transit, Transits};
use crate::sample::DatagramCounts;

/// Sequence numbers behind the newest for which a second arrival is told from a first one.
pub const WINDOW_DATAGRAMS: u64 = 65_536;

const WORDS: usize = (WINDOW_DATAGRAMS / 64) as usize;

/// What is newest and what arrived, for one flow's receiver.
///
/// The sender numbers its datagrams 0, 1, 2, ... without a gap, warm-up included. Each arrival
/// falls under the first rule that fits:
///
/// 1. Its number isn't below the next expected one: it is received, in order, and the next
///    expected number is one more than its own (RFC 4737, section 3.3).
/// 2. It is more than [`WINDOW_DATAGRAMS`] behind: it is *late*. Whether it is a first or a
///    second arrival can't be told, so it isn't received, and counts as lost.
/// 3. It has arrived before: it is duplicated.
/// 4. Else it is received and reordered (RFC 4737, section 3.3, Type-P-Reordered).
///
/// The number `u64::MAX` has no successor and no sender reaches it: it is late whenever it comes.
///
/// Warm-up datagrams are tracked like the others and left out of every count and of the jitter.
///
/// Memory is limited: 8 KiB for the window, and 8 KiB for times of transit. No arrival costs more than clearing the window.
#[derive(Clone, Debug)]
pub struct SequenceTracker {
    next_expected: u64,
    /// First arrivals, warm-up included.
    arrived: u64,
    received: u64,
    duplicated: u64,
    reordered: u64,
    late: u64,
    /// Runs of measured numbers that are missing between measured ones that arrived.
    loss_events: u64,
    times: Times,
    has_warm_up: bool,
    /// Least measured number, `u64::MAX` before the first.
    lowest_measured: u64,
    /// One more than the greatest measured number.
    after_measured: u64,
    /// One bit for each number of the window, at its value modulo the window.
    seen: Box<[u64; WORDS]>,
}

/// What is found from the times of datagrams.
#[derive(Clone, Debug, Default)]
struct Times {
    jitter: Jitter,
    transits: Transits,
}

impl Times {
    #[inline]
    fn record(&mut self, sent_ns: u64, received_ns: u64) {
        self.jitter.record(sent_ns, received_ns);
        self.transits.record(sent_ns, received_ns);
    }
}

impl Default for SequenceTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl SequenceTracker {
    /// A tracker that has seen nothing.
    pub fn new() -> Self {
        Self {
            next_expected: 0,
            arrived: 0,
            received: 0,
            duplicated: 0,
            reordered: 0,
            late: 0,
            loss_events: 0,
            times: Times::default(),
            has_warm_up: false,
            lowest_measured: u64::MAX,
            after_measured: 0,
            seen: Box::new([0; WORDS]),
        }
    }

    /// The flow begins with a warm-up, whether anything of it arrives or not.
    pub fn expect_warm_up(&mut self) {
        self.has_warm_up = true;
    }

    /// Records the arrival of datagram `seq`, sent at `sent_ns` on the sender's clock and received
    /// at `received_ns` on this end's; `warm_up` is the sender's flag in the datagram.
    #[inline]
    pub fn record(&mut self, seq: u64, sent_ns: u64, received_ns: u64, warm_up: bool) {
        if seq < self.next_expected || seq == u64::MAX {
            return self.record_behind(seq, sent_ns, received_ns, warm_up);
        }
        if seq > self.next_expected {
            self.skip(seq, warm_up);
        }
        self.seen[word_of(seq)] |= bit_of(seq);
        self.next_expected = seq + 1;
        self.arrived += 1;
        if warm_up {
            self.has_warm_up = true;
            return;
        }
        self.lowest_measured = self.lowest_measured.min(seq);
        self.after_measured = seq + 1;
        self.received += 1;
        self.times.record(sent_ns, received_ns);
    }

    /// Records `count` datagrams with the numbers `first_seq`, `first_seq + 1`, ... that were sent
    /// at one time and received at one time: a batch as GRO hands it over. The same as as many
    /// calls of [`SequenceTracker::record`], and cheaper where the batch is in order.
    #[inline]
    pub fn record_run(
        &mut self,
        first_seq: u64,
        count: u32,
        sent_ns: u64,
        received_ns: u64,
        warm_up: bool,
    ) {
        let after = match first_seq.checked_add(u64::from(count)) {
            Some(after) if first_seq >= self.next_expected && count > 0 => after,
            _ => return self.record_each(first_seq, count, sent_ns, received_ns, warm_up),
        };
        if first_seq > self.next_expected {
            self.skip(first_seq, warm_up);
        }
        self.remember(first_seq, after);
        self.next_expected = after;
        self.arrived += u64::from(count);
        if warm_up {
            self.has_warm_up = true;
            return;
        }
        self.lowest_measured = self.lowest_measured.min(first_seq);
        self.after_measured = after;
        self.received += u64::from(count);
        self.times.record(sent_ns, received_ns);
        self.times.jitter.repeat(count - 1);
    }

    /// The counts so far. `sent` is what the sender says it sent after the warm-up; without it
    /// everything up to the newest number seen is taken as sent, so losses at the end don't show.
    /// `dropped_by_socket` is passed on.
    pub fn counts(&self, sent: Option<u64>, dropped_by_socket: Option<u64>) -> DatagramCounts {
        // Without any sign of a warm-up, the measured numbers began at 0.
        let first = if self.has_warm_up { self.lowest_measured } else { 0 };
        let seen = self.after_measured.saturating_sub(first);
        let expected = sent.unwrap_or(seen);
        // The last ones that were sent, or all of them, may be one run more.
        let is_cut = expected > seen || (self.received == 0 && expected > 0);
        DatagramCounts {
            sent,
            refused: None,
            received: Some(self.received),
            lost: Some(expected.saturating_sub(self.received)),
            duplicated: Some(self.duplicated),
            reordered: Some(self.reordered),
            late: Some(self.late),
            dropped_by_socket,
            loss_events: Some(self.loss_events.saturating_add(u64::from(is_cut))),
            ..DatagramCounts::default()
        }
    }

    /// Runs of lost datagrams so far: missing numbers beside each other, with measured ones that arrived before and
    /// behind them. It goes back where a missing datagram arrives after all.
    #[inline]
    pub fn loss_events(&self) -> u64 {
        self.loss_events
    }

    /// One more than the greatest number seen, warm-up included: so many datagrams have been sent
    /// at least.
    #[inline]
    pub fn next_expected(&self) -> u64 {
        self.next_expected
    }

    /// Datagrams that have arrived, warm-up included, each counted once however often it came;
    /// those that are late are not among them.
    #[inline]
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Interarrival jitter in nanoseconds (RFC 3550, section 6.4.1 and appendix A.8), over first
    /// arrivals in the order they came; `None` before the second.
    pub fn jitter_ns(&self) -> Option<f64> {
        (self.received >= 2).then(|| self.times.jitter.in_ns())
    }

    /// How long datagrams were on their way, by the difference of the two clocks: one in each batch that came at once.
    /// `None` before the first that tells when it was sent.
    pub fn transit(&self) -> Option<Transit> {
        self.times.transits.transit()
    }

    fn record_each(
        &mut self,
        first: u64,
        count: u32,
        sent_ns: u64,
        received_ns: u64,
        warm_up: bool,
    ) {
        for place in 0..u64::from(count) {
            self.record(first.saturating_add(place), sent_ns, received_ns, warm_up);
        }
    }

    #[cold]
    fn record_behind(&mut self, seq: u64, sent_ns: u64, received_ns: u64, warm_up: bool) {
        let measured = u64::from(!warm_up);
        self.has_warm_up |= warm_up;
        if seq == u64::MAX || self.next_expected - seq > WINDOW_DATAGRAMS {
            self.late += measured;
            return;
        }
        let word = &mut self.seen[word_of(seq)];
        if *word & bit_of(seq) != 0 {
            self.duplicated += measured;
            return;
        }
        *word |= bit_of(seq);
        self.arrived += 1;
        if warm_up {
            return;
        }
        self.fill(seq);
        self.lowest_measured = self.lowest_measured.min(seq);
        self.after_measured = self.after_measured.max(seq + 1);
        self.received += 1;
        self.reordered += 1;
        self.times.record(sent_ns, received_ns);
    }

    /// The numbers from the next expected one up to `seq`, not included, are missing so far.
    #[cold]
    fn skip(&mut self, seq: u64, warm_up: bool) {
        // What is missing at the end of the warm-up belongs to neither part.
        let is_measured = self.after_measured > 0 || !self.has_warm_up;
        self.loss_events += u64::from(is_measured && !warm_up);
        self.forget(self.next_expected, seq);
    }

    /// A missing number below the next expected one arrives after all: a run of missing ones ends with it, begins
    /// behind it, or is it alone.
    fn fill(&mut self, seq: u64) {
        let is_missing = |tracker: &Self, seq: u64| tracker.seen[word_of(seq)] & bit_of(seq) == 0;
        let first = if self.has_warm_up { self.lowest_measured } else { 0 };
        if seq < first {
            // The measured part begins earlier than it seemed.
            self.loss_events += u64::from(is_missing(self, seq + 1));
            return;
        }
        let in_window = seq > first && self.next_expected - (seq - 1) <= WINDOW_DATAGRAMS;
        let is_after_missing = in_window && is_missing(self, seq - 1);
        let is_before_missing = is_missing(self, seq + 1);
        match (is_after_missing, is_before_missing) {
            (true, true) => self.loss_events += 1,
            (false, false) => self.loss_events = self.loss_events.saturating_sub(1),
            _ => {}
        }
    }

    /// Marks the numbers from `from` up to `to`, not included, as not seen.
    #[cold]
    fn forget(&mut self, from: u64, to: u64) {
        if to - from >= WINDOW_DATAGRAMS {
            self.seen.fill(0);
            return;
        }
        for_each_word(from, to, |word, mask| self.seen[word] &= !mask);
    }

    /// Marks them as seen.
    #[inline]
    fn remember(&mut self, from: u64, to: u64) {
        if to - from >= WINDOW_DATAGRAMS {
            self.seen.fill(u64::MAX);
            return;
        }
        for_each_word(from, to, |word, mask| self.seen[word] |= mask);
    }
}

/// Calls `visit` with the place of each word that holds numbers from `from` up to `to`, not
/// included, and the mask of their bits in it.
#[inline]
fn for_each_word(from: u64, to: u64, mut visit: impl FnMut(usize, u64)) {
    let mut seq = from;
    while seq < to {
        let start = seq % 64;
        let length = (64 - start).min(to - seq);
        visit(word_of(seq), (u64::MAX >> (64 - length)) << start);
        seq += length;
    }
}

#[inline]
fn word_of(seq: u64) -> usize {
    (seq / 64) as usize % WORDS
}

#[inline]
fn bit_of(seq: u64) -> u64 {
    1 << (seq % 64)
}

/// RFC 3550, appendix A.8: `J += (|D| - J) / 16`, `D` the change in transit time from one arrival
/// to the next. The two clocks may differ by any constant.
///
/// `J` is kept in integers, as the RFC's own code does: each arrival waits for the `J` of the one
/// before, and a shift takes a fraction of the time of a multiplication of floats.
#[derive(Clone, Copy, Debug, Default)]
struct Jitter {
    /// In nanoseconds, with [`Jitter::FRACTION_BITS`] behind the point.
    smoothed: u64,
    last_transit_ns: u64,
    started: bool,
}

impl Jitter {
    const FRACTION_BITS: u32 = 8;
    /// A change of transit time above this, 13 days, counts as this: `smoothed` can't overflow.
    const MAX_CHANGE_NS: u64 = 1 << 50;

    #[inline]
    fn record(&mut self, sent_ns: u64, received_ns: u64) {
        // Modulo 2^64, so that a clock behind the sender's and hostile stamps are all the same.
        let transit_ns = received_ns.wrapping_sub(sent_ns);
        let change_ns = transit_ns.wrapping_sub(self.last_transit_ns) as i64;
        self.last_transit_ns = transit_ns;
        if !self.started {
            self.started = true;
            return;
        }
        let change_ns = change_ns.unsigned_abs().min(Self::MAX_CHANGE_NS);
        self.smoothed -= (self.smoothed + 8) / 16;
        self.smoothed += change_ns << (Self::FRACTION_BITS - 4);
    }

    /// `times` more arrivals with the last one's transit time.
    #[inline]
    fn repeat(&mut self, times: u32) {
        if times == 0 {
            return;
        }
        let times = i32::try_from(times).unwrap_or(i32::MAX);
        let kept = (15.0_f64 / 16.0).powi(times);
        self.smoothed = (self.smoothed as f64 * kept).round() as u64;
    }

    fn in_ns(&self) -> f64 {
        self.smoothed as f64 / f64::from(1_u32 << Self::FRACTION_BITS)
    }
}

/// Splits a count of lost datagrams over intervals. The count goes back when a datagram comes that was only overtaken;
/// the intervals behind are then told so much less, until all that was told is lost again.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossIntervals {
    told: u64,
}

impl LossIntervals {
    /// Intervals that begin where so many are lost.
    pub fn from(lost: u64) -> Self {
        Self { told: lost }
    }

    /// So many are lost up to now: the part that no interval has been told of.
    pub fn next(&mut self, lost: u64) -> u64 {
        let part = lost.saturating_sub(self.told);
        self.told += part;
        part
    }
}

#[cfg(test)]
mod tests;
