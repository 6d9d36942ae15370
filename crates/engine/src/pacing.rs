//! Keeping to a rate, evenly.

use linerate_wire::step::Pace;

use crate::clock::MILLISECOND_NS;

/// What a late sender may still make up for.
const MOST_DEBT_NS: u64 = 100 * MILLISECOND_NS;

/// Says when the next bytes may leave.
///
/// 1. Each send moves the time of the next one on by what its bytes cost at the rate, so the pace
///    doesn't drift with late wake-ups.
/// 2. A send is a quarter of a burst at most, so that a wake-up may be late by the rest of it.
/// 3. A sender that is behind goes at twice the rate until it has caught up, and no more than a
///    burst's worth of sends ever leaves at once.
/// 4. What lies further back than [`MOST_DEBT_NS`] is not made up for.
#[derive(Debug)]
pub(crate) struct Pacer {
    bps: u64,
    burst_ns: u64,
    /// When the next bytes leave by the rate.
    due_ns: u64,
    /// When they leave at twice the rate.
    doubled_ns: u64,
}

impl Pacer {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { bps: pace.bps.max(1), burst_ns: pace.burst_ns, due_ns: 0, doubled_ns: 0 }
    }

    /// The most bytes that may leave in one go, at least one.
    pub(crate) fn most_bytes(&self) -> usize {
        let bytes = u128::from(self.bps) * u128::from(self.burst_ns / 4) / 8_000_000_000;
        usize::try_from(bytes).unwrap_or(usize::MAX).max(1)
    }

    /// When the next bytes may leave, if not now.
    #[inline]
    pub(crate) fn wait_until(&self, now_ns: u64) -> Option<u64> {
        let next_ns = self.due_ns.max(self.doubled_ns);
        (next_ns > now_ns).then_some(next_ns)
    }

    /// Bytes left.
    #[inline]
    pub(crate) fn record_sent(&mut self, now_ns: u64, bytes: usize) {
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

    fn pacer(bps: u64) -> Pacer {
        Pacer::new(Pace { bps, burst_ns: MILLISECOND_NS })
    }

    /// Sends in pieces of `piece` bytes for a second, waking up `late_ns` after it asked to.
    fn sent_in_a_second(pacer: &mut Pacer, start_ns: u64, piece: usize, late_ns: u64) -> usize {
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
