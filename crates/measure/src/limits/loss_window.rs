//! The congestion window that the losses of a flow allow.

/// Fewer losses tell their rate roughly.
const FEW_LOSSES: u64 = 3;

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
    /// 1.2 / p^0.5 (RFC 3649). `None`: nothing was lost, or the control has no such average, or the losses are few and the
    /// average is above the window in use.
    pub(super) fn window_ratio(&self) -> Option<f64> {
        if self.losses == 0 || self.sent_packets < self.losses as f64 {
            return None;
        }
        let rate = self.losses as f64 / self.sent_packets;
        let reno = 1.2 / rate.sqrt();
        let average = match self.congestion? {
            "cubic" => reno.max(1.054 * (f64::from(self.rtt_us?) / 1e6 / rate).powf(0.75)),
            "reno" => reno,
            _ => return None,
        };
        let ratio = average / self.window_packets?;
        (ratio.is_finite() && (self.losses >= FEW_LOSSES || ratio <= 1.0)).then_some(ratio)
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
    fn few_losses_tell_of_a_window_above_the_average() {
        let few = LossyFlow { losses: 1, window_packets: Some(1100.0), ..FLOW };
        // 1.054 x 10,000^0.75 packets.
        assert!((few.window_ratio().unwrap() - 0.958).abs() < 0.001);
    }

    #[test]
    fn nothing_is_told_without_losses_or_an_average() {
        for flow in [
            LossyFlow { losses: 0, ..FLOW },
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
