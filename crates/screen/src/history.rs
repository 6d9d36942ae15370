//! The intervals of a run, as far back as a screen shows them.

use std::collections::{BTreeMap, VecDeque};

use linerate_measure::histogram::IntervalHistogram;
use linerate_measure::paths::SendingPaths;
use linerate_measure::{Direction, Role, Sample, Workload};

/// So many intervals are kept; wider no terminal is.
const KEPT: usize = 1_000;
/// So many flows are kept; more have no place on a screen, and samples list fewer.
const FLOWS_KEPT: usize = 1_000;

/// What an interval came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    index: u32,
    pub(crate) up_bps: Option<f64>,
    pub(crate) down_bps: Option<f64>,
    /// Transactions or connections.
    pub(crate) per_s: Option<f64>,
    pub(crate) latency_ns: Option<f64>,
    /// The 99th percentile of the latencies, where there are enough.
    pub(crate) p99_ns: Option<f64>,
    pub(crate) rtt_ns: Option<f64>,
}

/// A flow in its last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FlowNow {
    pub(crate) bps: f64,
    pub(crate) rtt_ns: Option<u64>,
}

/// The intervals of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    points: VecDeque<Point>,
    paths: BTreeMap<Role, SendingPaths>,
    pub(crate) flows: BTreeMap<u32, FlowNow>,
    /// Round-trip times of flows at the ends of intervals, or mean latencies of intervals.
    pub(crate) times: IntervalHistogram,
}

impl History {
    pub(crate) fn handle_sample(&mut self, sample: &Sample, workload: &Workload) {
        let length_ns = sample.to_ns.saturating_sub(sample.from_ns).max(1) as f64;
        let bps = |bytes: u64| bytes as f64 * 8e9 / length_ns;
        let figures = self.paths.entry(sample.role).or_default().record_sample(sample, workload);
        let is_stream = workload.direction().is_some();
        let point = self.point(sample.index);
        point.rtt_ns = figures.mean_rtt_ns.map(|ns| ns as f64).or(point.rtt_ns);
        let received = bps(sample.received.map_or(0, |received| received.bytes));
        for way in workload.directions() {
            if is_stream && way.receiver() == sample.role {
                match way {
                    Direction::Down => point.down_bps = Some(received),
                    Direction::Up | Direction::Both => point.up_bps = Some(received),
                }
            }
        }
        if !is_stream && sample.role == Role::Client {
            point.per_s = sample.transactions.map(|done| done as f64 * 1e9 / length_ns);
            point.latency_ns = sample.latency_mean_ns;
            let latencies = sample.latency_hdr.as_deref().map(IntervalHistogram::from_base64);
            let latencies = latencies.and_then(Result::ok);
            point.p99_ns = latencies.and_then(|all| all.quantile_ns(0.99)).map(|ns| ns as f64);
        }
        let latency_ns = sample.latency_mean_ns.filter(|_| !is_stream);
        latency_ns.into_iter().for_each(|ns| self.times.record_ns(ns.max(0.0) as u64));
        for flow in &sample.flows {
            let way = workload.flow_direction(flow.flow);
            if !self.flows.contains_key(&flow.flow) && self.flows.len() >= FLOWS_KEPT {
                continue;
            }
            let now = self.flows.entry(flow.flow).or_default();
            if way.receiver() == sample.role {
                now.bps = bps(flow.received_bytes.unwrap_or(0));
            }
            if way.sender() == sample.role {
                let quic_us = flow.quic.as_ref().map(|quic| quic.rtt_us);
                let rtt_us = flow.tcp.map(|tcp| tcp.rtt_us).or(quic_us);
                now.rtt_ns = rtt_us.map(|us| u64::from(us) * 1_000).or(now.rtt_ns);
                if let Some(rtt_us) = rtt_us.filter(|us| *us > 0 && is_stream) {
                    self.times.record_ns(u64::from(rtt_us) * 1_000);
                }
            }
        }
    }

    /// The point of an interval. Ends tell of it at different times.
    fn point(&mut self, index: u32) -> &mut Point {
        let place = match self.points.iter().rposition(|point| point.index == index) {
            Some(place) => place,
            None => {
                if self.points.len() >= KEPT {
                    self.points.pop_front();
                }
                self.points.push_back(Point { index, ..Point::default() });
                self.points.len() - 1
            }
        };
        &mut self.points[place]
    }

    /// A figure of the intervals, oldest first.
    pub(crate) fn series(&self, of: fn(&Point) -> Option<f64>) -> Vec<Option<f64>> {
        let mut series: Vec<Option<f64>> = self.points.iter().map(of).collect();
        // One end may not have told of the newest yet.
        if series.len() > 1 && series.last().is_some_and(Option::is_none) {
            series.pop();
        }
        series
    }
}
