//! The arithmetic from two reports to one summary.

use std::collections::BTreeMap;

use super::tally::{Lane, flows_of, lanes, per_second};
use super::{CpuOfEnds, Latency, LatencyFrom, Summary};
use crate::dialect::EndExtension;
use crate::histogram::Histogram;
use crate::plan::{Direction, End, Kind, TransferPattern, Workload};
use crate::report::{EndReport, FlowSum};
use crate::sample::{CpuSeconds, DatagramCounts, Traffic};

/// The kind of failure of a connection whose bytes were wrong.
const CORRUPT: &str = "corrupt";

/// What the two ends' reports come to. A report that is missing leaves what depends on it absent.
///
/// 1. A direction's goodput is the bytes that its receiver counted in the time that all flows shared
///    over that time. Where there is none, it is all bytes over the time from the flows' earliest
///    start to their latest end. Where both directions run, the total is the sum of the two rates,
///    and a sum is absent unless both its parts are known.
/// 2. Transactions are the client's, over the client's measured time. A connection that was opened,
///    used and closed is one.
/// 3. Lost datagrams are those sent less those received, never below zero.
/// 4. CPU per byte or transaction needs the CPU of both ends.
/// 5. Fairness compares the flows of one direction; where both run, the less fair one counts.
/// 6. Failures are those of both ends. Of connections that come and go they are the client's, as their transactions
///    are: where one fails there, the server, too, sees something fail. Wrong bytes that the server found count too:
///    the client only sees a reset.
pub fn summarize(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Summary {
    let mut summary = match workload.kind {
        Kind::Stream { .. } => summarize_stream(workload, client, server),
        Kind::Rr { .. } => summarize_rr(workload, client, server),
        Kind::Connect { .. } => summarize_connect(workload, client, server),
    };
    let of_server = server.filter(|_| !matches!(workload.kind, Kind::Connect { .. }));
    summary.errors = merge_errors(client, of_server);
    let corrupt = server.filter(|_| workload.payload.verify && of_server.is_none());
    if let Some(count) = corrupt.and_then(|report| report.errors.get(CORRUPT)) {
        let total = summary.errors.entry(CORRUPT.to_owned()).or_default();
        *total = total.saturating_add(*count);
    }
    add_cpu(&mut summary, client, server);
    summary
}

fn summarize_stream(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Summary {
    let lanes = lanes(workload, client, server);
    let sent = all(&lanes, Lane::sent).map(add_traffic);
    let received = all(&lanes, Lane::received).map(add_traffic);
    // A load by bytes asks how long all of its bytes took.
    let elapsed_ns = |lane: &Lane| match workload.end {
        End::Time { .. } => lane.measured_ns(),
        End::Bytes { .. } | End::Count { .. } => lane.receive_time_ns(),
    };
    let mut summary = Summary {
        goodput_bps: all(&lanes, Lane::goodput_bps).map(|rates| rates.iter().sum()),
        sent_bps: all(&lanes, sent_bps).map(|rates| rates.iter().sum()),
        received_bytes: received.map(|traffic| traffic.bytes),
        sent_bytes: sent.map(|traffic| traffic.bytes),
        drained_bytes: lanes.iter().filter_map(Lane::drained_bytes).reduce(u64::saturating_add),
        elapsed_s: lanes.iter().filter_map(elapsed_ns).max().map(seconds),
        bytes_per_send: sent.and_then(bytes_per_call),
        bytes_per_receive: received.and_then(bytes_per_call),
        jitter_ns: jitter_ns(&lanes),
        retransmitted_segments: all(&lanes, retransmitted_by_sender)
            .map(|counts| counts.into_iter().fold(0, u64::saturating_add)),
        verified_bytes: sum_verified(&lanes, |flows| flows.verified_bytes),
        wrong_bytes: sum_verified(&lanes, |flows| flows.wrong_bytes),
        fairness: lanes.iter().filter_map(lane_fairness).reduce(f64::min),
        ..Summary::default()
    };
    if let [up, down] = lanes.as_slice() {
        summary.goodput_up_bps = up.goodput_bps();
        summary.goodput_down_bps = down.goodput_bps();
    }
    add_datagram_figures(&mut summary, &lanes);
    summary.delay_variation_ns =
        merged([client, server], |report| report.delay_variation_hdr.as_deref());
    summary.send_delay_ns = merged([client, server], |report| report.send_delay_hdr.as_deref());
    summary
}

/// A distribution that either end may have a part of.
fn merged(
    ends: [Option<&EndReport>; 2],
    histogram: impl Fn(&EndReport) -> Option<&str>,
) -> Option<Latency> {
    let mut all = Histogram::default();
    for text in ends.into_iter().flatten().filter_map(histogram) {
        all.merge(&Histogram::from_base64(text).ok()?);
    }
    all.latency()
}

fn summarize_rr(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Summary {
    let Some(report) = client else {
        return Summary::default();
    };
    let flows = flows_of(workload, Direction::Up, report);
    let transactions = flows.transactions;
    let latency_ns = latency(report.latency_hdr.as_deref());
    let retransmitted_by_server =
        server.and_then(|report| flows_of(workload, Direction::Up, report).retransmitted_segments);
    Summary {
        elapsed_s: (report.elapsed_ns > 0).then(|| seconds(report.elapsed_ns)),
        transactions,
        transactions_per_s: transactions.and_then(|n| per_second(n as f64, report.elapsed_ns)),
        transactions_lost: flows.transactions_lost,
        transactions_unsent: flows.transactions_unsent,
        latency_ns,
        latency_from: latency_ns.map(|_| latency_from(workload)),
        service_ns: latency(report.service_hdr.as_deref()),
        retransmitted_segments: flows
            .retransmitted_segments
            .zip(retransmitted_by_server)
            .map(|(client, server)| client.saturating_add(server)),
        fairness: fairness_of(&flows),
        ..Summary::default()
    }
}

fn summarize_connect(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Summary {
    let of_transactions = summarize_rr(workload, client, server);
    let of_client = |histogram: fn(&EndReport) -> Option<&str>| latency(client.and_then(histogram));
    let goodput = transfer_goodput(workload, client, server);
    Summary {
        goodput_bps: goodput.bps,
        goodput_up_bps: goodput.up_bps,
        goodput_down_bps: goodput.down_bps,
        connections_per_s: of_transactions.transactions_per_s,
        transactions_per_s: None,
        establishment_ns: of_client(|report| report.establishment_hdr.as_deref()),
        first_byte_ns: of_client(|report| report.first_byte_hdr.as_deref()),
        // Counted by the connections, which are gone.
        retransmitted_segments: None,
        // Whichever place is free takes the next connection: there is nothing to be fair to.
        fairness: None,
        ..of_transactions
    }
}

/// The goodput of transfers.
#[derive(Default)]
struct TransferGoodput {
    bps: Option<f64>,
    /// Where both directions carry data.
    up_bps: Option<f64>,
    down_bps: Option<f64>,
}

/// The goodput of ctsTraffic's transfers: in each direction the data that its receiver counted. Where the receiver's report is
/// missing, the data that the receiver's kernel has acknowledged.
fn transfer_goodput(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> TransferGoodput {
    let Kind::Connect { transfer: Some(transfer), .. } = workload.kind else {
        return TransferGoodput::default();
    };
    let acknowledged = |report: &EndReport| match report.extension {
        Some(EndExtension::Ctstraffic(totals)) => totals.acknowledged_bytes,
        _ => None,
    };
    let way = |sender: Option<&EndReport>, receiver: Option<&EndReport>| {
        // Only these reports tell what was acknowledged.
        sender.or(receiver).and_then(acknowledged)?;
        let received = receiver.map(|report| {
            let flows = flows_of(workload, Direction::Up, report);
            flows.received.map_or(0, |received| received.bytes)
        });
        let bytes = received.or_else(|| acknowledged(sender?))?;
        per_second(bytes as f64 * 8.0, receiver.or(sender)?.elapsed_ns)
    };
    let (up_bps, down_bps) = (way(client, server), way(server, client));
    match transfer.pattern {
        TransferPattern::Push => TransferGoodput { bps: up_bps, ..TransferGoodput::default() },
        TransferPattern::Pull => TransferGoodput { bps: down_bps, ..TransferGoodput::default() },
        TransferPattern::PushPull | TransferPattern::Duplex => {
            TransferGoodput { bps: up_bps.zip(down_bps).map(|(a, b)| a + b), up_bps, down_bps }
        }
    }
}

fn latency(histogram: Option<&str>) -> Option<Latency> {
    Histogram::from_base64(histogram?).ok()?.latency()
}

fn latency_from(workload: &Workload) -> LatencyFrom {
    if workload.schedule().is_some() { LatencyFrom::OpenLoop } else { LatencyFrom::ClosedLoop }
}

fn add_datagram_figures(summary: &mut Summary, lanes: &[Lane]) {
    let Some(counts) = all(lanes, Lane::datagrams) else {
        return;
    };
    let Some(total) = counts.into_iter().reduce(DatagramCounts::plus) else {
        return;
    };
    summary.datagrams = Some(total);
    summary.datagrams_per_s =
        all(lanes, |lane| per_second(lane.datagrams()?.received? as f64, lane.receive_time_ns()?))
            .map(|rates| rates.iter().sum());
    let come_or_lost = total.received.zip(total.lost).map(|(a, b)| a.saturating_add(b));
    let sent = match lanes.iter().any(|lane| lane.receiver_knows_loss) {
        true => come_or_lost,
        false => total.sent.or(come_or_lost),
    };
    summary.loss_ratio = total.lost.zip(sent).and_then(|(lost, sent)| ratio(lost, sent));
}

fn add_cpu(summary: &mut Summary, client: Option<&EndReport>, server: Option<&EndReport>) {
    let ends = CpuOfEnds {
        client: client.and_then(|report| report.cpu),
        server: server.and_then(|report| report.cpu),
    };
    if ends == CpuOfEnds::default() {
        return;
    }
    summary.cpu_s = Some(ends);
    let (Some(client), Some(server)) = (ends.client, ends.server) else {
        return;
    };
    let of = |cpu: CpuSeconds| cpu.user_s + cpu.system_s;
    let both_s = of(client) + of(server);
    let over = |amount: Option<u64>| amount.filter(|n| *n > 0).map(|n| both_s / n as f64);
    summary.cpu_s_per_gb = over(summary.received_bytes).map(|per_byte| per_byte * 1e9);
    summary.cpu_s_per_transaction = over(summary.transactions);
}

fn merge_errors(client: Option<&EndReport>, server: Option<&EndReport>) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for (kind, count) in [client, server].into_iter().flatten().flat_map(|report| &report.errors) {
        let total: &mut u64 = errors.entry(kind.clone()).or_default();
        *total = total.saturating_add(*count);
    }
    errors
}

/// `figure` of every lane; `None` unless every one has it.
fn all<'a, T>(lanes: &'a [Lane], figure: impl Fn(&'a Lane) -> Option<T>) -> Option<Vec<T>> {
    lanes.iter().map(figure).collect()
}

fn add_traffic(parts: Vec<Traffic>) -> Traffic {
    parts.into_iter().reduce(Traffic::plus).unwrap_or_default()
}

fn sent_bps(lane: &Lane) -> Option<f64> {
    per_second(lane.sent()?.bytes as f64 * 8.0, lane.send_time_ns()?)
}

fn bytes_per_call(traffic: Traffic) -> Option<f64> {
    ratio(traffic.bytes, traffic.calls?)
}

/// The mean over the flows that have a jitter.
fn jitter_ns(lanes: &[Lane]) -> Option<f64> {
    let flows = all(lanes, |lane| lane.receiving.as_ref())?;
    let count: u64 = flows.iter().map(|flows| flows.jitter_flows).fold(0, u64::saturating_add);
    let sum_ns: f64 = flows.iter().filter_map(|flows| flows.jitter_sum_ns).sum();
    (count > 0).then(|| sum_ns / count as f64)
}

/// Only the sender's kernel knows what was sent again.
fn retransmitted_by_sender(lane: &Lane) -> Option<u64> {
    lane.sending.as_ref()?.retransmitted_segments
}

fn sum_verified(lanes: &[Lane], bytes: fn(&FlowSum) -> Option<u64>) -> Option<u64> {
    let flows = all(lanes, |lane| lane.receiving.as_ref())?;
    flows.into_iter().filter_map(bytes).reduce(u64::saturating_add)
}

fn lane_fairness(lane: &Lane) -> Option<f64> {
    fairness_of(lane.receiving.as_ref()?)
}

fn fairness_of(flows: &FlowSum) -> Option<f64> {
    flows.span.length_ns()?;
    flows.shares.jain_index(flows.flows)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn seconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1e9
}
