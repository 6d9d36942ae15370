//! The offset between two machines' clocks, from round trips of a message with four time stamps.

use crate::run::ClockOffset;

mod hulls;

pub use hulls::{ClockHulls, OffsetLines};

/// One round trip's time stamps, each in nanoseconds on the clock of the end that took it (T1 to
/// T4 of RFC 5905, section 8). The server's two are remote input: any value is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// T1: the client sends, on the client's clock.
    pub client_sent_ns: i64,
    /// T2: the server receives, on the server's clock.
    pub server_received_ns: i64,
    /// T3: the server sends, on the server's clock.
    pub server_sent_ns: i64,
    /// T4: the client receives, on the client's clock.
    pub client_received_ns: i64,
}

/// How far two clocks may drift apart, in parts per million of the time that passes: 50 for each,
/// what the crystals of computers are made to hold.
const DRIFT_PPM: u64 = 100;

/// Estimates the server's clock less the client's from several round trips.
///
/// The offset of one round trip is `((T2 - T1) + (T3 - T4)) / 2`, its delay is
/// `(T4 - T1) - (T3 - T2)`, and the truth at that moment lies within half the delay of the offset
/// (RFC 5905, section 8). Clocks drift apart in it, before it and after it, so the bound widens by
/// 100 parts per million of its delay and of the time between it and the first or the newest round
/// trip, whichever is farther (the dispersion of RFC 5905, section 4). The bound of the estimate
/// therefore holds at every moment between the first round trip and the newest. The round trip
/// whose bound is the tightest is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffsetEstimator {
    best: Option<Estimate>,
    least_delay_ns: Option<u64>,
    first_ns: i64,
    newest_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Estimate {
    offset_ns: i64,
    delay_ns: u64,
    at_ns: i64,
}

impl OffsetEstimator {
    /// An estimator that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one round trip into account. Stamps that can't be true are left out: time running
    /// backwards at one end, a server that held the message longer than the whole round trip
    /// took, or an offset beyond the range of 64 bits.
    pub fn record(&mut self, trip: RoundTrip) {
        let Some(estimate) = estimate_of(trip) else {
            return;
        };
        if self.best.is_none() {
            self.first_ns = trip.client_sent_ns;
            self.newest_ns = trip.client_received_ns;
        }
        self.first_ns = self.first_ns.min(trip.client_sent_ns);
        self.newest_ns = self.newest_ns.max(trip.client_received_ns);
        self.least_delay_ns = Some(
            self.least_delay_ns.map_or(estimate.delay_ns, |least| least.min(estimate.delay_ns)),
        );
        if self.best.is_none_or(|best| self.bound_ns(estimate) < self.bound_ns(best)) {
            self.best = Some(estimate);
        }
    }

    /// The server's clock less the client's, with its bound; `None` before the first credible
    /// round trip.
    pub fn estimate(&self) -> Option<ClockOffset> {
        self.best
            .map(|best| ClockOffset { offset_ns: best.offset_ns, bound_ns: self.bound_ns(best) })
    }

    /// The least round-trip delay in nanoseconds, the server's own time not counted; `None`
    /// before the first credible round trip.
    pub fn rtt_ns(&self) -> Option<u64> {
        self.least_delay_ns
    }

    /// Half the delay, and what clocks may drift apart until the farther end of the time seen.
    fn bound_ns(&self, estimate: Estimate) -> u64 {
        let age_ns =
            estimate.at_ns.abs_diff(self.first_ns).max(estimate.at_ns.abs_diff(self.newest_ns));
        let drifting_ns = u128::from(age_ns) + u128::from(estimate.delay_ns);
        let drift_ns = drifting_ns * u128::from(DRIFT_PPM) / 1_000_000;
        let drift_ns = u64::try_from(drift_ns).unwrap_or(u64::MAX);
        estimate.delay_ns.div_ceil(2).saturating_add(drift_ns)
    }
}

impl ClockOffset {
    /// The same offset so many nanoseconds after the time for which its bound holds: the clocks may have drifted
    /// apart since.
    #[must_use]
    pub fn after_ns(self, ns: u64) -> Self {
        let drift_ns = u128::from(ns) * u128::from(DRIFT_PPM) / 1_000_000;
        let drift_ns = u64::try_from(drift_ns).unwrap_or(u64::MAX);
        Self { bound_ns: self.bound_ns.saturating_add(drift_ns), ..self }
    }

    /// Whether no offset lies within both bounds. Of two offsets of the same clocks at one time one is then wrong: a
    /// clock was set in between.
    pub fn contradicts(self, other: Self) -> bool {
        self.offset_ns.abs_diff(other.offset_ns) > self.bound_ns.saturating_add(other.bound_ns)
    }
}

