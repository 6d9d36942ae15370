//! The rules that a measured run has to pass.
//!
//! A run of less than [`SHORTEST_INVALID_NS`], as it was planned or as it went, or one that doesn't end by time, is never
//! invalid for what its machines did: one standstill of a busy machine is a large share of a short time.

use std::collections::BTreeMap;

use super::series::{clock_step, not_steady};
use super::{Reason, ReasonCode, ReasonUnit, Severity};
use crate::limits::{median, quic_window_millionths};
use crate::plan::{End, Kind, Transport, Workload};
use crate::report::{EndReport, GAP_NS, LATE_NS, Standstills};
use crate::sample::{Role, Sample};
use crate::steady::Steadiness;
use crate::step::LEAST_SEND_BYTES;
use crate::summary::{
    Quantity, Summary, Unmet, differs_in_time, others_share, send_time_s, steal_share, uneven_ends,
};
use crate::units::render_duration_ns;

/// See the module.
const SHORTEST_INVALID_NS: u64 = 10_000_000_000;
/// Standstills of such a share of the time make a run invalid.
const STOOD_STILL: f64 = 0.2;
/// Gaps of such a share of the time do.
const GAPS: f64 = 0.2;
/// A gap is one where so many units were due in it.
const UNITS_DUE: f64 = 10.0;
/// Of a stream without a rate: so many units at the rate that it reached. A unit is what it sends at once, and at least
/// a TLS record (RFC 8446, section 5.1), which a receiver gets as a whole.
const UNITS_DUE_AT_GOODPUT: f64 = 3.0;
const LEAST_UNIT_BYTES: u32 = 16 << 10;
/// A time that differs from what was asked by more than this share makes a run invalid; see [`Quantity::TimeS`] for
/// what makes it doubtful.
const OTHER_TIME: f64 = 0.1;
/// A rate below this share of what was asked does.
const LOW_RATE: f64 = 0.9;
/// A sender with unacknowledged data for such a share of the time, or so much of its QUIC window in flight, waits for
/// the path or the receiver.
const HELD_BUSY: f64 = 0.9;
const HELD_WINDOW_MILLIONTHS: u32 = 500_000;
/// More requests never begun than this share do.
const UNSENT: f64 = 0.01;
/// The greatest latency by a schedule may be so much above the greatest service time.
const SLIPPED_NS: u64 = 50_000_000;
/// And its 99th percentile so many times that of the service time.
const SLIPPED_TIMES: f64 = 4.0;
/// The share of datagrams that the ends themselves may drop, and the share that makes a run at a rate invalid.
const OWN_DROPS: f64 = 0.001;
const MANY_OWN_DROPS: f64 = 0.05;
/// The share of the time that a thread may wait for a processor, and what others must have used of the machine for it
/// to be their doing.
const WAITED: f64 = 0.2;
const OTHERS: f64 = 0.1;
/// The way out for threads that wait for a processor.
pub(crate) const OWN_PROCESSORS: &str =
    "stop the other programs, or give the load processors of its own";
/// The share of the mean latency that may be waits for a processor.
const WAIT_IN_LATENCY: f64 = 0.25;
/// The share of a quota's periods that may be cut short.
const THROTTLED: f64 = 0.01;
/// The share of the machine's time that the hypervisor may take.
const STEAL: f64 = 0.05;

/// Reasons that a rate which is not steady is a consequence of.
const RATE_REASONS: [ReasonCode; 3] =
    [ReasonCode::StoodStill, ReasonCode::Gap, ReasonCode::RateMissed];

/// What is known of a run.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// What was to be done.
    pub workload: &'a Workload,
    /// What the client counted.
    pub client: Option<&'a EndReport>,
    /// What the server counted.
    pub server: Option<&'a EndReport>,
    /// What both counted, interval by interval.
    pub samples: &'a [Sample],
    /// Whether it is linerate's own load, which sends a stream with a rate in small pieces.
    pub is_native: bool,
    /// Whether a stream sends bursts with pauses between them that the workload doesn't tell.
    pub has_bursts: bool,
    /// What it comes to.
    pub summary: &'a Summary,
    /// What was asked for and not got.
    pub unmet: &'a [Unmet],
    /// How steady each direction was.
    pub steadiness: &'a [Steadiness],
}

