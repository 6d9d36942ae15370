//! The congestion window that the losses of a flow allow.

/// Fewer losses tell of no rate at which packets are lost.
const LEAST_LOSSES: u64 = 3;

/// What a flow lost, and had in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossyFlow<'a> {
    /// The congestion control.
    pub(super) congestion: Option<&'a str>,
    /// Segments sent again, or times that a loss made the congestion window smaller.
    pub(super) losses: u64,
    pub(super) sent_packets: f64,
    pub(super) rtt_us: Option<u32>,
    /// The congestion window in use.
    pub(super) window_packets: Option<f64>,
}

impl LossyFlow<'_> {
    /// The average congestion window at this loss rate p, against the one in use. The average of CUBIC is
    /// 1.054 (RTT / p)^0.75 packets, RTT in seconds, and no less than Reno's (RFC 9438, section 5). That of Reno is
    /// 1.2 / p^0.5 (RFC 3649). `None`: the losses are few, or the control has no such average.
    pub(super) fn window_ratio(&self) -> Option<f64> {
        if self.losses < LEAST_LOSSES || self.sent_packets < self.losses as f64 {
            return None;
        }
        let rate = self.losses as f64 / self.sent_packets;
        let reno = 1.2 / rate.sqrt();
        let average = match self.congestion? {
            "cubic" => reno.max(1.054 * (f64::from(self.rtt_us?) / 1e6 / rate).powf(0.75)),
            "reno" => reno,
            _ => return None,
        };
        Some(average / self.window_packets?).filter(|ratio| ratio.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.1 s, and one of 10,000 lost.
    const FLOW: LossyFlow<'_> = LossyFlow {
        congestion: Some("cubic"),
        losses: 10,
        sent_packets: 100_000.0,
        rtt_us: Some(100_000),
        window_packets: Some(100.0),
    };

    #[test]
    fn averages_are_those_of_the_formulas() {
        let reno = LossyFlow { congestion: Some("reno"), ..FLOW }.window_ratio();
        // 1.054 x 1000^0.75 packets; 120 packets.
        assert!((FLOW.window_ratio().unwrap() - 1.874).abs() < 0.001);
        assert!((reno.unwrap() - 1.2).abs() < 1e-9);
        assert_eq!(LossyFlow { rtt_us: Some(100), ..FLOW }.window_ratio(), reno);
    }

    #[test]
    fn nothing_is_told_of_few_losses_or_other_controls() {
        for flow in [
            LossyFlow { losses: 2, ..FLOW },
            LossyFlow { sent_packets: 0.0, ..FLOW },
            LossyFlow { congestion: Some("bbr"), ..FLOW },
            LossyFlow { congestion: None, ..FLOW },
            LossyFlow { rtt_us: None, ..FLOW },
            LossyFlow { window_packets: None, ..FLOW },
            LossyFlow { window_packets: Some(0.0), ..FLOW },
        ] {
            assert_eq!(flow.window_ratio(), None, "{flow:?}");
        }
    }
}
