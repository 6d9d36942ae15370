//! What came out of a client's run.

use std::collections::BTreeMap;

use linerate_measure::dialect::EndExtension;
use linerate_measure::dialect::perf::{EndTotals, Latency};
use linerate_measure::histogram::Histogram;
use linerate_measure::report::HostFacts;
use linerate_measure::sample::{MachineCpu, Traffic};
use linerate_measure::{EndReport, FlowReport, Role};

use super::counts::Reading;
use crate::waiting::Cost;

/// What came out.
#[derive(Clone, Debug)]
pub struct Report {
    /// What this end counted, all connections and streams as one flow, which sent what reached the server.
    /// Failures are connections that failed, by kind.
    pub own: EndReport,
    /// Latencies of completed exchanges, µs, in order.
    pub latencies_us: Vec<u32>,
    /// Why a thread couldn't go on, where one couldn't: the others were then ended, too.
    pub broken: Option<String>,
}

impl Report {
    /// The dialect's own figures.
    pub fn totals(&self) -> EndTotals {
        match self.own.extension {
            Some(EndExtension::Perf(totals)) => totals,
            _ => EndTotals::default(),
        }
    }
}

/// What one thread's work comes to, or that of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// What was counted as it went.
    pub(super) counted: Reading,
    pub(super) upload_rates_kbps: u64,
    pub(super) download_rates_kbps: u64,
    /// Connections that failed, by kind.
    pub(super) failures: BTreeMap<&'static str, u64>,
    /// Latencies of completed exchanges, µs, in no order; those of the first threads' first.
    pub(super) latencies_us: Vec<u32>,
    /// From the start to the last thread's end, ns; that connections are then seen to close is no part of it.
    pub(super) elapsed_ns: u64,
    /// The part of it that was measured, ns: where the server was lost, until something last came from it.
    pub(super) measured_ns: u64,
    /// Connections that the server, or the path to it, broke off with streams unfinished.
    pub(super) broken_off: u64,
    /// Why a thread couldn't go on.
    pub(super) broken: Option<String>,
    pub(super) cost: Cost,
}

impl Totals {
    pub(super) fn add(&mut self, other: Self) {
        self.counted = self.counted.plus(&other.counted);
        self.upload_rates_kbps += other.upload_rates_kbps;
        self.download_rates_kbps += other.download_rates_kbps;
        for (kind, count) in other.failures {
            *self.failures.entry(kind).or_default() += count;
        }
        self.latencies_us.extend(other.latencies_us);
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.measured_ns = self.measured_ns.max(other.measured_ns);
        self.broken_off = self.broken_off.saturating_add(other.broken_off);
        self.broken = self.broken.take().or(other.broken);
        self.cost.add(other.cost);
    }

    /// The report of all threads' totals. Where it goes to no document it has no histogram, which takes time.
    pub(super) fn into_report(mut self, machine_cpu: Vec<MachineCpu>, documents: bool) -> Report {
        let latency_us = Latency::of(&mut self.latencies_us);
        let traffic = |bytes| Some(Traffic { bytes, calls: None });
        let flow = FlowReport {
            sent: traffic(self.counted.uploaded_bytes),
            received: traffic(self.counted.downloaded_bytes),
            from_ns: Some(0),
            to_ns: Some(self.measured_ns),
            ..FlowReport::default()
        };
        let totals = EndTotals {
            connections: Some(self.counted.connections),
            streams: Some(self.counted.streams),
            broken_off: Some(self.broken_off),
            upload_rates_kbps: Some(self.upload_rates_kbps),
            download_rates_kbps: Some(self.download_rates_kbps),
            uploaded_bytes: Some(self.counted.uploaded_bytes),
            downloaded_bytes: Some(self.counted.downloaded_bytes),
            ran_ns: Some(self.elapsed_ns),
            latency_us,
        };
        let errors = self.failures.into_iter().map(|(kind, count)| (kind.to_owned(), count));
        let own = EndReport {
            host: HostFacts { ran_on_cpus: self.cost.ran_on_cpus, ..HostFacts::default() },
            flows: vec![flow],
            elapsed_ns: self.measured_ns,
            cpu: Some(self.cost.cpu),
            waiting: Some(self.cost.waiting),
            machine_cpu,
            latency_hdr: if documents { histogram(&self.latencies_us) } else { None },
            errors: errors.collect(),
            extension: Some(EndExtension::Perf(totals)),
            ..EndReport::nothing(Role::Client)
        };
        Report { own, latencies_us: self.latencies_us, broken: self.broken }
    }
}

fn histogram(latencies_us: &[u32]) -> Option<String> {
    let mut histogram = Histogram::new();
    latencies_us.iter().for_each(|us| histogram.record_ns(u64::from(*us) * 1000));
    (!histogram.is_empty()).then(|| histogram.to_base64())
}
