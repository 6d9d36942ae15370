//! What samples and reports tell of a flow, for the rules.

use std::collections::BTreeMap;

use super::LimitEvidence;
use super::acknowledged::acknowledged_ahead;
use super::loss_window::LossyFlow;
use super::rules::{Facts, QuicFacts};
use crate::plan::{Direction, Pacing, Workload};
use crate::report::{EndReport, FlowReport};
use crate::sample::{FlowSample, QuicStatus, Role, Sample, TcpStatus};

/// A rate counts as kept from this share of what was asked.
const KEPT: f64 = 0.9;
/// The same over QUIC of a sender whose packets stood in a queue.
const NEARLY_KEPT: f64 = 0.98;
/// A direction's quarters need so many intervals.
const QUARTERS: usize = 4;

/// The two ends of one direction, and what both counted interval by interval.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub(super) workload: &'a Workload,
    pub(super) sender: &'a EndReport,
    pub(super) receiver: Option<&'a EndReport>,
    pub(super) samples: &'a [Sample],
}

/// A flow in an interval: what the sender saw.
#[derive(Clone, Copy)]
struct Seen<'a> {
    sample: &'a Sample,
    flow: &'a FlowSample,
}

impl<'a> Ends<'a> {
    /// What the busiest thread of an end ran and waited, as a share of its time.
    pub(super) fn demand(report: &EndReport) -> Option<f64> {
        report.disturbance.as_ref()?.busiest_thread?.ratio(report.elapsed_ns)
    }

    /// The samples of an end that have a flow, warm-up too.
    fn seen_by(&self, role: Role, flow: u32) -> impl Iterator<Item = Seen<'a>> + use<'a> {
        let samples = self.samples;
        samples.iter().filter(move |sample| sample.role == role).filter_map(move |sample| {
            let flow = sample.flows.iter().find(|listed| listed.flow == flow)?;
            Some(Seen { sample, flow })
        })
    }

    fn report_of(report: &EndReport, flow: u32) -> Option<&FlowReport> {
        report.flows.iter().find(|listed| listed.flow == flow)
    }

    /// The evidence of both ends that holds for all flows alike.
    pub(super) fn demands(&self) -> LimitEvidence {
        LimitEvidence {
            demand_sender: Self::demand(self.sender),
            demand_receiver: self.receiver.and_then(Self::demand),
            ..LimitEvidence::default()
        }
    }

    /// The share of the busiest thread's demand that it waited for a processor.
    fn wait_ratio(report: &EndReport) -> Option<f64> {
        let busiest = report.disturbance.as_ref()?.busiest_thread?;
        let ratio = busiest.wait_s / busiest.all_s();
        ratio.is_finite().then(|| ratio.clamp(0.0, 1.0))
    }

    /// What holds for all flows alike.
    pub(super) fn facts(&self) -> Facts {
        Facts {
            evidence: self.demands(),
            sender_wait_ratio: Self::wait_ratio(self.sender),
            receiver_wait_ratio: self.receiver.and_then(Self::wait_ratio),
            ..Facts::default()
        }
    }

    /// The packets that the sender's device queue dropped, and those that it dropped or held back, as shares of the
    /// segments or datagrams of this length that all flows sent.
    pub(super) fn own_queue_ratios(&self, packet_bytes: u32) -> (Option<f64>, Option<f64>) {
        let queue = self.sender.disturbance.as_ref().and_then(|disturbance| disturbance.own_queue);
        let Some(queue) = queue else { return (None, None) };
        let listed = self.sender.flows.iter().filter_map(|flow| flow.sent);
        let way = if self.sender.role == Role::Client { Direction::Up } else { Direction::Down };
        let unlisted = self.sender.unlisted.as_ref().and_then(|unlisted| unlisted.of(way).sent);
        let bytes = listed.chain(unlisted).fold(0_u64, |sum, sent| sum.saturating_add(sent.bytes));
        let sent = packets(bytes, packet_bytes);
        let share = |count: u64| (sent >= 1.0).then(|| count as f64 / sent);
        (share(queue.dropped), share(queue.dropped.saturating_add(queue.overlimits)))
    }

