//! Figures of a load: intervals while it runs, totals when it has ended.

use std::os::fd::AsFd;
use std::time::Duration;

use linerate_measure::dialect::iperf3::{FlowInterval, FlowTotals, TcpExtremes};
use linerate_measure::dialect::{FlowExtension, FlowSampleExtension};
use linerate_measure::report::HostFacts;
use linerate_measure::sample::{CpuSeconds, DatagramCounts, FlowSample, TcpStatus, Traffic};
use linerate_measure::{EndReport, FlowReport, Sample};
use linerate_wire::iperf3::results::CpuPercent;
use linerate_wire::iperf3::{Protocol, Results, StreamResult};
use rustix::net::sockopt;

use super::figures::{Figures, Shared};
use super::report::{datagram_counts, end_extension, flow_report};
use super::streams::Streams;
use super::{Report, Stream};
use crate::clock::SECOND_NS;
use crate::load::{Interval, Intervals, ThreadsEnd};
use crate::phase::Phase;
use crate::socket::{Addresses, granted, tcp_status, thread_cpu_since, thread_usage};

/// What is kept of each stream from one interval to the next.
#[derive(Clone, Copy, Default)]
struct Kept {
    figures: Figures,
    retransmits: u32,
    /// Retransmits when the counted part began.
    base_retransmits: u32,
    extremes: TcpExtremes,
    rtt_sum_us: u64,
    rtt_count: u64,
}

/// Takes the figures of a load.
pub(super) struct Meter {
    intervals: Intervals,
    /// When the omitted time, and then the counted part, began.
    start_ns: u64,
    /// Whether the last interval's figures are those of the streams' own beginning.
    fresh: bool,
    kept: Vec<Kept>,
    conductor_before: CpuSeconds,
}