/// The reasons to doubt a run that was measured, contradictions apart ([`judge`](crate::summary::judge)).
pub fn judge_run(judged: Judged<'_>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for report in [judged.client, judged.server].into_iter().flatten() {
        let mut ends = [judged.client, judged.server].into_iter().flatten();
        let other = ends.find(|other| other.role != report.role);
        judged.add_standstills(report, &mut reasons);
        judged.add_gaps(report, &mut reasons);
        judged.add_processor(report, other, &mut reasons);
        reasons.extend(judged.refused_busy_poll(report));
        reasons.extend(other_tests(report));
        reasons.extend(clock_step(judged.samples, report.role));
    }
    for unmet in judged.unmet {
        reasons.extend(judged.of_unmet(unmet, &reasons));
    }
    reasons.extend(judged.uneven_ends());
    reasons.extend(judged.slipped());
    reasons.extend(judged.own_drops());
    reasons.extend(judged.waits_in_latency());
    // Where a rate was asked for or something stood still, that has been told.
    if !reasons.iter().any(|reason| RATE_REASONS.contains(&reason.code)) && !judged.has_bursts {
        reasons.extend(not_steady(judged.steadiness));
    }
    reasons
}

impl Judged<'_> {
    /// The gravest that the machines' doings may be.
    fn severity(&self, is_grave: bool) -> Severity {
        let planned = matches!(self.workload.end, End::Time { duration_ns: SHORTEST_INVALID_NS.. });
        let mut ends = [self.client, self.server].into_iter().flatten();
        let went = ends.any(|report| report.elapsed_ns >= SHORTEST_INVALID_NS);
        if is_grave && planned && went { Severity::Invalid } else { Severity::Doubtful }
    }

    fn add_standstills(&self, report: &EndReport, reasons: &mut Vec<Reason>) {
        let lateness = report.disturbance.as_ref().and_then(|disturbance| disturbance.lateness);
        let Some(late) = lateness.filter(|late| late.longest_ns > LATE_NS) else { return };
        let end = report.role.name();
        reasons.push(Reason {
            severity: self.severity(share(late.total_ns, report.elapsed_ns) > STOOD_STILL),
            end: Some(report.role),
            at_ns: Some(late.at_ns),
            value: Some(seconds(late.longest_ns)),
            limit: Some(seconds(LATE_NS)),
            unit: Some(ReasonUnit::S),
            way_out: Some(
                "measure again when the machine has less to do, or give the load processors of its \
                 own"
                    .to_owned(),
            ),
            ..told(
                ReasonCode::StoodStill,
                format!("the {end} stood still for {} at {}", ms(late.longest_ns), at(late)),
            )
        });
    }

    fn add_gaps(&self, report: &EndReport, reasons: &mut Vec<Reason>) {
        let silence = report.disturbance.as_ref().and_then(|disturbance| disturbance.silence);
        let Some(gap) = silence.filter(|gap| gap.longest_ns >= GAP_NS) else { return };
        if !self.is_due_within(gap.longest_ns) {
            return;
        }
        let end = report.role.name();
        reasons.push(Reason {
            severity: self.severity(share(gap.total_ns, report.elapsed_ns) > GAPS),
            end: Some(report.role),
            at_ns: Some(gap.at_ns),
            value: Some(seconds(gap.longest_ns)),
            limit: Some(seconds(GAP_NS)),
            unit: Some(ReasonUnit::S),
            way_out: Some("look for a link that went down, or test the time without it".to_owned()),
            ..told(
                ReasonCode::Gap,
                format!(
                    "nothing arrived at the {end} for {} until {}",
                    ms(gap.longest_ns),
                    at(gap)
                ),
            )
        });
    }

    /// Whether a stream had several units to send in such a time, or several responses were due. A response that is
    /// lost is waited for, and counted.
    fn is_due_within(&self, time_ns: u64) -> bool {
        let send_bytes = match self.workload.kind {
            Kind::Stream { .. } if self.has_bursts => return false,
            Kind::Stream { send_bytes, .. } => send_bytes,
            Kind::Connect { .. } => return false,
            Kind::Rr { .. } if self.summary.transactions_lost.is_some_and(|lost| lost > 0) => {
                return false;
            }
            Kind::Rr { schedule: Some(schedule), .. } => {
                return schedule.per_s * seconds(time_ns) >= UNITS_DUE;
            }
            Kind::Rr { .. } => {
                let mean_ns = self.summary.latency_ns.map(|latency| latency.mean);
                return mean_ns.is_some_and(|mean_ns| time_ns as f64 >= UNITS_DUE * mean_ns);
            }
        };
        let is_even =
            self.is_native && !self.workload.has_datagrams() && self.workload.rate.is_some();
        let unit_bytes = match self.workload.frame_datagrams() {
            Some((datagrams, bytes)) => datagrams as f64 * f64::from(bytes),
            None if is_even => f64::from(send_bytes.min(LEAST_SEND_BYTES)),
            None => f64::from(send_bytes),
        };
        let due = |bps: f64, bytes: f64| bps * seconds(time_ns) / (bytes * 8.0);
        match self.workload.rate_per_flow_bps() {
            Some(bps) => due(bps as f64 * f64::from(self.workload.flows), unit_bytes) >= UNITS_DUE,
            None => self.summary.goodput_bps.is_none_or(|bps| {
                due(bps, unit_bytes.max(f64::from(LEAST_UNIT_BYTES))) >= UNITS_DUE_AT_GOODPUT
            }),
        }
    }

    fn add_processor(
        &self,
        report: &EndReport,
        other: Option<&EndReport>,
        reasons: &mut Vec<Reason>,
    ) {
        let (end, role) = (report.role.name(), Some(report.role));
        let disturbance = report.disturbance.as_deref();
        let others = others_share(report, other);
        let waited = disturbance
            .and_then(|disturbance| disturbance.busiest_thread?.wait_ratio(report.elapsed_ns))
            .filter(|waited| *waited > WAITED);
        if let (Some(waited), Some(others)) = (waited, others.filter(|others| *others > OTHERS)) {
            reasons.push(ratio(
                (ReasonCode::CpuContended, role),
                (waited, WAITED),
                format!(
                    "a thread of the {end} waited {} of the time for a processor, and other programs \
                     used {} of them",
                    percent(waited),
                    percent(others)
                ),
                OWN_PROCESSORS,
            ));
        }
        if let Some(quota) = disturbance.and_then(|disturbance| disturbance.quota)
            && let throttled = share(quota.throttled_periods, quota.periods)
            && throttled > THROTTLED
        {
            reasons.push(ratio(
                (ReasonCode::CpuQuota, role),
                (throttled, THROTTLED),
                format!(
                    "the CPU quota of the {end}'s control group was used up in {} of {} periods",
                    quota.throttled_periods, quota.periods
                ),
                "raise the quota (cpu.max) of the container or service",
            ));
        }
        if let Some(steal) = steal_share(report).filter(|steal| *steal > STEAL) {
            reasons.push(ratio(
                (ReasonCode::CpuSteal, role),
                (steal, STEAL),
                format!("the hypervisor took {} of the {end}'s processors", percent(steal)),
                "measure on a machine whose processors are its own",
            ));
        }
    }

    fn of_unmet(&self, unmet: &Unmet, told_before: &[Reason]) -> Option<Reason> {
        let unmet = &self.as_sent(unmet);
        let (asked, got) = (unmet.asked, unmet.got);
        let apart = (got - asked).abs() / asked;
        let reason = |code, unit, limit, way_out: &str| Reason {
            value: Some(got),
            limit: Some(limit),
            unit: Some(unit),
            end: Some(unmet.role),
            way_out: Some(way_out.to_owned()),
            ..told(code, unmet.note())
        };
        Some(match unmet.what {
            Quantity::TimeS if !differs_in_time(asked, got) => return None,
            Quantity::TimeS if got > asked => Reason {
                severity: self.severity(apart > OTHER_TIME && !self.workload.has_transactions()),
                ..reason(ReasonCode::Stretched, ReasonUnit::S, asked, "measure again, for longer")
            },
            Quantity::TimeS => Reason {
                severity: self.severity(apart > OTHER_TIME),
                ..reason(ReasonCode::Shortened, ReasonUnit::S, asked, "measure again, for longer")
            },
            Quantity::RateBps if !self.is_held(unmet.role) => Reason {
                severity: self.severity(got < asked * LOW_RATE),
                ..reason(
                    ReasonCode::RateMissed,
                    ReasonUnit::Bps,
                    asked,
                    "ask for a rate that this sender can make, or give it more processors",
                )
            },
            Quantity::Transactions => Reason {
                severity: self.severity(apart > UNSENT),
                value: Some(asked - got),
                limit: Some(0.0),
                ..reason(
                    ReasonCode::ScheduleMissed,
                    ReasonUnit::Count,
                    0.0,
                    "ask for fewer per second, or for more flows",
                )
            },
            Quantity::SendBufferBytes | Quantity::ReceiveBufferBytes => reason(
                ReasonCode::BufferSize,
                ReasonUnit::Bytes,
                asked,
                "raise net.core.wmem_max and net.core.rmem_max at that end, or ask for a --window that \
                 its kernel grants",
            ),
            // Where the conductor saw the gap itself, that is told.
            Quantity::ArrivingS if !told_before.iter().any(|it| it.code == ReasonCode::Gap) => {
                let gap = (asked - got) / asked;
                Reason {
                    severity: self.severity(gap > GAPS),
                    value: Some(asked - got),
                    ..reason(
                        ReasonCode::Gap,
                        ReasonUnit::S,
                        seconds(GAP_NS),
                        "look for a link that went down, or test the time without it",
                    )
                }
            }
            _ => return None,
        })
    }

    /// Flows that ended far apart: the total is over the time of the slowest.
    fn uneven_ends(&self) -> Option<Reason> {
        let all = uneven_ends(self.workload, self.client, self.server);
        let worst = all.into_iter().max_by_key(|one| one.apart_ns)?;
        Some(Reason {
            value: Some(seconds(worst.apart_ns)),
            limit: Some(seconds(worst.time_ns) / 100.0),
            unit: Some(ReasonUnit::S),
            way_out: Some(
                "read the flows' own rates, or test for so long that the ends don't count"
                    .to_owned(),
            ),
            ..told(
                ReasonCode::UnevenEnds,
                format!(
                    "the last of {} flows ended {:.2} s after the first, and the total is over the \
                     {:.2} s of all",
                    worst.flows,
                    seconds(worst.apart_ns),
                    seconds(worst.time_ns)
                ),
            )
        })
    }

    /// The same with the sender's time, where the receiver's is longer than was asked for. Over TCP, TLS and QUIC a
    /// sender fills the queues of the path, and what stands there arrives after the sender's time.
    fn as_sent(&self, unmet: &Unmet) -> Unmet {
        let is_longer = unmet.what == Quantity::TimeS && unmet.got > unmet.asked;
        let sent_s = match self.workload.transport {
            Transport::Tcp | Transport::Tls | Transport::Quic if is_longer => {
                send_time_s(self.workload, self.client, self.server, unmet.role)
            }
            _ => None,
        };
        Unmet { got: sent_s.unwrap_or(unmet.got), ..*unmet }
    }

    /// Whether the path or the receiver held a sender up, so that the rate was not its to keep. Where nobody tells, it is
    /// taken to be so.
    fn is_held(&self, sender: Role) -> bool {
        if self.workload.transport == Transport::Udp {
            return false;
        }
        let report = match sender {
            Role::Client => self.client,
            Role::Server => self.server,
        };
        let Some(report) = report else { return true };
        // One flow that was held up misses its part of the rate.
        let is_any = |flows: Vec<bool>| flows.is_empty() || flows.contains(&true);
        let samples = self.samples.iter().filter(|sample| sample.role == sender);
        if self.workload.transport == Transport::Quic {
            // At the end everything is acknowledged, so that the report tells nothing.
            let mut windows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for flow in samples.filter(|sample| !sample.warm_up).flat_map(|sample| &sample.flows) {
                if let Some(window) = flow.quic.as_deref().and_then(quic_window_millionths) {
                    windows.entry(flow.flow).or_default().push(window);
                }
            }
            let medians = windows.into_values().filter_map(median);
            return is_any(medians.map(|median| median >= HELD_WINDOW_MILLIONTHS).collect());
        }
        // The kernel counts from the connection's start, which lies in the warm-up where there is one.
        let mut before_us: BTreeMap<u32, u64> = BTreeMap::new();
        for flow in samples.filter(|sample| sample.warm_up).flat_map(|sample| &sample.flows) {
            if let Some(busy_us) = flow.tcp.and_then(|tcp| tcp.busy_us) {
                let before_us = before_us.entry(flow.flow).or_default();
                *before_us = busy_us.max(*before_us);
            }
        }
        let busy = report.flows.iter().filter_map(|flow| {
            let before_us = before_us.get(&flow.flow).copied().unwrap_or(0);
            let busy_us = flow.tcp.as_ref()?.busy_us?.saturating_sub(before_us);
            let time_ns = flow.to_ns?.saturating_sub(flow.from_ns?);
            Some(share(busy_us.saturating_mul(1000), time_ns) >= HELD_BUSY)
        });
        is_any(busy.collect())
    }

    /// What was measured has wake-ups in it that the test asked to be without.
    fn refused_busy_poll(&self, report: &EndReport) -> Option<Reason> {
        let slept = report.waiting.is_some_and(|waiting| !waiting.spins);
        (self.workload.threading.busy_poll && slept).then(|| Reason {
            end: Some(report.role),
            way_out: Some(
                "allow busy polling at the server (serve --busy-poll), with a processor for each \
                 thread, or ask for none"
                    .to_owned(),
            ),
            ..told(
                ReasonCode::BusyPollRefused,
                format!(
                    "busy polling was asked for, and the {} slept between packets: its wake-ups are \
                     part of the figures",
                    report.role.name()
                ),
            )
        })
    }

    fn slipped(&self) -> Option<Reason> {
        let (latency, service) = (self.summary.latency_ns?, self.summary.service_ns?);
        let times = latency.p99? as f64 / (service.p99? as f64).max(1.0);
        let slipped = latency.max > service.max.saturating_add(SLIPPED_NS);
        (slipped && times > SLIPPED_TIMES).then(|| Reason {
            end: Some(Role::Client),
            value: Some(times),
            limit: Some(SLIPPED_TIMES),
            unit: Some(ReasonUnit::Times),
            way_out: Some("ask for fewer per second, or for more flows".to_owned()),
            ..told(
                ReasonCode::ScheduleSlipped,
                format!(
                    "requests were sent long after they were due: the 99th percentile from when they \
                     were due is {times:.1} times that from when they were sent",
                ),
            )
        })
    }

    fn own_drops(&self) -> Option<Reason> {
        let counts = self.summary.datagrams?;
        let (refused, dropped) =
            (counts.refused.unwrap_or(0), counts.dropped_by_socket.unwrap_or(0));
        let sent = counts.sent.unwrap_or(0).saturating_add(refused);
        let dropped_share = share(refused.saturating_add(dropped), sent);
        (dropped_share > OWN_DROPS).then(|| Reason {
            // Without a rate datagrams are sent as fast as it goes, and some are always too many.
            severity: self.severity(dropped_share > MANY_OWN_DROPS && self.workload.rate.is_some()),
            ..ratio(
                (ReasonCode::OwnDrops, None),
                (dropped_share, OWN_DROPS),
                format!(
                    "the ends dropped {} of the datagrams themselves: the sender {refused}, the \
                     receiver's socket {dropped}",
                    percent(dropped_share)
                ),
                "ask for a lower rate, or for larger socket buffers",
            )
        })
    }

    fn waits_in_latency(&self) -> Option<Reason> {
        let latency = self.summary.latency_ns.filter(|latency| latency.count > 0)?;
        let ends = [self.client, self.server];
        let reports = || ends.into_iter().flatten();
        let contended = reports().any(|report| {
            let other = reports().find(|other| other.role != report.role);
            others_share(report, other).is_some_and(|others| others > OTHERS)
        });
        let waits_s: f64 = reports()
            .filter_map(|report| report.disturbance.as_ref()?.wait_s)
            .filter(|wait_s| wait_s.is_finite())
            .sum();
        let each_ns = waits_s * 1e9 / latency.count as f64;
        let part = each_ns / latency.mean.max(1.0);
        (contended && part > WAIT_IN_LATENCY).then(|| {
            ratio(
                (ReasonCode::WaitInLatency, None),
                (part, WAIT_IN_LATENCY),
                format!(
                    "waits for a processor come to {} a transaction, and the mean latency is {}",
                    render_duration_ns(each_ns as u64),
                    render_duration_ns(latency.mean as u64)
                ),
                OWN_PROCESSORS,
            )
        })
    }
}

