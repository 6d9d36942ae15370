//! From reports and samples to limits.

mod datagrams;
mod transactions;

use std::collections::BTreeMap;

use super::advice::advice;
use super::rules::{self, Facts};
use super::seen::Ends;
use super::{Cause, Limit, Place};
use crate::plan::{Direction, Kind, Transport, Workload};
use crate::report::EndReport;
use crate::sample::{Role, Sample};
use crate::summary::Summary;

/// Flows that are told one by one.
const FLOWS_TOLD: usize = 64;
/// The share of the intervals that must say the same for a limit to be sure.
const SURE: f64 = 0.8;
/// What limited a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Each direction, and behind it each of its flows where there are several.
    pub limits: Vec<Limit>,
    /// What limited the senders' intervals: the end and number of the sample, and the cause.
    pub intervals: Vec<(Role, u32, Cause)>,
}

/// A run that was measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// What was to be done.
    pub workload: &'a Workload,
    /// What the client counted.
    pub client: &'a EndReport,
    /// What the server counted.
    pub server: Option<&'a EndReport>,
    /// What both counted, interval by interval.
    pub samples: &'a [Sample],
    /// What it comes to.
    pub summary: &'a Summary,
    /// The least round trip of the control connection.
    pub control_rtt_ns: Option<u64>,
}

/// Finds what limited a run. Connections that come and go have no rules.
pub fn find_limits(run: Measured<'_>) -> Limits {
    let mut limits = Limits::default();
    match run.workload.kind {
        Kind::Connect { .. } => {}
        Kind::Rr { .. } => limits.limits.extend(transactions::transactions(&run)),
        Kind::Stream { direction, .. } => {
            let both = [Direction::Up, Direction::Down];
            let asked = both.iter().filter(|way| [**way, Direction::Both].contains(&direction));
            for way in asked {
                run.add_direction(*way, &mut limits);
            }
        }
    }
    limits
}

impl<'a> Measured<'a> {
    fn add_direction(&self, way: Direction, limits: &mut Limits) {
        let (sender, receiver) = match way {
            Direction::Down => (self.server, Some(self.client)),
            Direction::Up | Direction::Both => (Some(self.client), self.server),
        };
        let Some(sender) = sender else { return };
        let ends = Ends { workload: self.workload, sender, receiver, samples: self.samples };
        if self.workload.has_datagrams() {
            limits.limits.extend(self.datagrams(way, &ends));
            return;
        }
        let flows: Vec<(Limit, f64, Facts)> = sender
            .flows
            .iter()
            .filter(|flow| self.workload.flow_direction(flow.flow) == way)
            .take(FLOWS_TOLD)
            .filter_map(|flow| self.stream(way, &ends, flow.flow))
            .collect();
        let Some((worst, facts)) = worst(&flows) else { return };
        let mut whole = Limit { flow: None, ..worst.clone() };
        if let (Some(flow), false) = (worst.flow, self.workload.transport == Transport::Quic) {
            let intervals: Vec<(u32, Cause)> = ends
                .tcp_intervals(flow, facts)
                .iter()
                .map(|(index, facts)| (*index, rules::tcp(facts).1))
                .collect();
            let alike = intervals.iter().filter(|(_, cause)| *cause == whole.cause).count();
            // One interval alone can't see a trend, and is limited by the window that has not grown yet.
            let share = match whole.cause {
                Cause::StartUp => None,
                _ if intervals.is_empty() => None,
                _ => Some(alike as f64 / intervals.len() as f64),
            };
            whole.share = share;
            whole.sure = whole.sure && share.is_none_or(|share| share >= SURE);
            let told = intervals.into_iter().map(|(index, cause)| (sender.role, index, cause));
            limits.intervals.extend(told);
        }
        limits.limits.push(whole);
        if flows.len() > 1 {
            limits.limits.extend(flows.into_iter().map(|(limit, ..)| limit));
        }
    }

    /// The limit of a flow, its rate, and what was looked at.
    fn stream(&self, way: Direction, ends: &Ends<'_>, flow: u32) -> Option<(Limit, f64, Facts)> {
        let (facts, (place, cause)) = match self.workload.transport {
            Transport::Quic => {
                let (facts, told) = ends.quic(flow)?;
                (facts, rules::quic(&facts, told))
            }
            Transport::Tcp | Transport::Tls | Transport::Udp => {
                let facts = ends.tcp(flow)?;
                (facts, rules::tcp(&facts))
            }
        };
        let own = ends.sender.flows.iter().find(|listed| listed.flow == flow)?;
        let time_ns = own.to_ns?.saturating_sub(own.from_ns?);
        let bps = own.sent.map_or(0, |sent| sent.bytes) as f64 * 8e9 / time_ns.max(1) as f64;
        let asked_bps = self.workload.rate_per_flow_bps().map(|bps| bps as f64);
        let limit = Limit {
            place,
            cause,
            direction: way,
            flow: Some(flow),
            sure: rules::is_clear(&facts, cause),
            share: None,
            evidence: facts.evidence,
            advice: advice(cause, &facts, bps, asked_bps),
        };
        Some((limit, bps, facts))
    }
}

/// Of the flows that have the most common limit the slowest, with what was looked at.
fn worst(flows: &[(Limit, f64, Facts)]) -> Option<(&Limit, &Facts)> {
    let mut counts: BTreeMap<(Place, Cause), usize> = BTreeMap::new();
    for (limit, ..) in flows {
        *counts.entry((limit.place, limit.cause)).or_default() += 1;
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let alike = flows.iter().filter(|(limit, ..)| (limit.place, limit.cause) == most);
    let slowest = alike.min_by(|a, b| a.1.total_cmp(&b.1));
    slowest.map(|(limit, _, facts)| (limit, facts))
}