    /// What the rules look at of a flow over TCP or TLS; `None` where the kernel told nothing.
    pub(super) fn tcp(&self, flow: u32) -> Option<Facts> {
        let own = Self::report_of(self.sender, flow)?;
        let seen: Vec<Seen<'_>> = self.seen_by(self.sender.role, flow).collect();
        let last = own.tcp.or_else(|| seen.last()?.flow.tcp)?;
        // Counters run from the connection's start, which lies in the warm-up where there is one.
        let before = seen.iter().rev().find(|seen| seen.sample.warm_up);
        let before = before.and_then(|seen| seen.flow.tcp).unwrap_or_default();
        let time_ns = own.to_ns?.saturating_sub(own.from_ns?);
        let mut facts = self.facts();
        add_times(&mut facts.evidence, &before, &last, time_ns);
        // A report counts these anew from the end of the warm-up.
        let again = match own.tcp {
            Some(tcp) => tcp.retransmitted_segments,
            None => last.retransmitted_segments.saturating_sub(before.retransmitted_segments),
        };
        let bytes = own.sent.map_or(0, |sent| sent.bytes);
        facts.evidence.lost_ratio = lost_ratio(again, bytes, last.mss_bytes);
        let congestion = own.socket.as_ref().and_then(|socket| socket.congestion.as_deref());
        let measured = || seen.iter().filter(|seen| !seen.sample.warm_up);
        let rtts = measured().filter_map(|seen| Some(seen.flow.tcp?.rtt_us)).collect();
        facts.evidence.rtt_us = median(rtts).or(Some(last.rtt_us));
        let variations = measured().filter_map(|seen| Some(seen.flow.tcp?.rtt_var_us)).collect();
        facts.rtt_var_us = median(variations).or(Some(last.rtt_var_us));
        facts.evidence.min_rtt_us = last.min_rtt_us;
        facts.round_trips = round_trips(time_ns, facts.evidence.rtt_us);
        let sent_packets = packets(bytes, last.mss_bytes);
        facts.evidence.loss_window_ratio = LossyFlow {
            congestion,
            losses: u64::from(again),
            sent_packets,
            rtt_us: facts.evidence.rtt_us,
            window_packets: facts.round_trips.map(|trips| sent_packets / trips),
        }
        .window_ratio();
        facts.evidence.notsent_bytes = own.queues.and_then(|queues| queues.notsent_bytes);
        if let Some(theirs) = self.receiver.and_then(|report| Self::report_of(report, flow)) {
            facts.evidence.receive_queue_bytes =
                theirs.queues.and_then(|queues| queues.receive_queue_bytes);
            let buffer = theirs.socket.as_ref().and_then(|socket| socket.receive_buffer_bytes);
            facts.receive_buffer_bytes = buffer.map(u64::from);
        }
        (_, facts.local_queue_ratio) = self.own_queue_ratios(last.mss_bytes);
        if let Some(ahead) = acknowledged_ahead(self.samples, self.sender.role, flow) {
            facts.is_acknowledged_ahead = ahead.is_far;
            let bytes = Some(ahead.bytes).filter(|_| ahead.is_far);
            facts.evidence.acknowledged_ahead_bytes = bytes;
        }
        facts.trend = trend(measured());
        let asked = self.workload.rate_per_flow_bps();
        let sent = sent_bps(own, time_ns);
        // What came late at the other end was not sent at the rate either.
        let got = self.received_bps(flow).map_or(sent, |received| received.min(sent));
        facts.keeps_rate = asked.is_some_and(|asked| got >= KEPT * asked as f64);
        facts.misses_rate = asked.is_some() && !facts.keeps_rate;
        Some(facts)
    }

    /// The rate at which a flow's bytes came to the receiver.
    fn received_bps(&self, flow: u32) -> Option<f64> {
        let theirs = Self::report_of(self.receiver?, flow)?;
        let time_ns = theirs.to_ns?.saturating_sub(theirs.from_ns?);
        (time_ns > 0).then_some(theirs.received?.bytes as f64 * 8e9 / time_ns as f64)
    }

