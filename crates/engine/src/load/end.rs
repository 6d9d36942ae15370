//! What one end counted in all.

use std::collections::BTreeMap;
use std::sync::Arc;

use linerate_measure::report::{
    EndReport, FlowReport, Handshakes, SocketFacts, Span, Unlisted, Verification, Waiting,
};
use linerate_measure::sample::{CpuSeconds, DatagramCounts, MachineCpu, QuicStatus, Traffic};
use linerate_measure::{Arrivals, Direction, End, Workload};

use super::Load;
use super::meter::Meter;
use super::shared_time::first_arrival_ns;
use crate::clock::MILLISECOND_NS;
use crate::flow::{Base, Departures, Ending, FlowError, FlowShared};
use crate::latencies::{Latencies, render_histogram};
use crate::shard::ShardEnd;
use crate::tally::Counts;
use crate::transport::Lent;

/// Times closer together than this say nothing about a rate.
const SHORTEST_RATE_NS: u64 = MILLISECOND_NS;
/// A schedule is kept if no more than this share of what was asked is answered after its end, besides what is always
/// under way.
const BEHIND: f64 = 0.01;

pub(super) fn report(
    load: &Load,
    meter: &Meter,
    machine_cpu: Vec<MachineCpu>,
    ends: Vec<Option<ShardEnd>>,
    now_ns: u64,
) -> EndReport {
    let mut notes = load.notes.clone();
    let mut errors = BTreeMap::new();
    let mut flows = Vec::new();
    let mut unlisted = Unlisted::default();
    let times = Times { now_ns, datagrams_end_ns: datagrams_end_ns(load) };
    let spans = spans(load, meter, times);
    let (mut count, mut cut_off) = (0, 0);
    let mut lent = None;
    let thread_failed = ends.iter().any(Option::is_none);
    let mut handshakes: Option<Handshakes> = None;
    for flow in load.flows.iter().flatten() {
        let mut ending = flow.take_ending().unwrap_or_else(|| ending_of_none(thread_failed));
        add_lent(&mut lent, ending.lent.take());
        if let Some(more) = ending.handshakes {
            handshakes = Some(more.plus(handshakes.unwrap_or_default()));
        }
        count_errors(&load.workload, flow.number, &ending, &mut errors);
        let report = flow_report(load, meter, flow, &ending, times);
        count += 1;
        cut_off += usize::from(ending.is_cut_off);
        if flow.is_listed() {
            flows.push(report);
        } else {
            let direction = load.workload.flow_direction(flow.number);
            unlisted.of_mut(direction).add(&load.workload, &report, spans.of(direction));
        }
    }
    notes.extend(render_missing(load.flows.len(), count, cut_off));
    notes.extend(render_without_turn(load));
    notes.extend(lent.map(render_lent));
    let mut host = meter.host.clone();
    let (latencies, used) = merge(ends, &mut host.ran_on_cpus, &mut notes);
    let (cpu, mut waiting) = if meter.measured_nothing() { Default::default() } else { used };
    waiting.spins = load.workload.threading.busy_poll;
    EndReport {
        role: load.role,
        host,
        flows,
        unlisted: (unlisted.flows() > 0).then_some(unlisted),
        elapsed_ns: schedule_time_ns(load, meter, &spans, &latencies)
            .or(spans.all.length_ns())
            .unwrap_or(0),
        cpu: Some(cpu),
        waiting: Some(waiting),
        machine_cpu,
        latency_hdr: render_histogram(&latencies.total),
        service_hdr: latencies.service.as_ref().and_then(render_histogram),
        establishment_hdr: latencies.establishment.as_ref().and_then(render_histogram),
        first_byte_hdr: latencies.first_byte.as_ref().and_then(render_histogram),
        delay_variation_hdr: latencies.delay_variation.as_ref().and_then(render_histogram),
        send_delay_hdr: latencies.send_delay.as_ref().and_then(render_histogram),
        handshakes,
        errors,
        notes,
        ..EndReport::nothing(load.role)
    }
}

