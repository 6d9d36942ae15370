//! Whether a receiver to which little comes at a time lets more gather before it asks.

use std::time::Duration;

use super::counts::record_rest;
use crate::clock::{MILLISECOND_NS, monotonic_ns};

/// How long a rest is. Rests of 200 us gain a little more, but ask for twice the room for what comes
/// meanwhile; those of 50 us gain less.
const REST: Duration = Duration::from_micros(100);
/// The waits after which the rates with and without rests are compared.
const WAITS_PER_PERIOD: u32 = 32;
/// A receiver that waits longer than a millisecond each time wakes rarely enough without rests.
const LONGEST_PERIOD_NS: u64 = WAITS_PER_PERIOD as u64 * MILLISECOND_NS;
/// The periods with rests until one without shows whether they are still worth it.
const MOST_RESTING: u32 = 32;
/// The most periods without rests after rests in vain.
const MOST_PASSES: u32 = 4095;

/// A receiver's rests: its wake-ups moderated, as a network card's interrupts are.
///
/// A receiver that takes each small segment as it comes costs its sender much: the kernel wakes it and sends an
/// acknowledgement each time, and it holds the socket's lock when the sender needs it. A receiver that rests first
/// leaves the sender alone meanwhile and then finds much data.
///
/// Rests cost throughput where little can be on its way at a time, as with socket buffers of a few KiB. The rate
/// with rests then falls behind that without, and the receiver goes without rests for ever longer.
pub(crate) struct Rests {
    rests: bool,
    begun_ns: u64,
    bytes: u64,
    waits_left: u32,
    /// Bytes a nanosecond in the last two periods without rests, of which others may have cut one short; 0: none
    /// since it waited long.
    plain_rates: [f64; 2],
    /// Periods with rests since that one.
    resting: u32,
    /// Periods without rests before the next with them.
    passes: u32,
    /// How many they were last.
    last_passes: u32,
}

impl Rests {
    pub(crate) fn new() -> Self {
        Self {
            rests: false,
            begun_ns: 0,
            bytes: 0,
            waits_left: WAITS_PER_PERIOD,
            plain_rates: [0.0; 2],
            resting: 0,
            passes: 0,
            last_passes: 0,
        }
    }

    #[inline]
    pub(crate) fn record_received(&mut self, length: usize) {
        self.bytes += length as u64;
    }

    /// Called before a wait that follows a small read: rests, if resting is worth it.
    #[inline]
    pub(crate) fn rest(&mut self) {
        if self.waits_left == 0 {
            self.end_period(monotonic_ns());
        }
        self.waits_left -= 1;
        if self.rests {
            let begun_ns = monotonic_ns();
            std::thread::sleep(REST);
            record_rest(monotonic_ns() - begun_ns);
        }
    }

    fn end_period(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.begun_ns).max(1);
        let rate = self.bytes as f64 / elapsed_ns as f64;
        self.rests = if self.rests {
            self.goes_on_resting(rate)
        } else {
            self.begins_to_rest(rate, elapsed_ns)
        };
        (self.begun_ns, self.bytes, self.waits_left) = (now_ns, 0, WAITS_PER_PERIOD);
    }

    fn begins_to_rest(&mut self, rate: f64, elapsed_ns: u64) -> bool {
        if self.passes > 0 {
            self.passes -= 1;
            return false;
        }
        self.resting = 0;
        if elapsed_ns >= LONGEST_PERIOD_NS {
            self.plain_rates = [0.0; 2];
            return false;
        }
        self.plain_rates = [rate, self.plain_rates[0]];
        self.plain_rates[1] > 0.0
    }

    fn goes_on_resting(&mut self, rate: f64) -> bool {
        if self.plain_rates.iter().any(|plain| rate < *plain) {
            self.last_passes = (self.last_passes * 4 + 3).min(MOST_PASSES);
            self.passes = self.last_passes;
            return false;
        }
        self.last_passes = 0;
        self.resting += 1;
        self.resting < MOST_RESTING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = MILLISECOND_NS;

    /// A receiver to which periods bring so many bytes, without rests and with them.
    struct Model {
        receiver: Rests,
        now_ns: u64,
        plain_bytes: u64,
        resting_bytes: u64,
    }

    impl Model {
        fn new(plain_bytes: u64, resting_bytes: u64) -> Self {
            let now_ns = 1_000 * MILLISECOND_NS;
            let mut receiver = Rests::new();
            receiver.end_period(now_ns);
            assert!(!receiver.rests);
            Self { receiver, now_ns, plain_bytes, resting_bytes }
        }

        /// Whether it rests after one more period.
        fn rests_after(&mut self, period_ns: u64) -> bool {
            let Self { receiver, plain_bytes, resting_bytes, .. } = self;
            receiver.bytes = if receiver.rests { *resting_bytes } else { *plain_bytes };
            self.now_ns += period_ns;
            receiver.end_period(self.now_ns);
            receiver.rests
        }

        /// The periods of so many after which it rests, or doesn't.
        fn periods(&mut self, most: usize, rests: bool) -> Vec<usize> {
            (0..most).filter(|_| self.rests_after(PERIOD_NS) == rests).collect()
        }
    }

    #[test]
    fn it_rests_where_that_brings_no_less_and_sometimes_tries_without() {
        assert_eq!(Model::new(1_000, 1_000).periods(99, false), [0, 33, 66]);
    }

    #[test]
    fn rests_in_vain_become_rare_and_others_make_them_common_again() {
        let mut model = Model::new(1_000, 999);
        assert_eq!(model.periods(10_000, true), [1, 6, 23, 88, 345, 1370, 5467, 9564]);
        model.resting_bytes = 1_000;
        while !model.rests_after(PERIOD_NS) {}
        assert!(model.rests_after(PERIOD_NS));
        model.resting_bytes = 999;
        assert_eq!(model.periods(20, true), [4]);
    }

    #[test]
    fn receiver_with_long_waits_does_not_rest() {
        let mut model = Model::new(1, 1);
        assert!((0..100).all(|_| !model.rests_after(LONGEST_PERIOD_NS)));
        assert!(!model.rests_after(LONGEST_PERIOD_NS - 1));
        assert!(model.rests_after(LONGEST_PERIOD_NS - 1));
    }

    #[test]
    fn a_period_ends_after_its_waits() {
        let mut receiver = Rests::new();
        for _ in 0..WAITS_PER_PERIOD {
            receiver.record_received(1);
            receiver.rest();
        }
        assert_eq!((receiver.bytes, receiver.begun_ns), (u64::from(WAITS_PER_PERIOD), 0));
        receiver.rest();
        assert_eq!((receiver.bytes, receiver.waits_left), (0, WAITS_PER_PERIOD - 1));
    }
}
