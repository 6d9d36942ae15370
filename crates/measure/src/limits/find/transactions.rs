//! What limited requests and responses.

use super::super::rules::{self, Facts, Transactions};
use super::super::seen::Ends;
use super::super::{Limit, LimitEvidence};
use super::Measured;
use crate::histogram::Histogram;
use crate::plan::{Direction, Kind};
use crate::report::EndReport;
use crate::summary::Latency;

/// A transaction is very long if it takes this many times the median, and this long.
const LONG_TIMES: u64 = 10;
const LONG_NS: u64 = 1_000_000;
/// The share of the time that delays of a conductor's wake-ups come to where its end is stopped often.
const OFTEN_LATE: f64 = 0.3;
/// A schedule counts as kept from this share on.
const KEPT: f64 = 0.98;

/// What limited requests and responses.
pub(super) fn transactions(run: &Measured<'_>) -> Option<Limit> {
    let latency = run.summary.latency_ns.filter(|latency| latency.count > 0)?;
    let ends = Ends {
        workload: run.workload,
        sender: run.client,
        receiver: run.server,
        samples: run.samples,
    };
    let schedule = run.workload.schedule();
    let path_us = least_rtt_us(run);
    // The responses to the requests of the last round trip come too late to count.
    let path_ns = path_us.map_or(0.0, |us| f64::from(us) * 1000.0);
    let answered = 1.0 - (path_ns / run.client.elapsed_ns.max(1) as f64).min(1.0);
    let keeps_rate = schedule.is_some_and(|schedule| {
        let per_s = run.summary.transactions_per_s.unwrap_or(0.0);
        let unsent = run.summary.transactions_unsent.unwrap_or(0);
        per_s >= KEPT * answered * schedule.per_s && unsent == 0
    });
    let facts = Facts {
        evidence: LimitEvidence { min_rtt_us: path_us, ..ends.demands() },
        keeps_rate,
        misses_rate: schedule.is_some() && !keeps_rate,
        ..Facts::default()
    };
    let seen = seen(run, &latency, path_us)?;
    let (place, cause) = rules::transactions(&facts, seen);
    Some(Limit {
        place,
        cause,
        direction: Direction::Up,
        flow: None,
        sure: rules::is_clear_of_transactions(&facts, seen, cause),
        share: None,
        evidence: facts.evidence,
        advice: None,
    })
}

/// What became of requests.
fn seen(run: &Measured<'_>, latency: &Latency, path_us: Option<u32>) -> Option<Transactions> {
    let Kind::Rr { timeout_ns, request_bytes, response_bytes, .. } = run.workload.kind else {
        return None;
    };
    // Few transactions have no median: a long path lets a short test have no more.
    let median_ns = latency.p50.unwrap_or(latency.mean as u64);
    let all_ns = run.client.elapsed_ns as f64 * f64::from(run.workload.flows);
    let lost = run.summary.transactions_lost.unwrap_or(0) as f64;
    let is_long = |ns: u64| ns >= LONG_NS && ns >= median_ns.saturating_mul(LONG_TIMES);
    let text = run.client.latency_hdr.as_deref();
    let histogram = text.and_then(|text| Histogram::from_base64(text).ok());
    let (mut time_ns, mut long_ns, mut long_ones) = (0.0, 0.0, 0.0);
    for (ns, count) in histogram.iter().flat_map(Histogram::counts) {
        let (ns_of_all, count) = (ns as f64 * count as f64, count as f64);
        time_ns += ns_of_all;
        if is_long(ns) {
            (long_ns, long_ones) = (long_ns + ns_of_all, long_ones + count);
        }
    }
    let flows = u64::from(run.workload.active_flows().unwrap_or(run.workload.flows));
    let at_a_time = flows.saturating_mul(u64::from(run.workload.outstanding()));
    let message_bytes = u64::from(request_bytes.max(response_bytes));
    Some(Transactions {
        lost_share: lost * timeout_ns as f64 / all_ns.max(1.0),
        stalled_share: long_ns / time_ns.max(1.0),
        sent_again_per_stall: sent_again(run).map(|again| again / long_ones.max(1.0)),
        median_ns: median_ns as f64,
        p90_ns: latency.p90.map(|ns| ns as f64),
        least_ns: latency.min as f64,
        path_ns: path_us.map(|us| f64::from(us) * 1000.0),
        bytes: at_a_time.saturating_mul(message_bytes),
        spins: run.workload.threading.busy_poll,
        client_was_late: was_late(run.client),
        server_was_late: run.server.is_some_and(was_late),
    })
}

/// The least round trip of the path that the flows' connections or the control connection had.
fn least_rtt_us(run: &Measured<'_>) -> Option<u32> {
    let flows = run.client.flows.iter();
    let of_flows = flows.filter_map(|flow| {
        let tcp = flow.tcp.and_then(|tcp| tcp.min_rtt_us);
        tcp.or_else(|| flow.quic.map(|quic| quic.min_rtt_us))
    });
    let of_control = run.control_rtt_ns.and_then(|ns| u32::try_from(ns / 1000).ok());
    of_flows.chain(of_control).filter(|us| *us > 0).min()
}

/// The segments that both ends sent again; `None` where no kernel told.
fn sent_again(run: &Measured<'_>) -> Option<f64> {
    let reports = std::iter::once(run.client).chain(run.server);
    let told = reports.flat_map(|report| &report.flows).filter_map(|flow| flow.tcp);
    let counts = told.map(|tcp| f64::from(tcp.retransmitted_segments));
    counts.reduce(|all, one| all + one)
}

/// Whether an end's conductor stood still once, or woke up late so often that this explains stalls.
fn was_late(end: &EndReport) -> bool {
    let delay_ns = end.wakeup_delay_ns().unwrap_or(0) as f64;
    end.stood_still() || delay_ns >= OFTEN_LATE * end.elapsed_ns as f64
}