impl Meter {
    /// The load begins.
    pub(super) fn begin(streams: &Streams, interval: Option<Duration>, now_ns: u64) -> Self {
        let interval_ns = interval
            .map(|interval| u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX))
            .filter(|interval_ns| *interval_ns > 0);
        let mut meter = Self {
            intervals: Intervals::begin(interval_ns.unwrap_or(u64::MAX), now_ns).making_up(),
            start_ns: now_ns,
            fresh: false,
            kept: vec![Kept::default(); streams.each.len()],
            conductor_before: CpuSeconds::default(),
        };
        meter.restart(streams, now_ns);
        meter
    }

    fn restart(&mut self, streams: &Streams, now_ns: u64) {
        self.start_ns = now_ns;
        self.intervals.restart(now_ns);
        self.fresh = true;
        self.conductor_before = thread_usage().cpu;
        for (kept, (_, shared)) in self.kept.iter_mut().zip(&streams.each) {
            let retransmits = shared.retransmits();
            *kept = Kept { retransmits, base_retransmits: retransmits, ..Kept::default() };
        }
    }

    /// When [`Meter::tick`] is next of use.
    pub(super) fn next_due(&self) -> u64 {
        self.intervals.next_ns()
    }

    /// When the omitted time, or else the counted part, began.
    pub(super) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The test ends at this time, or a moment later where its other end ends it.
    pub(super) fn wait_for_end(&mut self, end_ns: u64) {
        self.intervals.wait_for_end(end_ns);
    }

    /// The interval that is over at this time.
    pub(super) fn tick(&mut self, streams: &Streams, now_ns: u64) -> Option<Sample> {
        (now_ns >= self.intervals.next_ns()).then(|| self.take(streams, now_ns))
    }

    /// The omitted time is over; the rest of its last interval, where it is long enough to tell.
    pub(super) fn end_omitted(&mut self, streams: &Streams, now_ns: u64) -> Option<Sample> {
        let interval = self.rest(streams, now_ns, false);
        self.restart(streams, now_ns);
        interval
    }

    /// The load is over; the rest of the last interval.
    pub(super) fn end(&mut self, streams: &Streams, now_ns: u64) -> Option<Sample> {
        self.rest(streams, now_ns, true)
    }

    /// What the end cuts off an interval: a tenth of one at least, or anything in which bytes moved.
    /// Where no intervals are asked for, the whole counted part is one.
    fn rest(&mut self, streams: &Streams, now_ns: u64, last: bool) -> Option<Sample> {
        let Some(interval_ns) = self.intervals.length_ns() else {
            return last.then(|| self.take(streams, now_ns));
        };
        let length_ns = self.intervals.elapsed_ns(now_ns);
        let sample = self.take(streams, now_ns);
        let has_moved =
            [sample.sent, sample.received].iter().flatten().any(|moved| moved.bytes > 0);
        (length_ns >= interval_ns / 10 || (has_moved && length_ns > 0)).then_some(sample)
    }

    fn take(&mut self, streams: &Streams, now_ns: u64) -> Sample {
        let Interval { index, from_ns, to_ns, utc_ns } = self.intervals.cut(now_ns);
        let mut sample = Sample {
            index,
            from_ns,
            to_ns,
            utc_ns,
            warm_up: streams.load.phase() == Phase::WarmUp,
            ..Sample::nothing(streams.setup.role)
        };
        let udp = streams.setup.parameters.protocol == Protocol::Udp;
        let fresh = std::mem::take(&mut self.fresh);
        for (kept, (stream, shared)) in self.kept.iter_mut().zip(&streams.each) {
            if fresh && !sample.warm_up {
                kept.figures = shared.omitted();
            }
            kept.record_interval(stream, shared, udp, &mut sample);
        }
        sample
    }

    /// What came out at this end, as results for the other end and as a report. Ends the threads.
    pub(super) fn totals(&mut self, streams: &mut Streams) -> (Results, Report) {
        let end_ns = streams.ended_ns().max(self.start_ns + 1);
        let elapsed_ns = end_ns.saturating_sub(self.start_ns);
        let conductor = thread_cpu_since(self.conductor_before);
        let ThreadsEnd { mut cpu, waiting, machine_cpu, ran_on_cpus, notes, disturbance } =
            streams.load.end_threads();
        cpu.user_s += conductor.user_s;
        cpu.system_s += conductor.system_s;
        let host = HostFacts { ran_on_cpus, ..HostFacts::default() };
        let cpu_percent = cpu_percent(cpu, elapsed_ns);
        let udp = streams.setup.parameters.protocol == Protocol::Udp;
        let congestion = (!udp).then(|| congestion(streams)).flatten();
        let sends = streams.each.iter().any(|(stream, _)| stream.sends);
        let mut results = Results {
            cpu_percent,
            sender_has_retransmits: if sends { i64::from(!udp) } else { -1 },
            congestion_used: congestion.clone(),
            server_output: None,
            streams: Vec::new(),
        };
        let mut flows = Vec::new();
        for (number, kept) in (0..).zip(&self.kept) {
            let Some((stream, shared)) = streams.each.get(number as usize) else { break };
            let length_ns = streams.stream_ended_ns(shared).saturating_sub(self.start_ns);
            let mut result = kept.result(stream, shared, udp, length_ns);
            let tells_omitted = !udp && streams.setup.parameters.omit_s > 0;
            result.omitted_bytes = tells_omitted.then(|| shared.omitted().bytes);
            results.streams.push(result);
            let from_ns = self.start_ns.saturating_sub(self.intervals.began_ns());
            let span = (from_ns, from_ns.saturating_add(length_ns));
            flows.push(kept.report(number, streams, &result, span));
        }
        let own = EndReport {
            host,
            flows,
            elapsed_ns,
            cpu: Some(cpu),
            waiting: Some(waiting),
            disturbance,
            machine_cpu,
            notes,
            extension: Some(end_extension(cpu_percent, congestion)),
            ..EndReport::nothing(streams.setup.role)
        };
        (results, Report { own, peer: None, server_output: None })
    }
}

fn cpu_percent(cpu: CpuSeconds, elapsed_ns: u64) -> CpuPercent {
    let seconds = elapsed_ns as f64 / SECOND_NS as f64;
    let percent = |used_s: f64| 100.0 * used_s / seconds;
    CpuPercent {
        total: percent(cpu.user_s + cpu.system_s),
        user: percent(cpu.user_s),
        system: percent(cpu.system_s),
    }
}

impl Kept {
    /// Adds what has happened on a stream since the last interval.
    fn record_interval(
        &mut self,
        stream: &Stream,
        shared: &Shared,
        udp: bool,
        sample: &mut Sample,
    ) {
        let now = shared.figures();
        let since = now.since(&std::mem::replace(&mut self.figures, now));
        let traffic = Traffic { bytes: since.bytes, calls: Some(since.calls) };
        let sum = if stream.sends { &mut sample.sent } else { &mut sample.received };
        *sum = Some(sum.map_or(traffic, |sum| sum.plus(traffic)));
        let mut flow = FlowSample {
            flow: u32::try_from(sample.flows.len()).unwrap_or(u32::MAX),
            sent_bytes: stream.sends.then_some(since.bytes),
            received_bytes: (!stream.sends).then_some(since.bytes),
            ..FlowSample::default()
        };
        let mut own = FlowInterval::default();
        if udp {
            let lost = (!stream.sends).then_some(since.lost);
            let reordered = (!stream.sends).then_some(since.out_of_order);
            let counts = datagram_counts(stream.sends, since.packets, lost);
            let counts = DatagramCounts { reordered, ..counts };
            own = FlowInterval { packets: Some(since.packets), lost, ..own };
            flow.datagrams = Some(Box::new(counts));
            flow.jitter_ns = (!stream.sends).then(|| shared.jitter_ns());
            sample.datagrams = Some(sample.datagrams.map_or(counts, |sum| sum.plus(counts)));
        } else {
            flow.tcp = status(shared);
            if let Some(tcp) = flow.tcp.filter(|_| stream.sends) {
                self.record_extremes(&tcp);
            }
            own.retransmits = stream.sends.then(|| {
                let now = shared.retransmits();
                let before = std::mem::replace(&mut self.retransmits, now);
                u64::from(now.saturating_sub(before))
            });
        }
        let has_own = own != FlowInterval::default();
        flow.extension = has_own.then_some(FlowSampleExtension::Iperf3(own));
        sample.flows.push(flow);
    }

