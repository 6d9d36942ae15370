//! What the runs of a phase's parts come to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rpm::{Rpm, RpmInput, trimmed_mean_ns};
use super::watch::{Confidence, LoadSteadiness, Watch};
use super::workloads::{Part, PhaseName};
use crate::histogram::Histogram;
use crate::plan::Direction;
use crate::report::EndReport;
use crate::run::{Outcome, Run};
use crate::sample::{FlowSample, Role};
use crate::summary::Latency;
use crate::trust::{Reason, ReasonCode, Severity, Trust};

/// How a phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Goodput and latency were steady, so the rest of its time was left out. Its runs are marked as interrupted.
    Steady,
    /// Its time was up.
    TimeUp,
    /// The user stopped it.
    Interrupted,
    /// A part of it could not be measured.
    Failed,
}

/// A part of a phase and its document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartRun {
    /// The part.
    pub part: Part,
    /// Its document. Samples of probes don't list flows one by one, for these say nothing of the path. Its reasons for
    /// doubt don't have what a phase itself does: the server's tests of the other parts, that the last probe's answer
    /// came after the time was up, and a rate that rose, or of probes changed.
    pub run: Run,
}

/// New connections, nanoseconds. Each time counts from a connection's first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Foreign {
    /// Until TCP stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Latency>,
    /// Until TCP and TLS 1.3 stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Latency>,
    /// Until the first byte of a response came over TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Latency>,
}

/// What stood in the queues of the path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StandingQueue {
    /// The median round trip that the load saw.
    pub rtt_ns: u64,
    /// The least that any of its connections saw.
    pub least_rtt_ns: u64,
    /// The difference: what the queues add. With loads in both directions, the queues of both together.
    pub delay_ns: u64,
    /// Payload that stood in the queue: goodput times delay. Absent with loads in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What was measured while the path was filled in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// What filled it.
    pub name: PhaseName,
    /// How the phase ended.
    pub ended: Ended,
    /// Payload of the load that arrived at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_up_bps: Option<f64>,
    /// Payload of the load that arrived at the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_down_bps: Option<f64>,
    /// Requests over connections of their own, from when they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse: Option<Latency>,
    /// Requests over UDP, from when they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<Latency>,
    /// Requests over UDP that were never answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_lost: Option<u64>,
    /// New connections.
    pub foreign: Foreign,
    /// The smoothed round trip of the load's connections, at the end of each interval.
    #[serde(default, rename = "self", skip_serializing_if = "Option::is_none")]
    pub own: Option<Latency>,
    /// What stood in the queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<StandingQueue>,
    /// Round trips per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<Rpm>,
    /// How steady it was. The idle phase has no goodput, and most often too few intervals.
    pub steadiness: LoadSteadiness,
    /// How far the figures hold for a longer time; absent of the idle phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The worst verdict of its runs.
    pub verdict: Trust,
    /// The documents of its parts.
    pub runs: Vec<PartRun>,
}

impl Phase {
    /// What these runs come to. `siblings`: tests of the same phase that the server tells as other tests.
    pub fn of(name: PhaseName, ended: Ended, siblings: u32, mut runs: Vec<PartRun>) -> Self {
        for part in &mut runs {
            forgive(part, siblings);
            doubt_what_has_no_reports(part);
        }
        let load = runs.iter().find(|one| one.part == Part::Load).map(|one| &one.run);
        let (goodput_up_bps, goodput_down_bps) = load.map_or((None, None), goodput_of);
        let round_trips = load.map(RoundTrips::of).unwrap_or_default();
        let goodput_bps = match name {
            PhaseName::Up => goodput_up_bps,
            PhaseName::Down => goodput_down_bps,
            PhaseName::Idle | PhaseName::Both => None,
        };
        let mut watch = Watch::default();
        for PartRun { part, run } in &runs {
            let workload = &run.plan.workload;
            run.samples.iter().for_each(|sample| watch.handle_sample(*part, workload, sample));
        }
        let steadiness = watch.steadiness();
        let probes = runs.iter_mut().filter(|one| one.part != Part::Load);
        probes.flat_map(|one| &mut one.run.samples).for_each(|sample| sample.flows.clear());
        let run_of = |part: Part| runs.iter().find(|one| one.part == part).map(|one| &one.run);
        let summary_of = |part: Part| run_of(part).map(|run| &run.summary);
        let tls = summary_of(Part::Tls);
        let failed = runs.iter().any(|one| one.run.status.outcome == Outcome::Failed);
        let verdict = runs.iter().map(|one| one.run.status.trust()).max();
        Self {
            name,
            ended: if failed { Ended::Failed } else { ended },
            goodput_up_bps,
            goodput_down_bps,
            sparse: summary_of(Part::Sparse).and_then(|summary| summary.latency_ns),
            udp: summary_of(Part::Udp).and_then(|summary| summary.latency_ns),
            udp_lost: summary_of(Part::Udp).and_then(|summary| summary.transactions_lost),
            foreign: Foreign {
                tcp: summary_of(Part::Tcp).and_then(|summary| summary.establishment_ns),
                tls: tls.and_then(|summary| summary.establishment_ns),
                first_byte: tls.and_then(|summary| summary.first_byte_ns),
            },
            own: round_trips.histogram.latency(),
            queue: round_trips.queue(goodput_bps),
            rpm: run_of(Part::Tls).and_then(|run| rpm_of(run, &round_trips.histogram)),
            steadiness,
            confidence: name.direction().map(|_| steadiness.confidence()),
            verdict: verdict.unwrap_or(Trust::Invalid),
            runs,
        }
    }

    /// The reasons for doubt, the part of each beside it.
    pub fn reasons(&self) -> impl Iterator<Item = (Part, &Reason)> {
        self.runs
            .iter()
            .flat_map(|one| one.run.status.reasons.iter().map(move |reason| (one.part, reason)))
    }
}