    /// The same of each measured interval of the flow, as far as an interval tells, with the number of the interval.
    pub(super) fn tcp_intervals(&self, flow: u32, whole: &Facts) -> Vec<(u32, Facts)> {
        let other = if self.sender.role == Role::Client { Role::Server } else { Role::Client };
        let mut theirs: BTreeMap<u32, Seen<'_>> = BTreeMap::new();
        for seen in self.seen_by(other, flow) {
            theirs.entry(seen.sample.index).or_insert(seen);
        }
        let mut before = TcpStatus::default();
        let mut intervals = Vec::new();
        for seen in self.seen_by(self.sender.role, flow) {
            let Some(now) = seen.flow.tcp else { continue };
            let since = std::mem::replace(&mut before, now);
            if seen.sample.warm_up {
                continue;
            }
            let mut facts = Facts { trend: None, rtt_var_us: Some(now.rtt_var_us), ..*whole };
            // Frequent losses show in the intervals that have them.
            let rare = whole.evidence.loss_window_ratio.filter(|_| !whole.loses());
            facts.evidence.loss_window_ratio = rare;
            let time_ns = seen.sample.to_ns.saturating_sub(seen.sample.from_ns);
            add_times(&mut facts.evidence, &since, &now, time_ns);
            let again = now.retransmitted_segments.saturating_sub(since.retransmitted_segments);
            let bytes = seen.flow.sent_bytes.unwrap_or(0);
            facts.evidence.lost_ratio = lost_ratio(again, bytes, now.mss_bytes);
            facts.evidence.rtt_us = Some(now.rtt_us);
            facts.evidence.notsent_bytes = now.notsent_bytes.map(u64::from);
            let same = theirs.get(&seen.sample.index);
            let unread = same.and_then(|theirs| theirs.flow.tcp?.receive_queue_bytes);
            facts.evidence.receive_queue_bytes = unread.map(u64::from);
            intervals.push((seen.sample.index, facts));
        }
        intervals
    }

    /// What the rules look at of a flow over QUIC.
    pub(super) fn quic(&self, flow: u32) -> Option<(Facts, QuicFacts)> {
        let own = Self::report_of(self.sender, flow)?;
        let last = own.quic?;
        let seen: Vec<_> = self.seen_by(self.sender.role, flow).collect();
        let measured = || seen.iter().filter(|seen| !seen.sample.warm_up);
        let states = || measured().filter_map(|seen| seen.flow.quic.as_deref());
        let mut facts = self.facts();
        facts.evidence.rtt_us =
            median(states().map(|state| state.rtt_us).collect()).or(Some(last.rtt_us));
        facts.evidence.min_rtt_us = Some(last.min_rtt_us);
        facts.evidence.lost_ratio =
            Some(last.lost_packets as f64 / last.sent_packets.max(1) as f64);
        let shares: Vec<u32> = states().filter_map(quic_window_millionths).collect();
        let in_flight = median(shares).or_else(|| quic_window_millionths(&last));
        let asked = self.workload.rate_per_flow_bps();
        let time_ns = own.to_ns?.saturating_sub(own.from_ns?);
        let got = sent_bps(own, time_ns);
        // A path that is slower by little lets a sender have nearly the rate.
        let kept = if facts.has_queue() { NEARLY_KEPT } else { KEPT };
        facts.keeps_rate = asked.is_some_and(|asked| got >= kept * asked as f64);
        facts.misses_rate = asked.is_some() && !facts.keeps_rate;
        facts.round_trips = round_trips(time_ns, facts.evidence.rtt_us);
        facts.trend = trend(measured());
        let in_flight_bytes =
            states().filter_map(|state| u32::try_from(state.in_flight_bytes?).ok());
        let window_bytes =
            median(in_flight_bytes.collect()).map(u64::from).or(last.in_flight_bytes);
        facts.evidence.loss_window_ratio = LossyFlow {
            congestion: self.workload.socket.congestion.as_deref().or(Some("cubic")),
            // Marks of explicit congestion notification are no losses.
            losses: last.congestion_events.saturating_sub(last.ecn_events.unwrap_or(0)),
            sent_packets: last.sent_packets as f64,
            rtt_us: facts.evidence.rtt_us,
            window_packets: window_bytes.map(|bytes| packets(bytes, last.mtu_bytes)),
        }
        .window_ratio();
        let mut told = QuicFacts {
            in_flight_ratio: in_flight.map(|millionths| f64::from(millionths) / 1e6),
            ..QuicFacts::default()
        };
        if let Some(waits) = last.waits.filter(|waits| waits.sum_ns() > 0) {
            let share = |time_ns: u64| Some(time_ns as f64 / waits.sum_ns() as f64);
            facts.evidence.flow_control_ratio = waits.flow_control_ns.and_then(share);
            told.window_ratio = share(waits.congestion_ns.saturating_add(waits.pacing_ns));
            // Where flow control isn't known its time is part of the application's.
            told.application_ratio = waits.flow_control_ns.and(share(waits.application_ns));
            let flow_control_ns = waits.flow_control_ns.filter(|time_ns| *time_ns > 0);
            let delay_ns = self.receiver.and_then(EndReport::wakeup_delay_ns);
            told.wakeup_delay_ratio =
                delay_ns.zip(flow_control_ns).map(|(delay, held)| delay as f64 / held as f64);
            let is_asked = matches!(self.workload.quic.pacing, Pacing::Rate { .. });
            told.asked_pacing_ratio = share(waits.pacing_ns).filter(|_| is_asked);
            let has_several = self.workload.flows > 1;
            told.nothing_to_send_ratio = share(waits.application_ns).filter(|_| has_several);
            told.blocked_per_round_trip = blocked_per_round_trip(&last, &facts);
        }
        let theirs = self.receiver.and_then(|report| Self::report_of(report, flow));
        if let Some(theirs) = theirs {
            let drops = theirs.quic.and_then(|state| state.socket_drops);
            told.drops_trains = theirs.socket.as_ref().and_then(|socket| socket.gro) == Some(true);
            // Connections that share a socket share its count, which then tells of none of them.
            let own_drops = drops.filter(|_| self.workload.quic_connections() == 1);
            told.socket_drop_ratio =
                own_drops.map(|drops| drops as f64 / last.lost_packets.max(1) as f64);
            facts.evidence.socket_drops = drops;
            let buffer = theirs.socket.as_ref().and_then(|socket| socket.receive_buffer_bytes);
            facts.receive_buffer_bytes = buffer.map(u64::from);
        }
        Some((facts, told))
    }
}