/// Flows that never came, and flows that broke late.
fn render_missing(flows: usize, came: usize, cut_off: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if came < flows {
        notes.push(format!("{} of {flows} flows never arrived", flows - came));
    }
    if cut_off > 0 {
        notes.push(format!(
            "{cut_off} of {flows} flows broke after the load's time was up: later data is not counted"
        ));
    }
    notes
}

/// Where flows take turns: how many never had one, so that no figure is taken for one of all flows.
fn render_without_turn(load: &Load) -> Option<String> {
    load.workload.active_flows().filter(|_| load.asks())?;
    let idle = |flow: &&Arc<FlowShared>| flow.tally.transactions.value() == 0;
    let without = load.flows.iter().flatten().filter(idle).count();
    (without > 0).then(|| {
        format!(
            "{without} of {} flows never sent a request: test for longer, or use --active all",
            load.flows.len()
        )
    })
}

/// What there is of a flow that has left nothing: with its thread it came to an end that was not
/// planned.
fn ending_of_none(thread_failed: bool) -> Box<Ending> {
    let text = "the thread that carried the flow has failed";
    let failure = || FlowError::new("thread_failed", text);
    Box::new(Ending { error: thread_failed.then(failure), ..Ending::default() })
}

/// The times that the flows cover.
#[derive(Default)]
struct Spans {
    up: Span,
    down: Span,
    all: Span,
}

impl Spans {
    fn of(&self, direction: Direction) -> Span {
        if direction == Direction::Down { self.down } else { self.up }
    }
}

/// The times that the flows' own ones depend on.
#[derive(Clone, Copy)]
struct Times {
    now_ns: u64,
    /// When flows of datagrams to this end were over; 0: not known.
    datagrams_end_ns: u64,
}

/// When flows of datagrams to this end were over, where the load ends by time: nothing on the wire marks it. What was sent
/// in the load's time arrives in as much time, counted from the first arrival.
fn datagrams_end_ns(load: &Load) -> u64 {
    let stopped_ns = load.time_was_up_ns();
    let (End::Time { duration_ns }, true) = (load.workload.end, load.is_datagrams()) else {
        return stopped_ns;
    };
    let is_whole = load.planned_end_ns().is_some_and(|ends_ns| stopped_ns >= ends_ns);
    let from_ns = first_arrival_ns(load).filter(|_| is_whole);
    from_ns.map_or(stopped_ns, |from_ns| stopped_ns.max(from_ns.saturating_add(duration_ns)))
}

/// The time of the schedule by which this end asks: from the beginning of the measured part to the load's end, or for as
/// long as what it asked was due. `None`: there is no schedule, or this end fell behind it, and what was left came later.
///
/// The last request is due before the schedule's end, and is answered a while later: neither is the time of the others.
fn schedule_time_ns(
    load: &Load,
    meter: &Meter,
    spans: &Spans,
    latencies: &Latencies,
) -> Option<u64> {
    let schedule = load.workload.schedule().filter(|_| load.asks() && !meter.measured_nothing())?;
    let done = load.measured_transactions();
    let least_latency_ns = latencies.total.latency().map_or(0, |latency| latency.min);
    if let End::Time { .. } = load.workload.end {
        let time_ns = load.phase.reached().ends_ns.checked_sub(meter.measuring_ns)?;
        let late = done.saturating_sub(meter.totals.done_at_stop?);
        let under_way = schedule.per_s * least_latency_ns as f64 / 1e9;
        let is_kept = late as f64 <= 1.0 + done as f64 * BEHIND + under_way;
        return is_kept.then_some(time_ns);
    }
    let last_ns = spans.all.to_ns?.saturating_add(meter.opened_ns()?);
    let took_ns = last_ns.checked_sub(meter.measuring_ns)?;
    if schedule.arrivals != Arrivals::Even {
        return Some(took_ns);
    }
    // Saturates.
    let due_ns = (done as f64 / schedule.per_s * 1e9) as u64;
    let most_ns = due_ns.saturating_add(least_latency_ns) as f64 + due_ns as f64 * BEHIND;
    Some(if took_ns as f64 <= most_ns { due_ns } else { took_ns })
}