fn estimate_of(trip: RoundTrip) -> Option<Estimate> {
    // 128 bits hold every sum and difference of four 64-bit stamps.
    let [t1, t2, t3, t4] = [
        trip.client_sent_ns,
        trip.server_received_ns,
        trip.server_sent_ns,
        trip.client_received_ns,
    ]
    .map(i128::from);
    if t4 < t1 || t3 < t2 {
        return None;
    }
    let delay_ns = u64::try_from((t4 - t1) - (t3 - t2)).ok()?;
    let offset_ns = i64::try_from(((t2 - t1) + (t3 - t4)).div_euclid(2)).ok()?;
    Some(Estimate { offset_ns, delay_ns, at_ns: trip.client_received_ns })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trip(t1: i64, t2: i64, t3: i64, t4: i64) -> RoundTrip {
        RoundTrip {
            client_sent_ns: t1,
            server_received_ns: t2,
            server_sent_ns: t3,
            client_received_ns: t4,
        }
    }

    #[test]
    fn symmetric_path_gives_the_true_offset() {
        let mut estimator = OffsetEstimator::new();
        // The server is 1000 ahead, 50 each way, 7 in the server.
        estimator.record(trip(0, 1050, 1057, 107));
        let expected = ClockOffset { offset_ns: 1000, bound_ns: 50 };
        assert_eq!(estimator.estimate(), Some(expected));
        assert_eq!(estimator.rtt_ns(), Some(100));
    }

    #[test]
    fn offsets_contradict_each_other_beyond_their_bounds_and_the_drift() {
        let (old, new) = (
            ClockOffset { offset_ns: 1_000, bound_ns: 20 },
            ClockOffset { offset_ns: 1_050, bound_ns: 20 },
        );
        assert!(old.contradicts(new) && new.contradicts(old));
        // 100 parts per million of 0.1 ms.
        assert_eq!(old.after_ns(100_000), ClockOffset { offset_ns: 1_000, bound_ns: 30 });
        assert!(!old.after_ns(100_000).contradicts(new));
        let far = ClockOffset { offset_ns: i64::MIN, bound_ns: 0 };
        assert!(far.contradicts(ClockOffset { offset_ns: i64::MAX, bound_ns: 7 }));
        assert_eq!(far.after_ns(u64::MAX).bound_ns, u64::MAX / 10_000);
    }

    #[test]
    fn the_least_round_trip_is_kept() {
        let mut estimator = OffsetEstimator::new();
        estimator.record(trip(0, 100, 100, 1000));
        estimator.record(trip(0, 12, 12, 20));
        estimator.record(trip(0, 400, 400, 600));
        assert_eq!(estimator.rtt_ns(), Some(20));
        assert_eq!(estimator.estimate().map(|e| e.offset_ns), Some(2));
    }

    #[test]
    fn the_bound_widens_with_time() {
        let mut estimator = OffsetEstimator::new();
        estimator.record(trip(0, 1050, 1057, 107));
        // Ten seconds later a round trip that took 4 ms: less tight than the first one, aged.
        let later = 10_000_000_000;
        estimator.record(trip(later, later, later, later + 4_000_000));
        let expected = ClockOffset { offset_ns: 1000, bound_ns: 50 + 1_000_399 };
        assert_eq!(estimator.estimate(), Some(expected));
        assert_eq!(estimator.rtt_ns(), Some(100));
    }

    #[test]
    fn nothing_credible_gives_nothing() {
        let mut estimator = OffsetEstimator::new();
        estimator.record(trip(10, 0, 0, 5));
        estimator.record(trip(0, 5, 4, 10));
        estimator.record(trip(0, 0, 11, 10));
        estimator.record(trip(i64::MIN, i64::MAX, i64::MAX, i64::MIN));
        assert_eq!(estimator.estimate(), None);
        assert_eq!(estimator.rtt_ns(), None);
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_bound(
            start in -1_000_000_000_000_i64..1_000_000_000_000,
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            trips in proptest::collection::vec((0..1_000_000_i64, 0..1_000_000_i64, 0..1_000_000_i64), 1..20),
        ) {
            let mut estimator = OffsetEstimator::new();
            for (there, held, back) in trips {
                let arrived = start + there;
                estimator.record(trip(
                    start,
                    arrived + offset,
                    arrived + held + offset,
                    arrived + held + back,
                ));
            }
            let estimate = estimator.estimate().unwrap();
            prop_assert!(estimate.offset_ns.abs_diff(offset) <= estimate.bound_ns);
        }

        #[test]
        fn the_truth_of_drifting_clocks_is_within_the_bound_from_first_to_last(
            offset in -1_000_000_000_i64..1_000_000_000,
            drift_ppm in -100..=100_i64,
            trips in proptest::collection::vec(
                (0..1_000_000_000_i64, 0..1_000_000_i64, 0..1_000_000_i64), 1..50),
        ) {
            // The server's clock when the client's says `t`.
            let server = |t: i64| t + offset + t * drift_ppm / 1_000_000;
            let mut estimator = OffsetEstimator::new();
            let (mut now, mut moments) = (0, Vec::new());
            for (wait, there, back) in trips {
                now += wait;
                let arrived = server(now + there);
                estimator.record(trip(now, arrived, arrived, now + there + back));
                moments.push(now);
                now += there + back;
                moments.push(now);
            }
            let estimate = estimator.estimate().unwrap();
            for moment in moments {
                let truth = server(moment) - moment;
                // The clock, the offset and the drift are each rounded to a nanosecond.
                prop_assert!(estimate.offset_ns.abs_diff(truth) <= estimate.bound_ns + 3);
            }
        }

        #[test]
        fn no_stamps_panic(t1: i64, t2: i64, t3: i64, t4: i64) {
            let mut estimator = OffsetEstimator::new();
            estimator.record(trip(t1, t2, t3, t4));
            let _ = estimator.estimate();
        }
    }
}
