//! Keeping to a rate: evenly, or by the average.

mod average;

use linerate_measure::step::Pace;

use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::phase::Reached;
use average::AveragePacer;

/// What a late sender may still make up for.
const MOST_DEBT_NS: u64 = 100 * MILLISECOND_NS;

/// Says when a sender's next bytes may leave.
#[derive(Debug)]
pub(crate) enum Pacer {
    Even(EvenPacer),
    Average(AveragePacer),
}

impl Pacer {
    /// For a sender of units of so many bytes.
    pub(crate) fn new(pace: Pace, unit_bytes: usize) -> Self {
        match pace {
            Pace::Even { bps, burst_ns, least_bytes, first_ns } => {
                Self::Even(EvenPacer::new(bps, burst_ns, least_bytes, first_ns))
            }
            Pace::Average { bps, burst_units, pause_ns } => {
                Self::Average(AveragePacer::new(bps, burst_units, pause_ns, unit_bytes))
            }
        }
    }

    /// The most bytes that may ever leave in one go, at least one.
    pub(crate) fn most_bytes(&self) -> usize {
        match self {
            Self::Even(pacer) => pacer.most_bytes(),
            Self::Average(_) => usize::MAX,
        }
    }

    /// Units that may leave in one go when there is nothing to wait for.
    #[inline]
    pub(crate) fn allowed_units(&self) -> usize {
        match self {
            Self::Even(_) => usize::MAX,
            Self::Average(pacer) => pacer.allowed_units(),
        }
    }

    /// When the next bytes may leave, if not now.
    #[inline]
    pub(crate) fn wait_until(&mut self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Even(pacer) => pacer.wait_until(now_ns),
            Self::Average(pacer) => pacer.wait_until(now_ns),
        }
    }

    /// Bytes left.
    #[inline]
    pub(crate) fn record_sent(&mut self, now_ns: u64, bytes: usize) {
        match self {
            Self::Even(pacer) => pacer.record_sent(now_ns, bytes),
            Self::Average(pacer) => pacer.record_sent(bytes),
        }
    }

    /// Bytes were refused by this machine; says whether they have had their time at the rate. Otherwise the average
    /// makes up for them.
    pub(crate) fn record_refused(&mut self, now_ns: u64, bytes: usize) -> bool {
        match self {
            Self::Even(pacer) => pacer.record_sent(now_ns, bytes),
            Self::Average(_) => return false,
        }
        true
    }

    /// The warm-up is over.
    pub(crate) fn end_warm_up(&mut self) {
        if let Self::Average(pacer) = self {
            pacer.restart();
        }
    }

    /// When a sender has ended, which now sees that the load has: one that rested until its rate let it send
    /// ended with the load.
    pub(crate) fn end_ns(pacer: Option<&mut Self>, reached: Reached) -> u64 {
        let now_ns = monotonic_ns();
        let rests = pacer.is_some_and(|pacer| pacer.wait_until(now_ns).is_some());
        if rests { now_ns.min(reached.ends_ns) } else { now_ns }
    }
}

/// Keeps to a rate evenly.
///
/// 1. Each send moves the time of the next one on by what its bytes cost at the rate, so the pace
///    doesn't drift with late wake-ups.
/// 2. A send is a quarter of a burst at most, so that a wake-up may be late by the rest of it; but never less
///    than the pace says.
/// 3. A sender that is behind goes at twice the rate until it has caught up, and no more than a
///    burst's worth of sends ever leaves at once.
/// 4. What lies further back than [`MOST_DEBT_NS`] is not made up for.
#[derive(Debug)]
pub(crate) struct EvenPacer {
    bps: u64,
    burst_ns: u64,
    least_bytes: u32,
    /// When the first bytes are due, after the first look; `None` once that is settled.
    first_ns: Option<u64>,
    /// When the next bytes leave by the rate.
    due_ns: u64,
    /// When they leave at twice the rate.
    doubled_ns: u64,
}

impl EvenPacer {
    fn new(bps: u64, burst_ns: u64, least_bytes: u32, first_ns: u64) -> Self {
        Self {
            bps: bps.max(1),
            burst_ns,
            least_bytes,
            first_ns: Some(first_ns),
            due_ns: 0,
            doubled_ns: 0,
        }
    }

    /// The most bytes that may leave in one go, at least one.
    fn most_bytes(&self) -> usize {
        let bytes = u128::from(self.bps) * u128::from(self.burst_ns / 4) / 8_000_000_000;
        usize::try_from(bytes).unwrap_or(usize::MAX).max(self.least_bytes as usize).max(1)
    }