/// Needed before a flow can be added to others: shares are of what all flows had.
fn spans(load: &Load, meter: &Meter, times: Times) -> Spans {
    let mut spans = Spans::default();
    for flow in load.flows.iter().flatten() {
        let at_ns = flow.base().map(|base| base.at_ns).filter(|_| load.workload.omit_ns > 0);
        let base_ns = at_ns.unwrap_or(meter.measuring_ns);
        let (from_ns, to_ns) = measured_time(load, meter, flow, base_ns, times);
        let span = Span { from_ns, to_ns };
        spans.all.cover(span);
        match load.workload.flow_direction(flow.number) {
            Direction::Down => spans.down.cover(span),
            Direction::Up | Direction::Both => spans.up.cover(span),
        }
    }
    spans
}

fn add_lent(sum: &mut Option<Lent>, lent: Option<Box<Lent>>) {
    let Some(lent) = lent else { return };
    let sum = sum.get_or_insert_default();
    sum.sends += lent.sends;
    sum.returned += lent.returned;
    sum.copied += lent.copied;
}

fn render_lent(lent: Lent) -> String {
    let Lent { sends, returned, copied } = lent;
    format!(
        "zero copy: the kernel copied the bytes of {copied} of {sends} sends anyway{}",
        match sends.saturating_sub(returned) {
            0 => String::new(),
            unheard => format!(", and did not report on {unheard}"),
        }
    )
}

fn count_errors(
    workload: &Workload,
    flow: u32,
    ending: &Ending,
    errors: &mut BTreeMap<String, u64>,
) {
    // Two flows that share a connection end with one error. It counts for the first of them.
    if workload.payload.duplex && flow >= workload.flows {
        return;
    }
    if let Some(error) = &ending.error {
        *errors.entry(error.kind.to_owned()).or_insert(0) += 1;
    }
    for (kind, count) in &ending.errors {
        *errors.entry((*kind).to_owned()).or_insert(0) += count;
    }
}

pub(super) fn merge(
    ends: Vec<Option<ShardEnd>>,
    ran_on_cpus: &mut Vec<u32>,
    notes: &mut Vec<String>,
) -> (Latencies, (CpuSeconds, Waiting)) {
    let mut latencies = Latencies::default();
    let (mut cpu, mut waiting) = (CpuSeconds::default(), Waiting::default());
    for end in ends {
        let Some(end) = end else {
            notes.push("a thread of the load failed; its figures are missing".to_owned());
            continue;
        };
        latencies.merge(&end.latencies);
        cpu = cpu.plus(end.cpu);
        waiting.add(&end.waits);
        ran_on_cpus.push(end.on_cpu);
        notes.extend(end.pinning_error);
    }
    (latencies, (cpu, waiting))
}

fn flow_report(
    load: &Load,
    meter: &Meter,
    flow: &FlowShared,
    ending: &Ending,
    times: Times,
) -> FlowReport {
    if meter.measured_nothing() {
        return unmeasured(load, flow, ending);
    }
    let index = flow.number as usize;
    let base = base_of(load, meter, index, flow);
    let counts = flow.tally.counts().since(&base.counts);
    let (from_ns, to_ns) = measured_time(load, meter, flow, base.at_ns, times);
    let retransmits_before = flow.base().map_or(0, |base| base.retransmitted_segments);
    let tcp = ending.tcp.map(|mut tcp| {
        tcp.retransmitted_segments = tcp.retransmitted_segments.saturating_sub(retransmits_before);
        tcp
    });
    let socket = ending.socket.as_deref().cloned().map(|socket| SocketFacts {
        gso: ending.datagrams.gso.or(socket.gso),
        gro: ending.datagrams.gro.or(socket.gro),
        ..socket
    });
    let mut report = FlowReport {
        sent: traffic(counts.sent_bytes, counts.send_calls),
        received: traffic(counts.received_bytes, counts.receive_calls),
        from_ns,
        to_ns,
        tcp,
        quic: quic_since_base(flow, ending),
        verification: ending.verification.as_deref().cloned().map(|found| Verification {
            verified_bytes: found.verified_bytes.saturating_sub(base.verified_bytes),
            ..found
        }),
        socket,
        ..unmeasured(load, flow, ending)
    };
    if load.asks() {
        report.transactions = Some(flow.tally.measured_transactions());
        report.transactions_lost = ending.transactions_lost;
        let ends_ns = load.phase.reached().ends_ns.min(times.now_ns);
        let unsent = |left: &Departures| left.clone().never_sent(meter.measuring_ns, ends_ns);
        report.transactions_unsent =
            ending.transactions_unsent.or(ending.departures.as_deref().map(unsent));
    }
    let drops = ending.drops.map(|drops| dropped_datagrams(drops, &counts, ending.datagrams.gro));
    let peer_sent = load.peer_sent.get(index).copied().flatten();
    add_datagrams(&mut report, (load.unit_bytes(), peer_sent), drops, ending);
    report
}

