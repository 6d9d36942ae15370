//! Whether the figures of a run can be trusted.

use std::collections::BTreeMap;

use super::tally::{Lane, flows_of, lanes};
use super::times::judge_span;
use crate::dialect::Dialect;
use crate::histogram::Histogram;
use crate::plan::{Direction, End, Kind, Workload};
use crate::report::EndReport;
use crate::sample::Role;
use crate::units::quoted;

/// Kinds of failure that one sentence lists.
const KINDS_SHOWN: usize = 5;

/// The reasons why the figures of a run aren't to be trusted, each a sentence with numbers; empty
/// where nothing speaks against them. They are, in this order:
///
/// 1. An end's report is missing, is another end's, or has other flows than the workload.
/// 2. Flows ended before their time.
/// 3. Nothing arrived, or no transaction was completed.
/// 4. Received bytes were wrong, or weren't checked although that was asked.
/// 5. More arrived than was sent, or less than a load by bytes asked for.
/// 6. A receiver counted bytes and no time, or its time is too short for what the sender's time
///    allows.
/// 7. The latencies don't fit the transactions.
///
/// Lost datagrams, retransmissions and failures counted by kind are data, not reasons.
pub fn judge(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Vec<String> {
    let mut reasons = Vec::new();
    for (role, report) in [(Role::Client, client), (Role::Server, server)] {
        judge_report(workload, role, report, &mut reasons);
    }
    for lane in &lanes(workload, client, server) {
        judge_arrival(lane, &mut reasons);
        judge_bytes(workload, lane, &mut reasons);
        judge_sums(workload, lane, &mut reasons);
        judge_span(lane, &mut reasons);
    }
    if workload.has_transactions()
        && let Some(client) = client
    {
        judge_transactions(workload, client, &mut reasons);
    }
    reasons
}

/// The same for another dialect's test, as far as its figures allow. Its peer may tell little or nothing, its reports may
/// have several connections as one flow, and what its original takes for its result is no reason either:
///
/// 1. An end whose report is missing, or that doesn't tell what it received, gives no reason.
/// 2. Flows are compared with the workload's for iperf3 alone, which lists its streams.
/// 3. iperf3 ends a test by bytes when they are sent, whatever has arrived.
/// 4. Without a mark in each datagram duplicates are unknown: more datagrams may arrive than were sent.
/// 5. Latencies may be kept of a part of the transactions, or of none.
pub fn judge_dialect(
    dialect: Dialect,
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Vec<String> {
    let mut reasons = Vec::new();
    for report in [client, server].into_iter().flatten() {
        if dialect == Dialect::Iperf3 {
            judge_flows(workload, report, &mut reasons);
        }
        judge_endings(report, &mut reasons);
    }
    for lane in &lanes(workload, client, server) {
        if lane.received().is_some() {
            judge_arrival(lane, &mut reasons);
            judge_span(lane, &mut reasons);
        }
        judge_sum(workload, lane, &mut reasons);
        if dialect != Dialect::Iperf3 {
            judge_asked(workload, lane, &mut reasons);
        }
    }
    if workload.has_transactions()
        && let Some(client) = client
    {
        judge_count(workload, client, &mut reasons);
    }
    reasons
}

fn judge_report(
    workload: &Workload,
    role: Role,
    report: Option<&EndReport>,
    reasons: &mut Vec<String>,
) {
    let end = role.name();
    let Some(report) = report else {
        reasons.push(format!("the {end}'s report is missing, so its counts are unknown"));
        return;
    };
    if report.role != role {
        let other = report.role.name();
        reasons.push(format!("the {end}'s report says that it is the {other}'s"));
    }
    judge_flows(workload, report, reasons);
    judge_endings(report, reasons);
}

fn judge_flows(workload: &Workload, report: &EndReport, reasons: &mut Vec<String>) {
    // A server of connections that come and go has threads that serve them, not flows.
    let has_flows = report.role == Role::Client || !matches!(workload.kind, Kind::Connect { .. });
    if has_flows && !has_every_flow(workload, report) {
        reasons.push(format!(
            "the {} reported {} flows that don't match the {} of the load",
            report.role.name(),
            flows_reported(report),
            workload.total_flows(),
        ));
    }
}

/// Flows that ended before their time.
fn judge_endings(report: &EndReport, reasons: &mut Vec<String>) {
    let (end, reported) = (report.role.name(), flows_reported(report));
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for error in report.flows.iter().filter_map(|flow| flow.error.as_deref()) {
        *kinds.entry(error).or_default() += 1;
    }
    for sum in report.unlisted.iter().flat_map(|unlisted| [&unlisted.up, &unlisted.down]) {
        for (kind, flows) in &sum.errors {
            let count = kinds.entry(kind).or_default();
            *count = count.saturating_add(*flows);
        }
    }
    if !kinds.is_empty() {
        let failed = kinds.values().copied().fold(0, u64::saturating_add);
        // The kinds are the peer's words: no control character of theirs reaches a terminal.
        let kinds: Vec<String> = kinds
            .iter()
            .take(KINDS_SHOWN)
            .map(|(kind, flows)| format!("{}: {flows}", quoted(kind)))
            .collect();
        reasons.push(format!(
            "{failed} of {reported} flows ended before their time at the {end} ({})",
            kinds.join(", "),
        ));
    }
}

fn flows_reported(report: &EndReport) -> u64 {
    let unlisted = report.unlisted.as_ref().map_or(0, |unlisted| unlisted.flows());
    unlisted.saturating_add(report.flows.len() as u64)
}

/// Whether the flows listed are different ones of the load's, and the others make up the rest of
/// each direction.
fn has_every_flow(workload: &Workload, report: &EndReport) -> bool {
    let total = workload.total_flows();
    let mut numbers: Vec<u32> = report.flows.iter().map(|flow| flow.flow).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let own = numbers.last().is_none_or(|greatest| *greatest < total);
    let complete = |direction: Direction| {
        let of_load = match workload.direction() {
            Some(Direction::Both) => workload.flows,
            Some(other) if other != direction => 0,
            None if direction == Direction::Down => 0,
            _ => total,
        };
        let listed = report.flows.iter().filter(|f| workload.flow_direction(f.flow) == direction);
        let unlisted = report.unlisted.as_ref().map_or(0, |all| all.of(direction).flows);
        unlisted.saturating_add(listed.count() as u64) == u64::from(of_load)
    };
    own && numbers.len() == report.flows.len()
        && complete(Direction::Up)
        && complete(Direction::Down)
}

fn judge_arrival(lane: &Lane, reasons: &mut Vec<String>) {
    let Some(flows) = &lane.receiving else {
        return;
    };
    // One silent flow among many is data (fairness shows it); silence of all is no measurement.
    if flows.received.is_none_or(|received| received.bytes == 0) {
        reasons.push(format!("nothing arrived {} on any of {} flows", way_of(lane), flows.flows));
    }
}

fn judge_bytes(workload: &Workload, lane: &Lane, reasons: &mut Vec<String>) {
    let Some(flows) = &lane.receiving else {
        return;
    };
    if let Some(first) = flows.first_wrong {
        let place = match (first.offset, first.extent_bytes) {
            (Some(offset), Some(extent)) => format!("{extent} bytes at offset {offset} of "),
            (Some(offset), None) => format!("at offset {offset} of "),
            (None, _) => String::new(),
        };
        reasons.push(format!(
            "{} received bytes {} were wrong, the first {place}flow {}",
            flows.wrong_bytes.unwrap_or(0),
            way_of(lane),
            first.flow,
        ));
    }
    if workload.payload.verify && flows.unchecked_flows > 0 {
        reasons.push(format!(
            "verification was asked, and {} of {} flows {} were not checked",
            flows.unchecked_flows,
            flows.flows,
            way_of(lane),
        ));
    }
}

fn judge_sums(workload: &Workload, lane: &Lane, reasons: &mut Vec<String>) {
    judge_sum(workload, lane, reasons);
    judge_asked(workload, lane, reasons);
    let way = way_of(lane);
    if let Some(counts) = lane.datagrams()
        && let (Some(sent), Some(received)) = (counts.sent, counts.received)
        && received > sent
    {
        reasons.push(format!("{received} datagrams arrived {way}, and only {sent} were sent"));
    }
}

/// Whether bytes can be compared: those of a stream carry no mark of the warm-up, so that some sent in it may arrive
/// after it, and datagrams get lost.
fn is_countable(workload: &Workload) -> bool {
    workload.omit_ns == 0 && !workload.has_datagrams()
}

/// No more can have arrived than was sent.
fn judge_sum(workload: &Workload, lane: &Lane, reasons: &mut Vec<String>) {
    if let (Some(sent), Some(received)) = (lane.sent(), lane.received())
        && received.bytes > sent.bytes
        && is_countable(workload)
    {
        let (sent, received, way) = (sent.bytes, received.bytes, way_of(lane));
        reasons.push(format!("{received} bytes arrived {way}, and only {sent} were sent"));
    }
}

/// A load by bytes is done when they have arrived. Datagrams get lost: it is done when they have been sent, and so is a
/// load by sends.
fn judge_asked(workload: &Workload, lane: &Lane, reasons: &mut Vec<String>) {
    judge_asked_sends(workload, lane, reasons);
    if let (End::Bytes { bytes }, Some(_), Some(received)) =
        (workload.end, lane.sent(), lane.received())
        && received.bytes < bytes
        && is_countable(workload)
    {
        let (received, way) = (received.bytes, way_of(lane));
        reasons.push(format!("{bytes} bytes were asked for {way}, and {received} arrived"));
    }
}

fn judge_asked_sends(workload: &Workload, lane: &Lane, reasons: &mut Vec<String>) {
    let Kind::Stream { send_bytes, .. } = workload.kind else { return };
    let (Some(sent), 0) = (lane.sent(), workload.omit_ns) else { return };
    let send_bytes = u64::from(send_bytes.max(1));
    let bytes = match workload.end {
        End::Bytes { bytes } if workload.has_datagrams() => bytes,
        End::Count { count } => count.saturating_mul(send_bytes),
        _ => return,
    };
    // What this end dropped itself was tried.
    let refused = lane.datagrams().and_then(|counts| counts.refused).unwrap_or(0);
    if sent.bytes.saturating_add(refused.saturating_mul(send_bytes)) < bytes {
        let (sent, way) = (sent.bytes, way_of(lane));
        reasons.push(format!("{bytes} bytes were asked for {way}, and {sent} were sent"));
    }
}

/// How many transactions were made; those that were completed.
fn judge_count(workload: &Workload, client: &EndReport, reasons: &mut Vec<String>) -> u64 {
    let flows = flows_of(workload, Direction::Up, client);
    let transactions = flows.transactions.unwrap_or(0);
    let lost = flows.transactions_lost.unwrap_or(0);
    if transactions == 0 {
        let kinds = client.errors.iter().map(|(kind, count)| format!(", {count} times {kind}"));
        let why: String = kinds.collect();
        let advice = workload.quic.shorter_packets_advice();
        let advice = advice.filter(|_| client.errors.contains_key("timed_out"));
        let advice = advice.map(|advice| format!(": {advice}")).unwrap_or_default();
        reasons.push(format!("no transaction was completed ({lost} were lost{why}){advice}"));
    }
    if let End::Count { count } = workload.end {
        let failed = match workload.kind {
            Kind::Connect { .. } => {
                client.errors.values().fold(0, |a: u64, b| a.saturating_add(*b))
            }
            _ => 0,
        };
        let done = transactions.saturating_add(lost).saturating_add(failed);
        if done < count && workload.omit_ns == 0 {
            reasons.push(format!("{count} transactions were asked for, and {done} were made"));
        }
    }
    transactions
}

fn judge_transactions(workload: &Workload, client: &EndReport, reasons: &mut Vec<String>) {
    let transactions = judge_count(workload, client, reasons);
    let Some(text) = client.latency_hdr.as_deref() else {
        if transactions > 0 {
            reasons.push(format!("no latencies were recorded for {transactions} transactions"));
        }
        return;
    };
    match Histogram::from_base64(text) {
        Err(error) => reasons.push(error.to_string()),
        Ok(histogram) if histogram.len() != transactions => reasons.push(format!(
            "{} latencies were recorded for {transactions} transactions",
            histogram.len(),
        )),
        Ok(_) => {}
    }
}

pub(super) fn way_of(lane: &Lane) -> &'static str {
    match lane.direction {
        Direction::Down => "from the server",
        Direction::Up | Direction::Both => "from the client",
    }
}