fn other_tests(report: &EndReport) -> Option<Reason> {
    let others = report.disturbance.as_ref()?.other_tests.filter(|others| *others > 0)?;
    Some(Reason {
        end: Some(report.role),
        value: Some(f64::from(others)),
        limit: Some(0.0),
        unit: Some(ReasonUnit::Count),
        way_out: Some("ask to measure alone (exclusive)".to_owned()),
        ..told(
            ReasonCode::OtherTests,
            match others {
                1 => "the server served another test at the same time".to_owned(),
                _ => format!("the server served {others} other tests at the same time"),
            },
        )
    })
}

/// A reason for doubt with its sentence and nothing else.
pub(super) fn told(code: ReasonCode, text: String) -> Reason {
    Reason::doubt(code, text)
}

fn ratio(
    (code, end): (ReasonCode, Option<Role>),
    (value, limit): (f64, f64),
    text: String,
    way_out: &str,
) -> Reason {
    Reason {
        end,
        value: Some(value),
        limit: Some(limit),
        unit: Some(ReasonUnit::Ratio),
        way_out: Some(way_out.to_owned()),
        ..told(code, text)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn seconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1e9
}

fn ms(time_ns: u64) -> String {
    format!("{} ms", time_ns / 1_000_000)
}

fn at(standstills: Standstills) -> String {
    at_ns(standstills.at_ns)
}

/// A time since the load began.
pub(super) fn at_ns(time_ns: u64) -> String {
    format!("{:.1} s", seconds(time_ns))
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1.0 { format!("{percent:.2} %") } else { format!("{percent:.0} %") }
}