    fn record_extremes(&mut self, tcp: &TcpStatus) {
        let seen = &mut self.extremes;
        seen.max_snd_cwnd_bytes = seen.max_snd_cwnd_bytes.max(tcp.cwnd_bytes());
        seen.max_snd_wnd_bytes = seen.max_snd_wnd_bytes.max(tcp.snd_wnd_bytes.unwrap_or(0).into());
        seen.max_rtt_us = seen.max_rtt_us.max(tcp.rtt_us);
        seen.min_rtt_us = match seen.min_rtt_us {
            0 => tcp.rtt_us,
            least => least.min(tcp.rtt_us),
        };
        seen.reorder = tcp.reordering_seen.unwrap_or(0);
        self.rtt_sum_us += u64::from(tcp.rtt_us);
        self.rtt_count += 1;
    }

    fn extremes(&self) -> TcpExtremes {
        let mean = self.rtt_sum_us.checked_div(self.rtt_count).unwrap_or(0);
        TcpExtremes { mean_rtt_us: u32::try_from(mean).unwrap_or(u32::MAX), ..self.extremes }
    }

    fn result(&self, stream: &Stream, shared: &Shared, udp: bool, length_ns: u64) -> StreamResult {
        let (all, omitted) = (shared.figures(), shared.omitted());
        let resent = shared.retransmits().saturating_sub(self.base_retransmits);
        StreamResult {
            id: stream.id,
            bytes: all.bytes.saturating_sub(omitted.bytes),
            omitted_bytes: None,
            retransmits: (stream.sends && !udp).then(|| resent.into()),
            jitter_s: shared.jitter_ns() / 1e9,
            errors: all.lost,
            omitted_errors: Some(omitted.lost),
            packets: if udp { all.packets } else { 0 },
            omitted_packets: Some(if udp { omitted.packets } else { 0 }),
            start_time_s: Some(0.0),
            end_time_s: Some(length_ns as f64 / SECOND_NS as f64),
        }
    }

    /// The report of this end's stream, which was counted from a time since the load's beginning to another.
    fn report(
        &self,
        number: u32,
        streams: &Streams,
        result: &StreamResult,
        (from_ns, to_ns): (u64, u64),
    ) -> FlowReport {
        let Some((stream, shared)) = streams.each.get(number as usize) else {
            return FlowReport::default();
        };
        let tcp = streams.setup.parameters.protocol != Protocol::Udp;
        let (all, omitted) = (shared.figures(), shared.omitted());
        let parameters = &streams.setup.parameters;
        let mut report = flow_report(number, stream.sends, result, omitted.packets, parameters);
        (report.from_ns, report.to_ns) = (Some(from_ns), Some(to_ns));
        for traffic in [&mut report.sent, &mut report.received].into_iter().flatten() {
            traffic.calls = Some(all.calls.saturating_sub(omitted.calls));
        }
        if let Some(counts) = report.datagrams.as_mut().filter(|_| !stream.sends) {
            counts.reordered = Some(all.out_of_order.saturating_sub(omitted.out_of_order));
        }
        if tcp && stream.sends {
            let totals = FlowTotals { extremes: Some(self.extremes()), ..FlowTotals::default() };
            report.extension = Some(FlowExtension::Iperf3(totals));
        }
        report.tcp = if tcp { status(shared) } else { None };
        let socket = shared.flow.socket.as_ref();
        report.socket = socket.map(|socket| granted(socket, Addresses::of(socket), tcp));
        report
    }
}

/// What the kernel says of a TCP connection.
fn status(shared: &Shared) -> Option<TcpStatus> {
    tcp_status(shared.flow.socket.as_ref()?.as_fd())
}

fn congestion(streams: &Streams) -> Option<String> {
    let (_, shared) = streams.each.first()?;
    sockopt::tcp_congestion(shared.flow.socket.as_ref()?.as_fd()).ok()
}
