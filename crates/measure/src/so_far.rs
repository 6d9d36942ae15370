//! A run while it goes on: what its samples come to so far.
//!
//! The figures are of the measured part, and of the warm-up as long as there is nothing else. They are for people who
//! watch: a run's [`Summary`] comes from the reports of both ends, which know more than samples do.

use std::collections::BTreeMap;

use crate::histogram::IntervalHistogram;
use crate::limits::{Cause, Limit, Measured, find_limits};
use crate::plan::{Direction, Kind, Workload};
use crate::report::{Disturbance, EndReport, FlowReport, SocketQueues, ThreadDemand};
use crate::sample::{DatagramCounts, FlowSample, Role, Sample, Traffic};
use crate::summary::Summary;

#[cfg(test)]
mod tests;

/// So many of each end's samples are looked at for what limits a run at the moment.
const LOOKED_AT: usize = 60;
/// A limit holds for so long before it is looked for again.
const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// The fewest measured intervals of an end that tell a limit.
const LEAST_INTERVALS: usize = 2;

/// What the samples of a run come to so far.
#[derive(Clone, Debug)]
pub struct SoFar {
    workload: Workload,
    client: EndSoFar,
    server: EndSoFar,
    limits: Vec<Limit>,
    /// When a limit was last looked for, on the clock of the sender's samples.
    looked_ns: Option<u64>,
}

/// What one end has told.
#[derive(Clone, Debug, Default)]
struct EndSoFar {
    is_warming_up: bool,
    time_ns: u64,
    received_bytes: u64,
    datagrams: DatagramCounts,
    transactions: u64,
    latency_sum_ns: f64,
    latencies: IntervalHistogram,
    /// The newest, in order. Where earlier ones are gone, the first is what the others are counted from.
    samples: Vec<Sample>,
}

impl EndSoFar {
    fn handle_sample(&mut self, sample: &Sample) {
        if self.is_warming_up && !sample.warm_up {
            *self = Self { samples: std::mem::take(&mut self.samples), ..Self::default() };
        }
        self.is_warming_up = sample.warm_up;
        self.time_ns = self.time_ns.saturating_add(sample.to_ns.saturating_sub(sample.from_ns));
        let received = sample.received.map_or(0, |received| received.bytes);
        self.received_bytes = self.received_bytes.saturating_add(received);
        self.datagrams = self.datagrams.plus(sample.datagrams.unwrap_or_default());
        let transactions = sample.transactions.unwrap_or(0);
        self.transactions = self.transactions.saturating_add(transactions);
        self.latency_sum_ns += sample.latency_mean_ns.unwrap_or(0.0) * transactions as f64;
        let latencies = sample.latency_hdr.as_deref().map(IntervalHistogram::from_base64);
        // What can't be read is left out: it is a figure for people, and the report has the whole.
        latencies.into_iter().flatten().for_each(|latencies| self.latencies.merge(&latencies));
        if self.samples.len() >= LOOKED_AT {
            self.samples.remove(0);
            if let Some(first) = self.samples.first_mut() {
                first.warm_up = true;
            }
        }
        self.samples.push(Sample { latency_hdr: None, ..sample.clone() });
    }

    fn per_s(&self, count: u64) -> Option<f64> {
        (self.time_ns > 0).then(|| count as f64 * 1e9 / self.time_ns as f64)
    }

    fn measured(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| !sample.warm_up)
    }

    /// A report of the samples that are kept. `None`: they are too few.
    fn report(&self, role: Role, workload: &Workload) -> Option<EndReport> {
        let from_ns = self.measured().map(|sample| sample.from_ns).min()?;
        let to_ns = self.measured().map(|sample| sample.to_ns).max()?;
        if self.measured().count() < LEAST_INTERVALS {
            return None;
        }
        let mut flows: BTreeMap<u32, Vec<&FlowSample>> = BTreeMap::new();
        for flow in self.measured().flat_map(|sample| &sample.flows) {
            flows.entry(flow.flow).or_default().push(flow);
        }
        let flows = flows.into_iter().map(|(number, intervals)| {
            let report = report_of(number, &intervals);
            FlowReport { from_ns: Some(from_ns), to_ns: Some(to_ns), ..report }
        });
        let disturbance =
            Disturbance { busiest_thread: Some(self.demand(workload)), ..Disturbance::default() };
        Some(EndReport {
            flows: flows.collect(),
            elapsed_ns: to_ns.saturating_sub(from_ns),
            disturbance: Some(Box::new(disturbance)),
            ..EndReport::nothing(role)
        })
    }

    /// What a thread of the load ran, if all of them ran alike. How long they waited no sample tells.
    fn demand(&self, workload: &Workload) -> ThreadDemand {
        let used = self.measured().filter_map(|sample| sample.cpu.as_ref());
        let run_s: f64 = used.map(|cpu| cpu.load.user_s + cpu.load.system_s).sum();
        let processors =
            self.measured().filter_map(|sample| Some(sample.cpu.as_ref()?.machine.len())).max();
        let threads = processors.unwrap_or(1).min(workload.total_flows() as usize).max(1);
        ThreadDemand { run_s: run_s / threads as f64, wait_s: 0.0 }
    }
}