    /// When the next bytes may leave, if not now.
    #[inline]
    fn wait_until(&mut self, now_ns: u64) -> Option<u64> {
        if let Some(first_ns) = self.first_ns.take()
            && first_ns > 0
        {
            self.due_ns = now_ns.saturating_add(first_ns);
        }
        let next_ns = self.due_ns.max(self.doubled_ns);
        (next_ns > now_ns).then_some(next_ns)
    }

    /// Bytes left.
    #[inline]
    fn record_sent(&mut self, now_ns: u64, bytes: usize) {
        let cost = bytes as u128 * 8_000_000_000 / u128::from(self.bps);
        let cost_ns = u64::try_from(cost).unwrap_or(u64::MAX);
        let oldest_ns = now_ns.saturating_sub(if self.due_ns == 0 { 0 } else { MOST_DEBT_NS });
        self.due_ns = self.due_ns.max(oldest_ns).saturating_add(cost_ns);
        let slack_ns = self.burst_ns.saturating_sub(cost_ns) / 2;
        self.doubled_ns =
            self.doubled_ns.max(now_ns.saturating_sub(slack_ns)).saturating_add(cost_ns / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(bps: u64) -> EvenPacer {
        EvenPacer::new(bps, MILLISECOND_NS, 1, 0)
    }

    /// Sends in pieces of `piece` bytes for a second, waking up `late_ns` after it asked to.
    fn sent_in_a_second(pacer: &mut EvenPacer, start_ns: u64, piece: usize, late_ns: u64) -> usize {
        let (mut now_ns, mut sent) = (start_ns, 0);
        while now_ns < start_ns + 1_000_000_000 {
            match pacer.wait_until(now_ns) {
                Some(due_ns) => now_ns = due_ns + late_ns,
                None => {
                    pacer.record_sent(now_ns, piece);
                    sent += piece;
                }
            }
        }
        sent
    }

    #[test]
    fn one_go_is_a_quarter_of_a_millisecond() {
        assert_eq!(pacer(1_000_000_000).most_bytes(), 31_250);
        assert_eq!(pacer(1_000).most_bytes(), 1);
    }

    #[test]
    fn flows_that_share_a_low_rate_send_whole_pieces_in_turn() {
        // 100 flows of 1 kbit/s each: a piece every 9.2 s a flow, one every 92 ms in all.
        let between_ns = 9_200_000_000;
        let mut due: Vec<u64> = (0..100)
            .map(|flow| {
                let (least_bytes, first_ns) = (1150, between_ns * flow / 100);
                let mut pacer = EvenPacer::new(1000, MILLISECOND_NS, least_bytes, first_ns);
                assert_eq!(pacer.most_bytes(), 1150);
                let first_ns = pacer.wait_until(1_000_000_000).unwrap_or(1_000_000_000);
                pacer.record_sent(first_ns, 1150);
                assert_eq!(pacer.wait_until(first_ns), Some(first_ns + between_ns));
                first_ns
            })
            .collect();
        due.sort_unstable();
        assert!(due.windows(2).all(|pair| pair[1] - pair[0] == between_ns / 100));
    }

    #[test]
    fn late_wake_ups_do_not_lower_the_rate() {
        for piece in [50, 1000, 2500] {
            for late_ns in [0, 60_000, 250_000] {
                let sent = sent_in_a_second(&mut pacer(80_000_000), 1_000_000_000, piece, late_ns);
                let right = (9_970_000..=10_030_000).contains(&sent);
                assert!(right, "{piece} bytes at a time, {late_ns} ns late: {sent}");
            }
        }
    }

    #[test]
    fn a_stall_is_made_up_for_in_part_and_never_at_once() {
        for piece in [50, 1000, 2500, 10_000] {
            let mut pacer = pacer(80_000_000);
            pacer.record_sent(1_000_000_000, piece);
            let (now_ns, mut at_once) = (3_000_000_000_u64, 0);
            while pacer.wait_until(now_ns).is_none() {
                pacer.record_sent(now_ns, piece);
                at_once += piece;
            }
            assert!((1..=10_000).contains(&at_once), "{piece} bytes at a time: {at_once}");
            let sent = sent_in_a_second(&mut pacer, now_ns, piece, 0);
            assert!((10_970_000..=11_030_000).contains(&(sent + at_once)), "{sent}");
        }
    }
}
