//! Whether the figures of a run can be trusted.

use std::collections::BTreeMap;

use super::tally::{Lane, lanes, sum};
use crate::histogram::Histogram;
use crate::plan::{Direction, End, Kind, Transport, Workload};
use crate::report::{EndReport, FlowReport};
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
/// 6. The latencies don't fit the transactions.
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
    for lane in lanes(workload, client, server) {
        judge_arrival(lane, &mut reasons);
        judge_bytes(workload, lane, &mut reasons);
        judge_sums(workload, lane, &mut reasons);
    }
    if workload.has_transactions()
        && let Some(client) = client
    {
        judge_transactions(workload, client, &mut reasons);
    }
    reasons
}

fn judge_report(
    workload: &Workload,
    role: Role,
    report: Option<&EndReport>,
    reasons: &mut Vec<String>,
) {
    let end = name_of(role);
    let Some(report) = report else {
        reasons.push(format!("the {end}'s report is missing, so its counts are unknown"));
        return;
    };
    if report.role != role {
        let other = name_of(report.role);
        reasons.push(format!("the {end}'s report says that it is the {other}'s"));
    }
    // A server of connections that come and go has threads that serve them, not flows.
    let has_flows = role == Role::Client || !matches!(workload.kind, Kind::Connect { .. });
    let mut numbers: Vec<u32> = report.flows.iter().map(|flow| flow.flow).collect();
    numbers.sort_unstable();
    if has_flows && !numbers.iter().copied().eq(0..workload.total_flows()) {
        reasons.push(format!(
            "the {end} reported {} flows that aren't the {} of the load",
            numbers.len(),
            workload.total_flows(),
        ));
    }
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for error in report.flows.iter().filter_map(|flow| flow.error.as_deref()) {
        *kinds.entry(error).or_default() += 1;
    }
    if !kinds.is_empty() {
        let failed: u64 = kinds.values().sum();
        // The kinds are the peer's words: no control character of theirs reaches a terminal.
        let kinds: Vec<String> = kinds
            .iter()
            .take(KINDS_SHOWN)
            .map(|(kind, flows)| format!("{}: {flows}", quoted(kind)))
            .collect();
        reasons.push(format!(
            "{failed} of {} flows ended before their time at the {end} ({})",
            report.flows.len(),
            kinds.join(", "),
        ));
    }
}

fn judge_arrival(lane: Lane<'_>, reasons: &mut Vec<String>) {
    let Some(flows) = lane.receiving() else {
        return;
    };
    // One silent flow among many is data (fairness shows it); silence of all is no measurement.
    if flows.iter().all(|flow| received_bytes(flow) == 0) {
        reasons.push(format!("nothing arrived {} on any of {} flows", way_of(lane), flows.len()));
    }
}

fn judge_bytes(workload: &Workload, lane: Lane<'_>, reasons: &mut Vec<String>) {
    let flows = lane.receiving().unwrap_or_default();
    let found = |flow: &FlowReport| flow.verification.unwrap_or_default();
    let wrong_flows: Vec<_> = flows.iter().filter(|flow| found(flow).wrong_bytes > 0).collect();
    if let Some(first) = wrong_flows.first() {
        let wrong = wrong_flows.iter().fold(0, |n: u64, f| n.saturating_add(found(f).wrong_bytes));
        let place = match (found(first).first_wrong_offset, found(first).first_wrong_extent_bytes) {
            (Some(offset), Some(extent)) => format!("{extent} bytes at offset {offset} of "),
            (Some(offset), None) => format!("at offset {offset} of "),
            (None, _) => String::new(),
        };
        reasons.push(format!(
            "{wrong} received bytes {} were wrong, the first {place}flow {}",
            way_of(lane),
            first.flow,
        ));
    }
    let unchecked = flows
        .iter()
        .filter(|flow| received_bytes(flow) > 0)
        .filter(|flow| found(flow).verified_bytes == 0 && found(flow).wrong_bytes == 0)
        .count();
    if workload.verify && unchecked > 0 {
        reasons.push(format!(
            "verification was asked, and {unchecked} of {} flows {} were not checked",
            flows.len(),
            way_of(lane),
        ));
    }
}

fn judge_sums(workload: &Workload, lane: Lane<'_>, reasons: &mut Vec<String>) {
    let way = way_of(lane);
    // A stream's bytes carry no mark of the warm-up: some sent in it may arrive after it.
    let countable = workload.omit_ns == 0;
    if let (Some(sent), Some(received)) = (lane.sent(), lane.received()) {
        let (sent, received) = (sent.bytes, received.bytes);
        if received > sent && countable && workload.transport != Transport::Udp {
            reasons.push(format!("{received} bytes arrived {way}, and only {sent} were sent"));
        }
        if let End::Bytes { bytes } = workload.end
            && received < bytes
            && countable
            && workload.transport != Transport::Udp
        {
            reasons.push(format!("{bytes} bytes were asked for {way}, and {received} arrived"));
        }
    }
    if let Some(counts) = lane.datagrams()
        && let (Some(sent), Some(received)) = (counts.sent, counts.received)
        && received > sent
    {
        reasons.push(format!("{received} datagrams arrived {way}, and only {sent} were sent"));
    }
}

fn judge_transactions(workload: &Workload, client: &EndReport, reasons: &mut Vec<String>) {
    let flows: Vec<&FlowReport> = client.flows.iter().collect();
    let transactions = sum(&flows, |flow| flow.transactions).unwrap_or(0);
    let lost = sum(&flows, |flow| flow.transactions_lost).unwrap_or(0);
    if transactions == 0 {
        reasons.push(format!("no transaction was completed ({lost} were lost)"));
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
    let Some(text) = client.latency_hdr.as_deref() else {
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

fn received_bytes(flow: &FlowReport) -> u64 {
    flow.received.map_or(0, |traffic| traffic.bytes)
}

fn name_of(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

fn way_of(lane: Lane<'_>) -> &'static str {
    match lane.direction {
        Direction::Down => "from the server",
        Direction::Up | Direction::Both => "from the client",
    }
}