/// How long the sender was busy, and what of that was held up.
fn add_times(evidence: &mut LimitEvidence, before: &TcpStatus, now: &TcpStatus, time_ns: u64) {
    let since = |now: Option<u64>, before: Option<u64>| {
        now.map(|now| now.saturating_sub(before.unwrap_or(0)) as f64)
    };
    let busy_us = since(now.busy_us, before.busy_us);
    let share = |part_us: Option<f64>| {
        let busy_us = busy_us?.max(1.0);
        part_us.map(|part_us| (part_us / busy_us).min(1.0))
    };
    evidence.busy_ratio =
        busy_us.map(|busy_us| (busy_us * 1000.0 / time_ns.max(1) as f64).min(1.0));
    evidence.rwnd_limited_ratio = share(since(now.rwnd_limited_us, before.rwnd_limited_us));
    evidence.sndbuf_limited_ratio = share(since(now.sndbuf_limited_us, before.sndbuf_limited_us));
}

/// How many full packets, or segments, these bytes make.
fn packets(bytes: u64, packet_bytes: u32) -> f64 {
    bytes as f64 / f64::from(packet_bytes.max(1))
}

/// The rate at which a flow sent in this time.
fn sent_bps(flow: &FlowReport, time_ns: u64) -> f64 {
    flow.sent.map_or(0, |sent| sent.bytes) as f64 * 8e9 / time_ns.max(1) as f64
}

fn lost_ratio(again: u32, bytes: u64, mss_bytes: u32) -> Option<f64> {
    let segments = packets(bytes, mss_bytes);
    (segments >= 1.0).then(|| f64::from(again) / segments)
}

fn round_trips(time_ns: u64, rtt_us: Option<u32>) -> Option<f64> {
    let rtt_us = rtt_us.filter(|us| *us > 0)?;
    Some(time_ns as f64 / (f64::from(rtt_us) * 1000.0))
}

/// How often in a round trip the peer held a stream by its own limit: which of several it holds isn't told.
fn blocked_per_round_trip(status: &QuicStatus, facts: &Facts) -> Option<f64> {
    Some(status.stream_data_blocked? as f64 / facts.round_trips?.max(1.0))
}

/// What was sent in the last quarter of the measured intervals against the second.
fn trend<'a>(measured: impl Iterator<Item = &'a Seen<'a>>) -> Option<f64> {
    let intervals: Vec<u64> = measured.map(|seen| seen.flow.sent_bytes.unwrap_or(0)).collect();
    let quarter = intervals.len() / QUARTERS;
    if quarter == 0 {
        return None;
    }
    let sum = |part: &[u64]| part.iter().map(|bytes| *bytes as f64).sum::<f64>();
    let second = sum(&intervals[quarter..2 * quarter]);
    (second > 0.0).then(|| sum(&intervals[intervals.len() - quarter..]) / second)
}

/// The part of a QUIC connection's congestion window that was in flight.
pub(crate) fn quic_window_millionths(state: &QuicStatus) -> Option<u32> {
    let bytes = state.in_flight_bytes? as f64;
    Some((bytes / state.cwnd_bytes.max(1) as f64 * 1e6) as u32)
}

/// The same of greater numbers.
pub(super) fn median_u64(mut values: Vec<u64>) -> Option<u64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}

pub(crate) fn median(mut values: Vec<u32>) -> Option<u32> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}
