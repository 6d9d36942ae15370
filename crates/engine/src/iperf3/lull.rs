//! A silence that is the end: of a sender that has stopped by its own count, before this end has received what
//! was asked for.
//!
//! An original's server stops so. It counts from the end of its own omitted time on, which isn't that of the client; and of
//! datagrams it counts those that are lost on the way, too.

use std::os::fd::AsFd;

use linerate_wire::iperf3::{Parameters, Protocol};

use super::streams::{Streams, goal_bytes};
use crate::clock::SECOND_NS;
use crate::phase::Phase;
use crate::socket::tcp_status;

/// The shortest silence that is the end.
const LEAST_NS: u64 = SECOND_NS;
/// How much longer it is where the sender can't be done by what came: a path may be cut off for a while.
const DOUBT_NS: u64 = 9 * SECOND_NS;
/// How many round trips it has at least.
const ROUND_TRIPS: u64 = 4;
/// What a kernel that paces sends at once, at least.
const PACED_BYTES: u64 = 128 << 10;

/// What is known of a receiving client's goal.
pub(super) struct Lull {
    /// What is asked for, where that is an amount.
    goal_bytes: Option<u64>,
    block_bytes: u64,
    datagrams: bool,
    /// Nothing comes for so long although the sender has more.
    gap_ns: u64,
}

impl Lull {
    pub(super) fn of(parameters: &Parameters) -> Self {
        Self {
            goal_bytes: goal_bytes(parameters),
            block_bytes: parameters.block_bytes.into(),
            datagrams: parameters.protocol == Protocol::Udp,
            gap_ns: gap_ns(parameters),
        }
    }

    /// Whether nothing more is to be expected, where nothing has come for so long.
    pub(super) fn is_end(&self, streams: &Streams, silent_ns: u64) -> bool {
        let Some(goal_bytes) = self.goal_bytes else { return false };
        if silent_ns < LEAST_NS || streams.load.phase() != Phase::Measure {
            return false;
        }
        let received = || streams.each.iter().map(|(_, shared)| shared).filter(|one| !one.sends);
        let bytes: u64 = received().map(|shared| shared.figures().bytes).sum();
        // Each datagram has its number.
        let sent =
            received().map(|shared| shared.figures().packets.saturating_mul(self.block_bytes));
        let sent: u64 = sent.fold(0, u64::saturating_add);
        let doubt_ns = match self.datagrams {
            // What the sender counts has come, in the omitted time or behind it.
            false if bytes < goal_bytes => return false,
            true if bytes == 0 => return false,
            // The last of them may be lost.
            true if sent < goal_bytes / 4 * 3 => DOUBT_NS,
            _ => 0,
        };
        let round_trip_ns = received().next().map_or(0, |shared| {
            let status = shared.flow.socket.as_ref().and_then(|socket| tcp_status(socket.as_fd()));
            status.map_or(0, |status| u64::from(status.rtt_us).saturating_mul(1000))
        });
        let least_ns = LEAST_NS.max(round_trip_ns.saturating_mul(ROUND_TRIPS));
        silent_ns >= least_ns.saturating_add(doubt_ns).saturating_add(self.gap_ns)
    }
}

/// How long nothing may come at the rates that are asked for: twice what they come to, as no timer is exact.
fn gap_ns(parameters: &Parameters) -> u64 {
    let block_bytes = u64::from(parameters.block_bytes);
    let burst_bytes = block_bytes.saturating_mul(parameters.burst_blocks.max(1).into());
    let paced = carried_ns(burst_bytes, parameters.bandwidth_bps);
    let by_kernel = carried_ns(block_bytes.max(PACED_BYTES), parameters.fq_rate_bps);
    let timer_ns = u64::from(parameters.pacing_timer_us).saturating_mul(1000);
    paced.saturating_add(by_kernel).saturating_add(timer_ns).saturating_mul(2)
}

/// How long so many bytes take at a rate; no time at all where there is none.
pub(super) fn carried_ns(bytes: u64, bps: u64) -> u64 {
    let scaled = u128::from(bytes) * 8 * u128::from(SECOND_NS);
    let ns = scaled.checked_div(bps.into()).unwrap_or(0);
    u64::try_from(ns).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_takes_its_bits_over_the_rate() {
        assert_eq!(carried_ns(1000, 0), 0);
        assert_eq!(carried_ns(1000, 8000), SECOND_NS);
        assert_eq!(carried_ns(1_000_000, 1), 8_000_000 * SECOND_NS);
        assert_eq!(carried_ns(u64::MAX, 1), u64::MAX / 4);
    }

    #[test]
    fn a_slow_sender_may_be_silent_for_longer() {
        let slow = |bandwidth_bps, burst_blocks, fq_rate_bps| {
            let parameters = Parameters {
                block_bytes: 100_000,
                bandwidth_bps,
                burst_blocks,
                fq_rate_bps,
                pacing_timer_us: 1000,
                ..Parameters::default()
            };
            gap_ns(&parameters) / SECOND_NS
        };
        assert_eq!(slow(0, 0, 0), 0);
        assert_eq!(slow(10_000, 0, 0), 160);
        assert_eq!(slow(10_000, 3, 0), 480);
        assert_eq!(slow(0, 0, 1 << 20), 2);
        assert!(slow(1, 1000, 1) > 1_000_000_000);
    }
}
