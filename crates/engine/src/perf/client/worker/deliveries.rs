//! Deliveries that the transport tells only when asked: QUIC's acknowledgements.

use std::time::Duration;

use crate::transport::multiplexer::Multiplexer;

/// The shortest time between two looks.
const LEAST_US: u64 = 5_000;
/// The next look comes after this many times what the last one took: looks take a twentieth of a thread's time at most.
const TIMES: u64 = 20;

/// When deliveries are next asked for.
pub(super) struct DeliveryLooks {
    /// `u64::MAX`: the transport tells of each delivery by itself.
    next_us: u64,
}

impl DeliveryLooks {
    pub(super) fn new(endpoint: &impl Multiplexer) -> Self {
        Self { next_us: if endpoint.tells_deliveries_late() { 0 } else { u64::MAX } }
    }

    #[inline]
    pub(super) fn is_due(&self, now_us: u64) -> bool {
        now_us >= self.next_us
    }

    /// How long a thread may sleep before the next look.
    pub(super) fn left(&self, now_us: u64) -> Duration {
        Duration::from_micros(self.next_us.saturating_sub(now_us))
    }

    pub(super) fn record(&mut self, began_us: u64, ended_us: u64) {
        if self.next_us < u64::MAX {
            let took_us = ended_us.saturating_sub(began_us);
            self.next_us = ended_us.saturating_add(LEAST_US.max(TIMES * took_us));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_take_a_twentieth_of_the_time_at_most() {
        let mut looks = DeliveryLooks { next_us: 0 };
        assert!(looks.is_due(0));
        looks.record(1_000, 1_010);
        assert!(!looks.is_due(1_010 + LEAST_US - 1) && looks.is_due(1_010 + LEAST_US));
        looks.record(10_000, 20_000);
        assert_eq!(looks.left(20_000), Duration::from_millis(200));
        let mut told = DeliveryLooks { next_us: u64::MAX };
        told.record(1, 2);
        assert!(!told.is_due(u64::MAX - 1));
    }
}
