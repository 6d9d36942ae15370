//! The connections that an end sends on, interval by interval: what was sent again or lost, round-trip time,
//! congestion window.

use std::collections::BTreeMap;

use crate::plan::Workload;
use crate::sample::Sample;

/// What one end's samples say of its connections. Counters of a sample run from a connection's start; a connection
/// that is silent for a while keeps its own.
#[derive(Clone, Debug, Default)]
pub struct SendingPaths {
    /// What was lost on each connection up to the interval before.
    lost_before: BTreeMap<u32, u64>,
}

/// All connections of an end in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathFigures {
    /// Segments sent again in the interval (TCP), or packets held to be lost (QUIC), all together.
    pub lost: Option<u64>,
    /// Smoothed round-trip time at its end, mean of those that sent in it.
    pub mean_rtt_ns: Option<u64>,
    /// Congestion windows at its end, those that sent in it together.
    pub cwnd_bytes: Option<u64>,
    /// Bytes sent and neither acknowledged nor held to be lost at its end, likewise; `None` where one of them doesn't
    /// tell.
    pub in_flight_bytes: Option<u64>,
}

/// What is known of a connection.
struct Path {
    /// The flow's over TCP, the connection's over QUIC.
    number: u32,
    /// Whether it was sent on in this interval.
    sends: bool,
    lost: u64,
    rtt_us: u64,
    cwnd_bytes: u64,
    in_flight_bytes: Option<u64>,
}

impl SendingPaths {
    /// Takes the end's next sample. What the connections that it lists lost counts from the sample before; of the
    /// others nothing is known.
    pub fn record_sample(&mut self, sample: &Sample, workload: &Workload) -> PathFigures {
        let paths = self.of(sample, workload);
        let since = |path: &Path| {
            let before = self.lost_before.insert(path.number, path.lost).unwrap_or(0);
            path.lost.saturating_sub(before)
        };
        let lost = paths.iter().map(since).reduce(u64::saturating_add);
        let sending = || paths.iter().filter(|path| path.sends);
        let rtt_us = sending().fold(0_u64, |sum, path| sum.saturating_add(path.rtt_us));
        let count = sending().count() as u64;
        PathFigures {
            lost,
            mean_rtt_ns: rtt_us.saturating_mul(1000).checked_div(count),
            cwnd_bytes: sending().map(|path| path.cwnd_bytes).reduce(u64::saturating_add),
            in_flight_bytes: sending()
                .map(|path| path.in_flight_bytes)
                .reduce(|a, b| Some(a?.saturating_add(b?)))
                .flatten(),
        }
    }

    /// The connections that the end sends on, or has sent on before, each once, however many flows share it.
    fn of(&self, sample: &Sample, workload: &Workload) -> Vec<Path> {
        let mut paths: Vec<Path> = Vec::new();
        // There are never more of them than were asked for.
        let flows = workload.total_flows();
        for flow in sample.flows.iter().filter(|flow| flow.flow < flows) {
            let number = match flow.tcp {
                Some(_) => flow.flow,
                None => workload.connection_of(flow.flow),
            };
            let sends = flow.sent_bytes.is_some();
            if !sends && !self.lost_before.contains_key(&number) {
                continue;
            }
            let path = match (flow.tcp, &flow.quic) {
                (Some(tcp), _) => Path {
                    number,
                    sends,
                    lost: tcp.retransmitted_segments.into(),
                    rtt_us: tcp.rtt_us.into(),
                    cwnd_bytes: tcp.cwnd_bytes(),
                    in_flight_bytes: tcp.in_flight_bytes(),
                },
                (None, Some(quic)) => Path {
                    number,
                    sends,
                    lost: quic.lost_packets,
                    rtt_us: quic.rtt_us.into(),
                    cwnd_bytes: quic.cwnd_bytes,
                    in_flight_bytes: quic.in_flight_bytes,
                },
                (None, None) => continue,
            };
            // Flows of one connection stand beside each other.
            match paths.last_mut().filter(|path| path.number == number) {
                Some(path) => path.sends |= sends,
                None => paths.push(path),
            }
        }
        paths
    }
}