/// Takes out of the reasons for doubt what is no disturbance here:
///
/// * tests of the same phase that the server told as other tests, as one does that knows no leases;
/// * times of probes that their schedule and their latency account for;
/// * rates that rose for most of the run, and changes of the rate of probes. A phase goes on until its load is steady,
///   and its confidence says whether it was. A load whose rate became another for good stays a reason: its figures are
///   those of two loads.
fn forgive(PartRun { part, run }: &mut PartRun, siblings: u32) {
    let own = f64::from(siblings);
    let slack_s = if *part == Part::Load { 0.0 } else { slack_of_probes_s(run) };
    let status = &mut run.status;
    let before = status.reasons.len();
    status.reasons.retain(|reason| match (reason.code, reason.value, reason.limit) {
        (ReasonCode::OtherTests, Some(others), _) => others > own,
        (ReasonCode::Stretched | ReasonCode::Shortened, Some(took_s), Some(asked_s)) => {
            (took_s - asked_s).abs() > slack_s
        }
        // A change has a value, and a rise has none.
        (ReasonCode::NotSteady, change, _) => *part == Part::Load && change.is_some(),
        _ => true,
    });
    if status.reasons.len() < before && status.verdict == Some(Trust::Doubtful) {
        status.verdict = Some(Trust::of(&status.reasons));
    }
    for reason in status.reasons.iter_mut().filter(|one| one.code == ReasonCode::OtherTests) {
        let others = reason.value.map_or(0.0, |others| others - own);
        reason.value = Some(others);
        reason.text =
            format!("the server served tests of other clients at the same time: {others}");
    }
}

/// A part that was stopped and told nothing leaves a hole in its phase. One that failed is invalid by itself.
fn doubt_what_has_no_reports(PartRun { part, run }: &mut PartRun) {
    let status = &mut run.status;
    if run.reports.len() < 2 && status.outcome != Outcome::Failed {
        status.reasons.push(Reason {
            code: ReasonCode::Shortened,
            severity: Severity::Doubtful,
            ..Reason::contradiction(format!("nothing was measured of this part: {}", part.name()))
        });
        status.verdict = Some(Trust::of(&status.reasons));
    }
}

/// How far the measured time of probes may be from what was asked. The first and the last are due up to an interval
/// within it, and the last ends when its answer comes.
fn slack_of_probes_s(run: &Run) -> f64 {
    const ENDS_S: f64 = 0.05;
    let interval_s = run.plan.workload.schedule().map_or(0.0, |schedule| 1.0 / schedule.per_s);
    let longest_ns = run.summary.latency_ns.map_or(0, |latency| latency.max);
    2.0 * interval_s + longest_ns as f64 / 1e9 + ENDS_S
}

/// Goodput up and down.
fn goodput_of(run: &Run) -> (Option<f64>, Option<f64>) {
    let summary = &run.summary;
    match run.plan.workload.direction() {
        Some(Direction::Up) => (summary.goodput_bps, None),
        Some(Direction::Down) => (None, summary.goodput_bps),
        Some(Direction::Both) => (summary.goodput_up_bps, summary.goodput_down_bps),
        None => (None, None),
    }
}

/// The round trips that a load's senders saw.
#[derive(Default)]
struct RoundTrips {
    histogram: Histogram,
    least_us: Option<u32>,
}

impl RoundTrips {
    fn of(run: &Run) -> Self {
        let workload = &run.plan.workload;
        let mut seen = Self::default();
        for sample in &run.samples {
            let flows = sample.flows.iter().filter(|flow| {
                let sender = workload.flow_direction(flow.flow).sender();
                sender == sample.role
            });
            for (rtt_us, least_us) in flows.filter_map(round_trip_of) {
                seen.least_us = seen.least_us.into_iter().chain(least_us).min();
                if !sample.warm_up {
                    seen.histogram.record_ns(u64::from(rtt_us).saturating_mul(1_000));
                }
            }
        }
        seen
    }

    fn queue(&self, goodput_bps: Option<f64>) -> Option<StandingQueue> {
        let rtt_ns = self.histogram.latency()?.p50?;
        let least_rtt_ns = u64::from(self.least_us?).saturating_mul(1_000);
        let delay_ns = rtt_ns.saturating_sub(least_rtt_ns);
        let bytes = goodput_bps.map(|bps| (bps / 8.0 * delay_ns as f64 / 1e9) as u64);
        Some(StandingQueue { rtt_ns, least_rtt_ns, delay_ns, bytes })
    }
}

/// The smoothed round trip of a connection and the least; `None` where it has none yet.
fn round_trip_of(flow: &FlowSample) -> Option<(u32, Option<u32>)> {
    let tcp = flow.tcp.map(|tcp| (tcp.rtt_us, tcp.min_rtt_us));
    let quic = || flow.quic.as_ref().map(|quic| (quic.rtt_us, Some(quic.min_rtt_us)));
    tcp.or_else(quic).filter(|(rtt_us, _)| *rtt_us > 0)
}

fn rpm_of(tls: &Run, own: &Histogram) -> Option<Rpm> {
    let client = tls.reports.iter().find(|report| report.role == Role::Client)?;
    let foreign = first_byte_of(client)?;
    let p90 = |histogram: &Histogram| histogram.latency()?.p90;
    Rpm::of(&RpmInput {
        foreign_mean_ns: trimmed_mean_ns(&foreign)?,
        self_mean_ns: trimmed_mean_ns(own)?,
        p90_ns: p90(&foreign).zip(p90(own)),
    })
}

fn first_byte_of(report: &EndReport) -> Option<Histogram> {
    Histogram::from_base64(report.first_byte_hdr.as_deref()?).ok()
}
