//! Keeping to a rate as iperf3 does: by the average since the start.

/// Lets as many units leave as keep the average since the start at the rate, and a whole burst whenever one may.
#[derive(Debug)]
pub(crate) struct AveragePacer {
    bps: u64,
    burst_units: u64,
    pause_ns: u64,
    unit_bytes: u64,
    start_ns: Option<u64>,
    sent_bytes: u64,
    /// What may be sent before the average is looked at again.
    allowed_bytes: u64,
}

impl AveragePacer {
    pub(super) fn new(bps: u64, burst_units: u32, pause_ns: u64, unit_bytes: usize) -> Self {
        Self {
            bps: bps.max(1),
            burst_units: u64::from(burst_units).max(1),
            pause_ns,
            unit_bytes: unit_bytes.max(1) as u64,
            start_ns: None,
            sent_bytes: 0,
            allowed_bytes: 0,
        }
    }

    /// When the next unit may leave, if not now.
    #[inline]
    pub(super) fn wait_until(&mut self, now_ns: u64) -> Option<u64> {
        if self.allowed_bytes > 0 {
            return None;
        }
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        let elapsed_ns = u128::from(now_ns.saturating_sub(start_ns));
        let due = u128::from(self.bps) * elapsed_ns / 8_000_000_000;
        let due_bytes = u64::try_from(due).unwrap_or(u64::MAX);
        if due_bytes < self.sent_bytes {
            let at = u128::from(self.sent_bytes) * 8_000_000_000 / u128::from(self.bps);
            let at_ns = start_ns.saturating_add(u64::try_from(at).unwrap_or(u64::MAX));
            return Some(at_ns.max(now_ns.saturating_add(self.pause_ns)));
        }
        // What is due, and the unit with which the average is passed.
        let units = (due_bytes - self.sent_bytes) / self.unit_bytes + 1;
        self.allowed_bytes = units.max(self.burst_units).saturating_mul(self.unit_bytes);
        None
    }

    /// Units that may leave now.
    #[inline]
    pub(super) fn allowed_units(&self) -> usize {
        usize::try_from(self.allowed_bytes.div_ceil(self.unit_bytes)).unwrap_or(usize::MAX)
    }

    #[inline]
    pub(super) fn record_sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
        self.allowed_bytes = self.allowed_bytes.saturating_sub(bytes as u64);
    }

    /// The average begins anew.
    pub(super) fn restart(&mut self) {
        self.start_ns = None;
        self.sent_bytes = 0;
        self.allowed_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE_NS: u64 = 250_000;

    fn sent_in(pacer: &mut AveragePacer, length_ns: u64, late_ns: u64) -> u64 {
        let start_ns = 5_000_000_000;
        let (mut now_ns, mut sent) = (start_ns, 0);
        while now_ns < start_ns + length_ns {
            match pacer.wait_until(now_ns) {
                None => {
                    let bytes = pacer.allowed_units() * pacer.unit_bytes as usize;
                    pacer.record_sent(bytes);
                    sent += bytes as u64;
                }
                Some(at_ns) => now_ns = at_ns + late_ns,
            }
        }
        sent
    }

    #[test]
    fn the_average_is_the_rate_however_late_the_wake_ups() {
        for (bps, block) in [(1_000_000, 1460), (100_000_000, 131_072), (8_000_000_000, 1460)] {
            for late_ns in [0, 50_000, 3_000_000] {
                let mut pacer = AveragePacer::new(bps, 0, PAUSE_NS, block);
                let sent = sent_in(&mut pacer, 2_000_000_000, late_ns);
                let wanted = bps / 4;
                let off = sent.abs_diff(wanted);
                let most = bps / 8 / 200 + 2 * block as u64;
                assert!(off <= most, "{bps} bit/s, {block} bytes, {late_ns} ns late: {sent}");
            }
        }
    }

    #[test]
    fn a_burst_leaves_as_a_whole() {
        let mut pacer = AveragePacer::new(20_000_000, 50, PAUSE_NS, 1000);
        assert_eq!((pacer.wait_until(1), pacer.allowed_units()), (None, 50));
        pacer.record_sent(50_000);
        assert!(pacer.wait_until(2).is_some());
        assert_eq!((pacer.wait_until(20_000_001), pacer.allowed_units()), (None, 50));
    }

    #[test]
    fn a_coarse_timer_makes_few_bursts() {
        let mut pacer = AveragePacer::new(80_000_000, 0, 100_000_000, 1000);
        assert_eq!((pacer.wait_until(0), pacer.allowed_units()), (None, 1));
        pacer.record_sent(1000);
        assert_eq!(pacer.wait_until(10), Some(100_000_010));
        assert_eq!((pacer.wait_until(100_000_010), pacer.allowed_units()), (None, 1000));
    }
}