/// What there is to tell of a flow whatever was measured.
fn unmeasured(load: &Load, flow: &FlowShared, ending: &Ending) -> FlowReport {
    FlowReport {
        flow: flow.number,
        transactions: load.asks().then_some(0),
        socket: ending.socket.as_deref().cloned(),
        error: ending.error.as_ref().map(|error| format!("{}: {}", error.kind, error.text)),
        error_code: ending.error.as_ref().and_then(|error| error.code),
        ..FlowReport::default()
    }
}

/// What the QUIC connection said at the flow's end, its counters since the measured part began.
fn quic_since_base(flow: &FlowShared, ending: &Ending) -> Option<QuicStatus> {
    let before = flow.base().and_then(|base| base.quic.as_deref());
    let before = before.or(ending.quic_before.as_deref()).copied().unwrap_or_default();
    let since = |now: Option<u64>, before: Option<u64>| {
        now.map(|now| now.saturating_sub(before.unwrap_or(0)))
    };
    ending.quic.as_deref().map(|now| QuicStatus {
        sent_packets: now.sent_packets.saturating_sub(before.sent_packets),
        lost_packets: now.lost_packets.saturating_sub(before.lost_packets),
        congestion_events: now.congestion_events.saturating_sub(before.congestion_events),
        ecn_events: since(now.ecn_events, before.ecn_events),
        lost_bytes: since(now.lost_bytes, before.lost_bytes),
        received_datagrams: since(now.received_datagrams, before.received_datagrams),
        received_ce_datagrams: since(now.received_ce_datagrams, before.received_ce_datagrams),
        sent_acks: since(now.sent_acks, before.sent_acks),
        received_acks: since(now.received_acks, before.received_acks),
        acked_bytes: since(now.acked_bytes, before.acked_bytes),
        data_blocked: since(now.data_blocked, before.data_blocked),
        stream_data_blocked: since(now.stream_data_blocked, before.stream_data_blocked),
        waits: now.waits.map(|waits| waits.since(before.waits.unwrap_or_default())),
        socket_drops: since(now.socket_drops, before.socket_drops),
        ..*now
    })
}

/// Where the flow's measured part begins: with the load, or after the warm-up where the flow itself
/// first saw its end. A flow that never did has the conductor's reading of that moment.
pub(super) fn base_of(load: &Load, meter: &Meter, index: usize, flow: &FlowShared) -> Base {
    let counts = meter.base.get(index).copied().unwrap_or_default();
    let of_load = Base { counts, at_ns: meter.measuring_ns, ..Base::default() };
    flow.base().cloned().filter(|_| load.workload.omit_ns > 0).unwrap_or(of_load)
}

