//! A rate of a connection's own.

use std::time::{Duration, Instant};

/// At a rate of its own, a connection may make up for so much time that it lost: on a busy machine it is
/// woken late, and would be too slow.
const CATCH_UP: Duration = Duration::from_millis(10);
/// And waits until it can send as much as this at once.
const BATCH: Duration = Duration::from_micros(500);
/// Any rate lets so many packets leave at once.
const LEAST_PACKETS: u64 = 2;
/// A sender may have no less than this unacknowledged,
const RATE_WINDOW_MIN_BYTES: u64 = 16 << 10;
/// or what leaves in so much time more than two round trips.
const RATE_WINDOW: Duration = Duration::from_millis(50);

/// What a sender with a rate of its own may have unacknowledged: its congestion window grows without end
/// while the rate keeps it from being filled.
pub(super) fn rate_window_bytes(bps: u64, rtt: Duration, packet_bytes: u64) -> u64 {
    let time_s = (rtt.saturating_mul(2) + RATE_WINDOW).as_secs_f64();
    let least = RATE_WINDOW_MIN_BYTES.max(packet_bytes.saturating_mul(LEAST_PACKETS));
    ((bps as f64 / 8.0 * time_s) as u64).max(least)
}

/// A connection's own rate: what may leave grows with time, up to a bound.
#[derive(Debug)]
pub(in super::super) struct Gate {
    bytes_per_s: f64,
    bytes: f64,
    at: Instant,
}

impl Gate {
    pub(super) fn new(bps: u64, now: Instant) -> Self {
        let bytes_per_s = bps as f64 / 8.0;
        Self { bytes_per_s, bytes: bytes_per_s * CATCH_UP.as_secs_f64(), at: now }
    }

    /// How many packets of this length may leave now.
    pub(in super::super) fn packets(&mut self, now: Instant, packet_bytes: u64) -> u64 {
        let most = self.bytes_per_s * CATCH_UP.as_secs_f64();
        let most = most.max((packet_bytes * LEAST_PACKETS) as f64);
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * self.bytes_per_s;
        self.bytes = (self.bytes + grown).min(most);
        self.at = now;
        (self.bytes / packet_bytes.max(1) as f64) as u64
    }

    pub(in super::super) fn record_sent(&mut self, bytes: usize) {
        self.bytes -= bytes as f64;
    }

    /// When so much may leave that it is worth waking up.
    pub(in super::super) fn opens_at(&self, packet_bytes: u64) -> Instant {
        let wanted = (self.bytes_per_s * BATCH.as_secs_f64()).max(packet_bytes as f64);
        // A nanosecond more: what is due must then be there, however it was rounded.
        let missing_s = ((wanted - self.bytes) / self.bytes_per_s).max(0.0) + 1e-9;
        self.at + Duration::try_from_secs_f64(missing_s).unwrap_or(CATCH_UP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_gate_keeps_to_its_rate(bps in 1_000_u64..10_000_000_000, packet in 1_200_u64..65_000) {
            let begin = Instant::now();
            let mut gate = Gate::new(bps, begin);
            let (mut now, mut sent) = (begin, 0);
            // Often enough to send what it may at first, at the highest rate in the shortest packets.
            for _ in 0..400 {
                let packets = gate.packets(now, packet).min(44);
                gate.record_sent((packets * packet) as usize);
                sent += packets * packet;
                if gate.packets(now, packet) == 0 {
                    let opens = gate.opens_at(packet);
                    proptest::prop_assert!(opens > now);
                    now = opens;
                    proptest::prop_assert!(gate.packets(now, packet) > 0);
                }
            }
            let allowed = bps as f64 / 8.0 * (now - begin + CATCH_UP).as_secs_f64();
            let most = allowed + (packet * LEAST_PACKETS) as f64;
            proptest::prop_assert!(sent as f64 <= most * 1.001, "{sent} of {most}");
            proptest::prop_assert!(sent as f64 >= allowed * 0.9 - (packet * 90) as f64, "{sent} of {allowed}");
        }
    }
}