/// What the intervals of a flow come to.
fn report_of(flow: u32, intervals: &[&FlowSample]) -> FlowReport {
    let sum = |of: fn(&FlowSample) -> Option<u64>| {
        intervals.iter().filter_map(|interval| of(interval)).reduce(u64::saturating_add)
    };
    let median = |of: fn(&FlowSample) -> Option<u32>| {
        let known = intervals.iter().filter_map(|interval| of(interval)).collect();
        crate::limits::median(known).map(u64::from)
    };
    let traffic = |bytes: u64| Traffic { bytes, calls: None };
    FlowReport {
        flow,
        sent: sum(|interval| interval.sent_bytes).map(traffic),
        received: sum(|interval| interval.received_bytes).map(traffic),
        queues: Some(SocketQueues {
            notsent_bytes: median(|interval| interval.tcp?.notsent_bytes),
            receive_queue_bytes: median(|interval| interval.tcp?.receive_queue_bytes),
        }),
        quic: intervals.last().and_then(|last| last.quic.as_deref().copied()),
        ..FlowReport::default()
    }
}

impl SoFar {
    /// A run of this workload of which nothing is known yet.
    pub fn new(workload: Workload) -> Self {
        let (client, server) = (EndSoFar::default(), EndSoFar::default());
        Self { workload, client, server, limits: Vec::new(), looked_ns: None }
    }

    /// What is done.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Takes a sample of either end.
    pub fn handle_sample(&mut self, sample: &Sample) {
        match sample.role {
            Role::Client => self.client.handle_sample(sample),
            Role::Server => self.server.handle_sample(sample),
        }
        let since = self.looked_ns.map(|looked_ns| sample.to_ns.saturating_sub(looked_ns));
        if !sample.warm_up && since.is_none_or(|since_ns| since_ns >= LOOK_EVERY_NS) {
            self.looked_ns = Some(sample.to_ns);
            self.limits = self.find_limits();
        }
    }

    /// Whether nothing but the warm-up is known.
    pub fn is_warming_up(&self) -> bool {
        self.client.is_warming_up || self.server.is_warming_up
    }

    /// Bits of payload that arrived per second, of one direction. `None`: nothing is known of it.
    pub fn goodput_bps(&self, way: Direction) -> Option<f64> {
        let receiver = self.end(way.receiver());
        receiver.per_s(receiver.received_bytes).map(|bytes_per_s| bytes_per_s * 8.0)
    }

    /// Transactions, or connections, per second.
    pub fn transactions_per_s(&self) -> Option<f64> {
        self.client.per_s(self.client.transactions)
    }

    /// The mean latency of a transaction, or time of a connection.
    pub fn mean_latency_ns(&self) -> Option<f64> {
        let count = self.client.transactions;
        (count > 0 && self.client.latency_sum_ns > 0.0)
            .then(|| self.client.latency_sum_ns / count as f64)
    }

    /// The latencies of transactions, or the times of connections, that began after the warm-up. Empty: none are known.
    pub fn latencies(&self) -> &IntervalHistogram {
        &self.client.latencies
    }

    /// What of the datagrams was lost, all directions together, as far as the receivers know. `None`: there were none.
    pub fn loss_ratio(&self) -> Option<f64> {
        let counts = self.datagrams();
        let lost = counts.lost?;
        let all = lost.saturating_add(counts.received.unwrap_or(0));
        (all > 0).then(|| lost as f64 / all as f64)
    }

    /// The counts of all receivers of datagrams.
    pub fn datagrams(&self) -> DatagramCounts {
        if self.workload.direction().is_none() {
            return self.client.datagrams;
        }
        let receivers = self.workload.directions().into_iter().map(Direction::receiver);
        receivers.fold(DatagramCounts::default(), |sum, role| sum.plus(self.end(role).datagrams))
    }

    /// What limits the streams of a direction at the moment. `None`: samples alone don't tell.
    pub fn limit(&self, way: Direction) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.flow.is_none() && limit.direction == way)
    }

    /// What limits a flow at the moment, likewise.
    pub fn flow_limit(&self, flow: u32) -> Option<&Limit> {
        let way = self.workload.flow_direction(flow);
        let of_flow = self.limits.iter().find(|limit| limit.flow == Some(flow));
        of_flow.or_else(|| self.limit(way).filter(|_| self.workload.flows == 1))
    }

    fn end(&self, role: Role) -> &EndSoFar {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }

    /// The limits of the newest intervals.
    fn find_limits(&self) -> Vec<Limit> {
        // What limits requests, and what becomes of datagrams, only reports tell.
        let is_stream = matches!(self.workload.kind, Kind::Stream { .. });
        if !is_stream || self.workload.has_datagrams() {
            return Vec::new();
        }
        let report = |role| self.end(role).report(role, &self.workload);
        let (Some(client), server) = (report(Role::Client), report(Role::Server)) else {
            return Vec::new();
        };
        let samples = [&self.client, &self.server].map(|end| end.samples.as_slice()).concat();
        let found = find_limits(Measured {
            workload: &self.workload,
            client: &client,
            server: server.as_ref(),
            samples: &samples,
            summary: &Summary::default(),
            control_rtt_ns: None,
        });
        // An end that waited for a processor looks like one that did nothing.
        let is_known =
            |limit: &Limit| !matches!(limit.cause, Cause::SenderIdle | Cause::ReceiverIdle);
        found.limits.into_iter().filter(is_known).collect()
    }
}