/// The part of the flow's own time that lies after the warm-up, since the load was opened.
///
/// A receiver's time begins with its first byte. Where everything came at once that says nothing
/// about a rate: then it begins with the load, and so includes the path's delay. Nothing on the
/// wire marks the end of a flow of datagrams: where the load ends by time, so does the flow's time.
fn measured_time(
    load: &Load,
    meter: &Meter,
    flow: &FlowShared,
    base_ns: u64,
    times: Times,
) -> (Option<u64>, Option<u64>) {
    let Some(opened_ns) = meter.opened_ns().filter(|_| !meter.measured_nothing()) else {
        return (None, None);
    };
    let first_ns = flow.tally.first_ns.value();
    if first_ns == 0 {
        return (None, None);
    }
    let receives = flow.tally.received_bytes.value() > 0;
    let to_ns = match flow.tally.last_ns.value() {
        0 => times.now_ns,
        last_ns if receives && load.is_datagrams() => last_ns.max(times.datagrams_end_ns),
        last_ns => last_ns,
    };
    if to_ns < base_ns {
        // It had its only turns in the warm-up.
        return (None, None);
    }
    let mut from_ns = first_ns.max(base_ns);
    if receives && to_ns.saturating_sub(from_ns) < SHORTEST_RATE_NS {
        from_ns = base_ns;
    }
    (Some(from_ns.saturating_sub(opened_ns)), Some(to_ns.max(from_ns).saturating_sub(opened_ns)))
}

fn traffic(bytes: u64, calls: u64) -> Option<Traffic> {
    (calls > 0).then_some(Traffic { bytes, calls: Some(calls) })
}

/// Datagrams that a socket dropped, from the kernel's count of what it dropped.
///
/// With receive offload the kernel counts a train of datagrams that it would have handed over as
/// one as one. A dropped train is taken to have had as many as those that were received had in the
/// mean; that nothing was dropped is exact.
fn dropped_datagrams(drops: u64, counts: &Counts, offload: Option<bool>) -> u64 {
    if offload != Some(true) || counts.receive_calls == 0 {
        return drops;
    }
    (drops as f64 * counts.datagrams.received as f64 / counts.receive_calls as f64).round() as u64
}

/// Datagrams are counted by the warm-up mark that each of them carries, not by the clock, so that
/// the two ends' counts are of the same datagrams.
///
/// The last datagrams of a flow may be lost: only the peer's own count, warm-up included, tells of them.
fn add_datagrams(
    report: &mut FlowReport,
    (unit_bytes, peer_sent): (u64, Option<u64>),
    drops: Option<u64>,
    ending: &Ending,
) {
    let datagrams = &ending.datagrams;
    let frames = datagrams.media.as_ref().map(|media| media.frames);
    let loss_bursts = datagrams.media.as_ref().and_then(|media| media.loss_bursts);
    if let Some(sent) = datagrams.sent {
        let calls = report.sent.map_or(Some(0), |sent| sent.calls);
        report.sent = Some(Traffic { bytes: datagrams.sent_bytes, calls });
        report.datagrams = Some(DatagramCounts {
            sent: Some(sent),
            refused: Some(datagrams.refused),
            frames,
            ..DatagramCounts::default()
        });
    }
    if let Some(arrivals) = &datagrams.arrivals {
        let seen = arrivals.counts(None, drops);
        let unseen = peer_sent.map_or(0, |sent| sent.saturating_sub(arrivals.next_expected()));
        let expected = seen.received.zip(seen.lost).map(|(come, lost)| come.saturating_add(lost));
        // Where none of the measured ones came, the warm-up's are not told apart.
        let expected = expected.filter(|expected| unseen > 0 && *expected > 0);
        let expected = expected.map(|expected| expected.saturating_add(unseen));
        let counts = DatagramCounts {
            sent: None,
            frames,
            loss_bursts: loss_bursts.map(|(count, _)| count),
            longest_loss_burst: loss_bursts.map(|(_, longest)| longest),
            ..arrivals.counts(expected, drops)
        };
        let calls = report.received.map_or(Some(0), |received| received.calls);
        let bytes = counts.received.unwrap_or(0) * unit_bytes;
        report.received = Some(Traffic { bytes, calls });
        report.jitter_ns = arrivals.jitter_ns();
        report.transit = arrivals.transit().map(Box::new);
        report.datagrams = Some(counts);
    }
}
