//! Keeping to a rate as the original does: by the average since the start.

/// The pause between two looks at the rate where `--pacing-timer` was left at its default; the
/// original's newer releases look after each block, so that larger bursts would be no service.
const USUAL_PAUSE_NS: u64 = 250_000;
/// The default of `--pacing-timer`.
const USUAL_TIMER_US: u32 = 1000;

/// Says how many blocks may be sent: as many as keep the average since the start at the rate, and a
/// whole burst whenever one may.
#[derive(Debug)]
pub(in super::super) struct Throttle {
    bps: u64,
    burst: u64,
    pause_ns: u64,
    start_ns: Option<u64>,
    sent_bytes: u64,
}

impl Throttle {
    pub(in super::super) fn new(bps: u64, burst_blocks: u32, timer_us: u32) -> Self {
        let pause_ns = match timer_us {
            USUAL_TIMER_US => USUAL_PAUSE_NS,
            other => u64::from(other) * 1000,
        };
        let burst = u64::from(burst_blocks).max(1);
        Self { bps: bps.max(1), burst, pause_ns, start_ns: None, sent_bytes: 0 }
    }

    /// Blocks that may be sent now, or when to look again.
    #[inline]
    pub(super) fn poll(&mut self, now_ns: u64, block_bytes: usize) -> Result<u64, u64> {
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        let elapsed_ns = u128::from(now_ns.saturating_sub(start_ns));
        let due = u128::from(self.bps) * elapsed_ns / 8_000_000_000;
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        if due < self.sent_bytes {
            let at = u128::from(self.sent_bytes) * 8_000_000_000 / u128::from(self.bps);
            let at_ns = start_ns.saturating_add(u64::try_from(at).unwrap_or(u64::MAX));
            return Err(at_ns.max(now_ns.saturating_add(self.pause_ns)));
        }
        // What is due, and the block with which the average is passed.
        let blocks = (due - self.sent_bytes) / block_bytes.max(1) as u64 + 1;
        Ok(blocks.max(self.burst))
    }

    #[inline]
    pub(super) fn record_sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }

    /// The omitted time is over: the average begins anew.
    pub(super) fn restart(&mut self) {
        self.start_ns = None;
        self.sent_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_in(throttle: &mut Throttle, length_ns: u64, block: usize, late_ns: u64) -> u64 {
        let start_ns = 5_000_000_000;
        let (mut now_ns, mut sent) = (start_ns, 0);
        while now_ns < start_ns + length_ns {
            match throttle.poll(now_ns, block) {
                Ok(blocks) => {
                    throttle.record_sent(blocks as usize * block);
                    sent += blocks;
                }
                Err(at_ns) => now_ns = at_ns + late_ns,
            }
        }
        sent
    }

    #[test]
    fn the_average_is_the_rate_however_late_the_wake_ups() {
        for (bps, block) in [(1_000_000, 1460), (100_000_000, 131_072), (8_000_000_000, 1460)] {
            for late_ns in [0, 50_000, 3_000_000] {
                let mut throttle = Throttle::new(bps, 0, 1000);
                let sent = sent_in(&mut throttle, 2_000_000_000, block, late_ns) * block as u64;
                let wanted = bps / 4;
                let off = sent.abs_diff(wanted);
                let most = bps / 8 / 200 + 2 * block as u64;
                assert!(off <= most, "{bps} bit/s, {block} bytes, {late_ns} ns late: {sent}");
            }
        }
    }

    #[test]
    fn a_burst_leaves_as_a_whole() {
        let mut throttle = Throttle::new(20_000_000, 50, 1000);
        assert_eq!(throttle.poll(1, 1000), Ok(50));
        throttle.record_sent(50_000);
        assert!(throttle.poll(2, 1000).is_err());
        assert_eq!(throttle.poll(20_000_001, 1000), Ok(50));
    }

    #[test]
    fn a_coarse_timer_makes_few_bursts() {
        let mut throttle = Throttle::new(80_000_000, 0, 100_000);
        assert_eq!(throttle.poll(0, 1000), Ok(1));
        throttle.record_sent(1000);
        assert_eq!(throttle.poll(10, 1000), Err(100_000_010));
        assert_eq!(throttle.poll(100_000_010, 1000), Ok(1000));
    }
}
