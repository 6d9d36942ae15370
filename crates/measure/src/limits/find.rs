//! From reports and samples to limits.

use std::collections::BTreeMap;

use super::advice::advice;
use super::rules::{self, DatagramShares, Facts, Transactions};
use super::seen::Ends;
use super::{Cause, Limit, Place};
use crate::histogram::Histogram;
use crate::plan::{Direction, Kind, Transport, Workload};
use crate::report::EndReport;
use crate::sample::{Role, Sample};
use crate::summary::Summary;

/// Flows that are told one by one.
const FLOWS_TOLD: usize = 64;
/// The share of the intervals that must say the same for a limit to be sure.
const SURE: f64 = 0.8;
/// A transaction is very long from so many times the median on, and so long.
const LONG_TIMES: u64 = 10;
const LONG_NS: u64 = 1_000_000;
/// The share of the time that delays of a conductor's wake-ups come to where its end is stopped often.
const OFTEN_LATE: f64 = 0.3;
/// A schedule counts as kept from this share on.
const KEPT: f64 = 0.98;

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
}

/// Finds what limited a run. Connections that come and go have no rules.
pub fn find_limits(run: Measured<'_>) -> Limits {
    let mut limits = Limits::default();
    match run.workload.kind {
        Kind::Connect { .. } => {}
        Kind::Rr { .. } => limits.limits.extend(run.transactions()),
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

    fn datagrams(&self, way: Direction, ends: &Ends<'_>) -> Option<Limit> {
        let flows = |report: &'a EndReport| {
            let workload = self.workload;
            report.flows.iter().filter(move |flow| workload.flow_direction(flow.flow) == way)
        };
        let (sender, receiver) = match way {
            Direction::Down => (self.server?, Some(self.client)),
            Direction::Up | Direction::Both => (self.client, self.server),
        };
        let sum = |report: &'a EndReport,
                   count: fn(&crate::sample::DatagramCounts) -> Option<u64>| {
            let counts = flows(report).filter_map(|flow| count(flow.datagrams.as_ref()?));
            counts.fold(0, u64::saturating_add)
        };
        let sent = sum(sender, |counts| counts.sent);
        let refused = sum(sender, |counts| counts.refused);
        let all = sent.saturating_add(refused).max(1) as f64;
        let mut shares =
            DatagramShares { refused: refused as f64 / all, ..DatagramShares::default() };
        if let Some(receiver) = receiver {
            let received = sum(receiver, |counts| counts.received);
            let dropped = sum(receiver, |counts| counts.dropped_by_socket);
            shares.lost = sent.saturating_sub(received) as f64 / all;
            shares.dropped_by_socket = dropped as f64 / all;
        }
        let from_ns = flows(sender).filter_map(|flow| flow.from_ns).min()?;
        let to_ns = flows(sender).filter_map(|flow| flow.to_ns).max()?;
        let bytes = flows(sender).filter_map(|flow| Some(flow.sent?.bytes));
        let bytes = bytes.fold(0, u64::saturating_add) as f64;
        let bps = bytes * 8e9 / to_ns.saturating_sub(from_ns).max(1) as f64;
        let count = flows(sender).count() as f64;
        let asked = self.workload.rate_per_flow_bps().map(|bps| bps as f64 * count);
        let keeps_rate = asked.is_some_and(|asked| bps >= KEPT * asked);
        let facts = Facts {
            keeps_rate,
            misses_rate: asked.is_some() && !keeps_rate,
            local_queue_ratio: Some(shares.refused),
            receive_buffer_bytes: receiver.and_then(|receiver| {
                let sockets = flows(receiver).filter_map(|flow| flow.socket.as_ref());
                sockets.filter_map(|socket| socket.receive_buffer_bytes).min().map(u64::from)
            }),
            ..ends.facts()
        };
        let mut facts = facts;
        facts.evidence.lost_ratio = Some(shares.lost);
        let (place, cause) = rules::datagrams(&facts, shares);
        Some(Limit {
            place,
            cause,
            direction: way,
            flow: None,
            sure: rules::is_clear(&facts, cause),
            share: None,
            evidence: facts.evidence,
            advice: advice(cause, &facts, bps, asked),
        })
    }

    fn transactions(&self) -> Option<Limit> {
        let latency = self.summary.latency_ns.filter(|latency| latency.count > 0)?;
        let median_ns = latency.p50?;
        let all_ns = self.client.elapsed_ns as f64 * f64::from(self.workload.flows);
        let Kind::Rr { timeout_ns, .. } = self.workload.kind else { return None };
        let lost = self.summary.transactions_lost.unwrap_or(0) as f64;
        let histogram =
            self.client.latency_hdr.as_deref().and_then(|text| Histogram::from_base64(text).ok());
        let is_long = |ns: u64| ns >= LONG_NS && ns >= median_ns.saturating_mul(LONG_TIMES);
        let time_of = |long_only: bool| {
            let counts = histogram.iter().flat_map(Histogram::counts);
            let counted = counts.filter(|(ns, _)| !long_only || is_long(*ns));
            counted.map(|(ns, count)| ns as f64 * count as f64).sum::<f64>()
        };
        let ends = Ends {
            workload: self.workload,
            sender: self.client,
            receiver: self.server,
            samples: self.samples,
        };
        let keeps_rate = self.workload.schedule().is_some_and(|schedule| {
            let per_s = self.summary.transactions_per_s.unwrap_or(0.0);
            per_s >= KEPT * schedule.per_s && self.summary.transactions_unsent.unwrap_or(0) == 0
        });
        let facts = Facts { evidence: ends.demands(), keeps_rate, ..Facts::default() };
        let seen = Transactions {
            lost_share: lost * timeout_ns as f64 / all_ns.max(1.0),
            stalled_share: time_of(true) / time_of(false).max(1.0),
            median_ns: median_ns as f64,
            least_ns: latency.min as f64,
            client_was_late: was_late(self.client),
            server_was_late: self.server.is_some_and(was_late),
        };
        let (place, cause) = rules::transactions(&facts, seen);
        Some(Limit {
            place,
            cause,
            direction: Direction::Up,
            flow: None,
            sure: rules::is_clear(&facts, cause),
            share: None,
            evidence: facts.evidence,
            advice: None,
        })
    }
}

/// Whether an end's conductor stood still once, or woke up late so often that this explains stalls.
fn was_late(end: &EndReport) -> bool {
    let delay_ns = end.wakeup_delay_ns().unwrap_or(0) as f64;
    end.stood_still() || delay_ns >= OFTEN_LATE * end.elapsed_ns as f64
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
