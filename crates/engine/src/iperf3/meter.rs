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
use super::load::Load;
use super::report::{datagram_counts, end_extension, flow_report};
use super::{Report, Stream};
use crate::clock::{SECOND_NS, monotonic_ns, utc_ns};
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
    interval_ns: Option<u64>,
    /// When the load began.
    began_ns: u64,
    /// Intervals so far.
    index: u32,
    /// When the omitted time, and then the counted part, began.
    start_ns: u64,
    last_ns: u64,
    next_ns: u64,
    /// Whether the last interval's figures are those of the streams' own beginning.
    fresh: bool,
    kept: Vec<Kept>,
    conductor_before: CpuSeconds,
}

impl Meter {
    /// The load begins.
    pub(super) fn begin(load: &Load, interval: Option<Duration>, now_ns: u64) -> Self {
        let interval_ns = interval
            .map(|interval| u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX))
            .filter(|interval_ns| *interval_ns > 0);
        let mut meter = Self {
            interval_ns,
            began_ns: now_ns,
            index: 0,
            start_ns: now_ns,
            last_ns: now_ns,
            next_ns: u64::MAX,
            fresh: false,
            kept: vec![Kept::default(); load.streams.len()],
            conductor_before: CpuSeconds::default(),
        };
        meter.restart(load, now_ns);
        meter
    }

    fn restart(&mut self, load: &Load, now_ns: u64) {
        self.start_ns = now_ns;
        self.last_ns = now_ns;
        self.next_ns = self.interval_ns.map_or(u64::MAX, |ns| now_ns.saturating_add(ns));
        self.fresh = true;
        self.conductor_before = thread_usage().cpu;
        for (kept, (_, shared)) in self.kept.iter_mut().zip(&load.streams) {
            let retransmits = shared.retransmits();
            *kept = Kept { retransmits, base_retransmits: retransmits, ..Kept::default() };
        }
    }

    /// When [`Meter::tick`] is next of use.
    pub(super) fn next_due(&self) -> u64 {
        self.next_ns
    }

    /// When the omitted time, or else the counted part, began.
    pub(super) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The test ends at this time, or a moment later where its other end ends it.
    pub(super) fn wait_for_end(&mut self, end_ns: u64) {
        if let Some(interval_ns) = self.interval_ns {
            self.next_ns = held(self.next_ns, end_ns, interval_ns);
        }
    }

    /// The interval that is over at this time.
    pub(super) fn tick(&mut self, load: &Load, now_ns: u64) -> Option<Sample> {
        let interval_ns = self.interval_ns.filter(|_| now_ns >= self.next_ns)?;
        while self.next_ns <= now_ns {
            self.next_ns = self.next_ns.saturating_add(interval_ns);
        }
        Some(self.take(load, now_ns))
    }

    /// The omitted time is over; the rest of its last interval, where it is long enough to tell.
    pub(super) fn end_omitted(&mut self, load: &Load, now_ns: u64) -> Option<Sample> {
        let interval = self.rest(load, now_ns, false);
        self.restart(load, now_ns);
        interval
    }

    /// The load is over; the rest of the last interval.
    pub(super) fn end(&mut self, load: &Load, now_ns: u64) -> Option<Sample> {
        self.rest(load, now_ns, true)
    }

    /// What the end cuts off an interval: a tenth of one at least, or anything in which bytes moved.
    /// Where no intervals are asked for, the whole counted part is one.
    fn rest(&mut self, load: &Load, now_ns: u64, last: bool) -> Option<Sample> {
        let Some(interval_ns) = self.interval_ns else {
            return last.then(|| self.take(load, now_ns));
        };
        let length_ns = now_ns.saturating_sub(self.last_ns);
        let sample = self.take(load, now_ns);
        let has_moved =
            [sample.sent, sample.received].iter().flatten().any(|moved| moved.bytes > 0);
        (length_ns >= interval_ns / 10 || (has_moved && length_ns > 0)).then_some(sample)
    }

    fn take(&mut self, load: &Load, now_ns: u64) -> Sample {
        let since_began = |at_ns: u64| at_ns.saturating_sub(self.began_ns);
        let mut sample = Sample {
            index: self.index,
            from_ns: since_began(self.last_ns),
            to_ns: since_began(now_ns),
            utc_ns: utc_ns() - monotonic_ns().saturating_sub(now_ns).cast_signed(),
            warm_up: load.phase() == Phase::WarmUp,
            ..Sample::nothing(load.setup.role)
        };
        let udp = load.setup.parameters.protocol == Protocol::Udp;
        let fresh = std::mem::take(&mut self.fresh);
        for (kept, (stream, shared)) in self.kept.iter_mut().zip(&load.streams) {
            if fresh && !sample.warm_up {
                kept.figures = shared.omitted();
            }
            kept.record_interval(stream, shared, udp, &mut sample);
        }
        self.last_ns = now_ns;
        self.index = self.index.saturating_add(1);
        sample
    }

    /// What came out at this end, as results for the other end and as a report. Ends the threads.
    pub(super) fn totals(&mut self, load: &mut Load) -> (Results, Report) {
        let end_ns = load.ended_ns().max(self.start_ns + 1);
        let elapsed_ns = end_ns.saturating_sub(self.start_ns);
        let mut host = HostFacts::default();
        let (cpu, notes) = self.cpu(load, &mut host.ran_on_cpus);
        let cpu_percent = cpu_percent(cpu, elapsed_ns);
        let udp = load.setup.parameters.protocol == Protocol::Udp;
        let congestion = (!udp).then(|| congestion(load)).flatten();
        let sends = load.streams.iter().any(|(stream, _)| stream.sends);
        let mut results = Results {
            cpu_percent,
            sender_has_retransmits: if sends { i64::from(!udp) } else { -1 },
            congestion_used: congestion.clone(),
            server_output: None,
            streams: Vec::new(),
        };
        let mut flows = Vec::new();
        for (number, kept) in (0..).zip(&self.kept) {
            let Some((stream, shared)) = load.streams.get(number as usize) else { break };
            let length_ns = load.stream_ended_ns(shared).saturating_sub(self.start_ns);
            let mut result = kept.result(stream, shared, udp, length_ns);
            let tells_omitted = !udp && load.setup.parameters.omit_s > 0;
            result.omitted_bytes = tells_omitted.then(|| shared.omitted().bytes);
            results.streams.push(result);
            let from_ns = self.start_ns.saturating_sub(self.began_ns);
            let span = (from_ns, from_ns.saturating_add(length_ns));
            flows.push(kept.report(number, load, &result, span));
        }
        let own = EndReport {
            host,
            flows,
            elapsed_ns,
            cpu: Some(cpu),
            notes,
            extension: Some(end_extension(cpu_percent, congestion)),
            ..EndReport::nothing(load.setup.role)
        };
        (results, Report { own, peer: None, server_output: None })
    }

    /// Processor time of the counted part, and what went wrong with the threads.
    fn cpu(&self, load: &mut Load, ran_on_cpus: &mut Vec<u32>) -> (CpuSeconds, Vec<String>) {
        let mut cpu = thread_cpu_since(self.conductor_before);
        let mut notes = Vec::new();
        for end in load.join() {
            cpu.user_s += end.cpu.user_s;
            cpu.system_s += end.cpu.system_s;
            ran_on_cpus.push(end.on_cpu);
            notes.extend(end.pinning_error);
        }
        (cpu, notes)
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
        load: &Load,
        result: &StreamResult,
        (from_ns, to_ns): (u64, u64),
    ) -> FlowReport {
        let Some((stream, shared)) = load.streams.get(number as usize) else {
            return FlowReport::default();
        };
        let tcp = load.setup.parameters.protocol != Protocol::Udp;
        let (all, omitted) = (shared.figures(), shared.omitted());
        let parameters = &load.setup.parameters;
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

/// When an interval is over that would be so just before the test's end: a tenth of an interval after that end, unless the
/// test has ended by then. The few bytes that move meanwhile are no interval of their own.
fn held(next_ns: u64, end_ns: u64, interval_ns: u64) -> u64 {
    let tenth_ns = interval_ns / 10;
    let is_last = (end_ns.saturating_sub(tenth_ns)..=end_ns).contains(&next_ns);
    if is_last { end_ns.saturating_add(tenth_ns) } else { next_ns }
}

#[test]
fn an_interval_that_is_over_with_the_test_waits_for_the_tests_end() {
    assert_eq!(held(9_000, 10_000, 1_000), 9_000);
    assert_eq!(held(10_000, 10_000, 1_000), 10_100);
    assert_eq!(held(9_900, 10_000, 1_000), 10_100);
    assert_eq!(held(9_899, 10_000, 1_000), 9_899);
    // One that the test outlasts is told at its time.
    assert_eq!(held(10_100, 10_000, 1_000), 10_100);
}

/// What the kernel says of a TCP connection.
fn status(shared: &Shared) -> Option<TcpStatus> {
    tcp_status(shared.flow.socket.as_ref()?.as_fd())
}

fn congestion(load: &Load) -> Option<String> {
    let (_, shared) = load.streams.first()?;
    sockopt::tcp_congestion(shared.flow.socket.as_ref()?.as_fd()).ok()
}
