//! What limited a direction of datagrams.

use super::super::advice::advice;
use super::super::delays::Delays;
use super::super::rules::{self, DatagramShares, Facts};
use super::super::seen::Ends;
use super::super::{Cause, Limit, Place};
use super::Measured;
use crate::plan::{Direction, Kind};
use crate::report::{EndReport, FlowReport};
use crate::sample::DatagramCounts;

/// A rate counts as kept from this share on.
const KEPT: f64 = 0.98;
/// What the shortest QUIC packet adds to a datagram: its type, a packet number, a frame's type and the cipher's tag.
const QUIC_BYTES: u32 = 19;

/// The two ends of a direction, with the flows that went that way.
struct Way<'a> {
    is_received: bool,
    sent_by: Vec<&'a FlowReport>,
    received_by: Vec<&'a FlowReport>,
}

impl<'a> Way<'a> {
    fn new(run: &Measured<'a>, way: Direction) -> Option<Self> {
        let flows = |report: &'a EndReport| {
            let all = report.flows.iter();
            all.filter(|flow| run.workload.flow_direction(flow.flow) == way).collect::<Vec<_>>()
        };
        let (sender, receiver) = match way {
            Direction::Down => (run.server?, Some(run.client)),
            Direction::Up | Direction::Both => (run.client, run.server),
        };
        let (sent_by, received_by) = (flows(sender), receiver.map(flows).unwrap_or_default());
        Some(Self { is_received: receiver.is_some(), sent_by, received_by })
    }

    /// What became of the datagrams of all flows.
    fn shares(&self) -> DatagramShares {
        let sum = |flows: &[&FlowReport], count: fn(&DatagramCounts) -> Option<u64>| {
            let counts = flows.iter().filter_map(|flow| count(flow.datagrams.as_ref()?));
            counts.fold(0, u64::saturating_add)
        };
        let sent = sum(&self.sent_by, |counts| counts.sent);
        let refused = sum(&self.sent_by, |counts| counts.refused);
        let all = sent.saturating_add(refused).max(1) as f64;
        let share = |count: u64| count as f64 / all;
        let mut shares = DatagramShares { refused: share(refused), ..DatagramShares::default() };
        if self.is_received {
            let received = sum(&self.received_by, |counts| counts.received);
            shares.lost = share(sent.saturating_sub(received));
            shares.dropped_by_socket =
                share(sum(&self.received_by, |counts| counts.dropped_by_socket));
        }
        shares
    }

    /// The rate at which all flows sent.
    fn sent_bps(&self) -> Option<f64> {
        let from_ns = self.sent_by.iter().filter_map(|flow| flow.from_ns).min()?;
        let to_ns = self.sent_by.iter().filter_map(|flow| flow.to_ns).max()?;
        let bytes = self.sent_by.iter().filter_map(|flow| Some(flow.sent?.bytes));
        let bytes = bytes.fold(0, u64::saturating_add) as f64;
        Some(bytes * 8e9 / to_ns.saturating_sub(from_ns).max(1) as f64)
    }

    /// The delays of the flow that waited longest.
    fn delays(&self) -> Option<Delays> {
        let all = self.received_by.iter().filter_map(|flow| {
            let time_ns = flow.to_ns?.saturating_sub(flow.from_ns?);
            Delays::new(flow.transit.as_deref()?, time_ns)
        });
        all.max_by(|a, b| a.level_ns.total_cmp(&b.level_ns))
    }

    /// The longest UDP payload that the QUIC connections found the path to carry in the end.
    fn path_mtu(&self) -> Option<u32> {
        let found = self.sent_by.iter().filter_map(|flow| Some(flow.quic?.mtu_bytes));
        found.filter(|bytes| *bytes > 0).min()
    }

    fn receive_buffer_bytes(&self) -> Option<u64> {
        let sockets = self.received_by.iter().filter_map(|flow| flow.socket.as_ref());
        sockets.filter_map(|socket| socket.receive_buffer_bytes).min().map(u64::from)
    }
}

impl<'a> Measured<'a> {
    /// What limited the datagrams that went this way.
    pub(super) fn datagrams(&self, way: Direction, ends: &Ends<'a>) -> Option<Limit> {
        let both = Way::new(self, way)?;
        let (bps, mut shares) = (both.sent_bps()?, both.shares());
        let needed = self.datagram_bytes().map(|bytes| bytes.saturating_add(QUIC_BYTES));
        let mtu = both.path_mtu().filter(|mtu| shares.refused > 0.0 && Some(*mtu) < needed);
        shares.mtu_is_short = mtu.is_some();
        shares.connection = self.connection(&both, ends);
        let (dropped, held) = ends.own_queue_ratios(self.datagram_bytes().unwrap_or(1));
        shares.dropped_here = dropped.unwrap_or(0.0);
        let asked = self.workload.rate_per_flow_bps();
        let asked = asked.map(|bps| bps as f64 * both.sent_by.len() as f64);
        let keeps_rate = asked.is_some_and(|asked| bps >= KEPT * asked);
        let mut facts = Facts {
            keeps_rate,
            misses_rate: asked.is_some() && !keeps_rate,
            local_queue_ratio: held,
            receive_buffer_bytes: both.receive_buffer_bytes(),
            delays: both.delays(),
            ..ends.facts()
        };
        let evidence = &mut facts.evidence;
        evidence.lost_ratio = Some(shares.lost);
        evidence.refused_ratio = Some(shares.refused).filter(|share| *share > 0.0);
        evidence.path_mtu_bytes = mtu;
        evidence.queueing_ns = facts.delays.map(|delays| delays.level_ns as u64);
        evidence.queue_growth_ns = facts.delays.map(|delays| delays.growth_ns as u64);
        let (place, cause) = rules::datagrams(&facts, shares);
        Some(Limit {
            place,
            cause,
            direction: way,
            flow: None,
            sure: rules::is_clear_of_datagrams(&facts, shares, cause),
            share: None,
            evidence: facts.evidence,
            advice: advice(cause, &facts, bps, asked),
        })
    }

    /// What limits a QUIC connection whose datagrams wait for its congestion window.
    fn connection(&self, way: &Way<'_>, ends: &Ends<'a>) -> Option<(Place, Cause)> {
        let flow = way.sent_by.first()?.flow;
        let (facts, seen) = ends.quic(flow).filter(|_| self.workload.quic.datagrams)?;
        let (place, cause) = rules::quic(&Facts { keeps_rate: false, ..facts }, seen);
        (cause != Cause::SenderIdle).then_some((place, cause))
    }

    fn datagram_bytes(&self) -> Option<u32> {
        match self.workload.kind {
            Kind::Stream { send_bytes, .. } => Some(send_bytes),
            Kind::Rr { .. } | Kind::Connect { .. } => None,
        }
    }
}
