//! The pace of connections that come and go: so many in each interval, then a pause to its end.

use std::time::Duration;

use crate::clock::{MILLISECOND_NS, monotonic_ns};

/// A pause is cut into such pieces, between which somebody may ask to stop.
const PIECE_NS: u64 = 20 * MILLISECOND_NS;

/// Where in its interval a test is.
pub(super) struct Intervals {
    burst: u32,
    interval_ns: u64,
    /// Connections that this interval still has.
    left: u32,
    ends_ns: u64,
}

impl Intervals {
    /// The first one begins now.
    pub(super) fn begin((burst, interval_us): (u32, u32), now_ns: u64) -> Self {
        let interval_ns = u64::from(interval_us) * 1_000;
        Self { burst, interval_ns, left: burst, ends_ns: now_ns.saturating_add(interval_ns) }
    }

    /// A connection is over: when the next one may begin, where that isn't at once.
    fn next_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return None;
        }
        self.left = self.burst;
        let ends_ns = self.ends_ns;
        // Intervals that were too short for their connections are not made up for.
        self.ends_ns = ends_ns.max(now_ns).saturating_add(self.interval_ns);
        (ends_ns > now_ns).then_some(ends_ns)
    }

    /// Sleeps until the next connection may begin, as long as the test goes on.
    pub(super) fn pause(&mut self, mut goes_on: impl FnMut() -> bool) {
        let Some(until_ns) = self.next_ns(monotonic_ns()) else { return };
        while goes_on() {
            let left_ns = until_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left_ns.min(PIECE_NS)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;

    #[test]
    fn each_interval_has_its_connections_and_none_is_made_up_for() {
        let mut intervals = Intervals::begin((2, 10), 1_000);
        assert_eq!(intervals.next_ns(2_000), None);
        assert_eq!(intervals.next_ns(3_000), Some(11_000));
        assert_eq!(intervals.next_ns(12_000), None);
        // The second interval was to end at 21,000.
        assert_eq!(intervals.next_ns(30_000), None);
        assert_eq!(intervals.next_ns(31_000), None);
        assert_eq!(intervals.next_ns(32_000), Some(40_000));
    }
}
