//! Figures of a load: intervals while it runs, totals when it has ended.

use std::os::fd::AsFd;
use std::time::Duration;

use linerate_measure::sample::CpuSeconds;
use linerate_wire::iperf3::results::CpuPercent;
use linerate_wire::iperf3::{Parameters, Protocol, Results, StreamResult};
use rustix::net::sockopt;

use super::load::Load;
use super::stream::{Figures, Shared};
use super::{
    DatagramFigures, Interval, Report, Stream, StreamInterval, StreamReport, TcpExtremes,
    TcpFigures, Totals,
};
use crate::clock::SECOND_NS;
use crate::phase::Phase;
use crate::socket::{tcp_status, tcp_window, thread_cpu_since, thread_usage};

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
    pub(super) fn tick(&mut self, load: &Load, now_ns: u64) -> Option<Interval> {
        let interval_ns = self.interval_ns.filter(|_| now_ns >= self.next_ns)?;
        while self.next_ns <= now_ns {
            self.next_ns = self.next_ns.saturating_add(interval_ns);
        }
        Some(self.take(load, now_ns, false))
    }

    /// The omitted time is over; the rest of its last interval, where it is long enough to tell.
    pub(super) fn end_omitted(&mut self, load: &Load, now_ns: u64) -> Option<Interval> {
        let interval = self.rest(load, now_ns, false);
        self.restart(load, now_ns);
        interval
    }

    /// The load is over; the rest of the last interval.
    pub(super) fn end(&mut self, load: &Load, now_ns: u64) -> Option<Interval> {
        self.rest(load, now_ns, true)
    }

    /// What the end cuts off an interval: a tenth of one at least, or anything in which bytes moved.
    /// Where no intervals are asked for, the whole counted part is one.
    fn rest(&mut self, load: &Load, now_ns: u64, last: bool) -> Option<Interval> {
        let Some(interval_ns) = self.interval_ns else {
            return last.then(|| self.take(load, now_ns, last));
        };
        let length_ns = now_ns.saturating_sub(self.last_ns);
        let interval = self.take(load, now_ns, last);
        let moved = interval.streams.iter().any(|stream| stream.bytes > 0);
        (length_ns >= interval_ns / 10 || (moved && length_ns > 0)).then_some(interval)
    }

    fn take(&mut self, load: &Load, now_ns: u64, last: bool) -> Interval {
        let omitted = load.phase() == Phase::WarmUp;
        let seconds = |at_ns: u64| at_ns.saturating_sub(self.start_ns) as f64 / SECOND_NS as f64;
        let (start_s, end_s) = (seconds(self.last_ns), seconds(now_ns));
        let udp = load.setup.parameters.protocol == Protocol::Udp;
        let fresh = std::mem::take(&mut self.fresh);
        let mut streams = Vec::with_capacity(load.streams.len());
        for (kept, (stream, shared)) in self.kept.iter_mut().zip(&load.streams) {
            if fresh && !omitted {
                kept.figures = shared.omitted();
            }
            streams.push(kept.interval(stream, shared, udp));
        }
        self.last_ns = now_ns;
        Interval { start_s, end_s, omitted, last, streams }
    }

    /// What came out at this end, as results for the other end and as a report. Ends the threads.
    pub(super) fn totals(&mut self, load: &mut Load) -> (Results, Report) {
        let end_ns = load.ended_ns().max(self.start_ns + 1);
        let cpu = self.cpu_percent(load, end_ns);
        let udp = load.setup.parameters.protocol == Protocol::Udp;
        let congestion = (!udp).then(|| congestion(load)).flatten();
        let sends = load.streams.iter().any(|(stream, _)| stream.sends);
        let mut results = Results {
            cpu_percent: cpu,
            sender_has_retransmits: if sends { i64::from(!udp) } else { -1 },
            congestion_used: congestion.clone(),
            server_output: None,
            streams: Vec::new(),
        };
        let mut streams = Vec::new();
        for (kept, (stream, shared)) in self.kept.iter().zip(&load.streams) {
            let ended_ns = load.stream_ended_ns(shared);
            let seconds = ended_ns.saturating_sub(self.start_ns) as f64 / SECOND_NS as f64;
            let mut result = kept.result(stream, shared, udp, seconds);
            let tells_omitted = !udp && load.setup.parameters.omit_s > 0;
            result.omitted_bytes = tells_omitted.then(|| shared.omitted().bytes);
            results.streams.push(result);
            streams.push(StreamReport {
                id: stream.id,
                socket: stream.socket,
                sends: stream.sends,
                local: local_totals(&result, shared, &load.setup.parameters, seconds),
                remote: None,
                tcp: (stream.sends && !udp).then(|| kept.extremes()),
            });
        }
        let report = Report {
            role: load.setup.role,
            streams,
            cpu,
            remote_cpu: None,
            congestion,
            remote_congestion: None,
            server_output: None,
        };
        (results, report)
    }

    fn cpu_percent(&self, load: &mut Load, end_ns: u64) -> CpuPercent {
        let seconds = end_ns.saturating_sub(self.start_ns) as f64 / SECOND_NS as f64;
        let CpuSeconds { mut user_s, mut system_s } = thread_cpu_since(self.conductor_before);
        for end in load.join() {
            user_s += end.cpu.user_s;
            system_s += end.cpu.system_s;
        }
        let percent = |used_s: f64| 100.0 * used_s / seconds;
        CpuPercent {
            total: percent(user_s + system_s),
            user: percent(user_s),
            system: percent(system_s),
        }
    }
}

impl Kept {
    /// What has happened since the last interval.
    fn interval(&mut self, stream: &Stream, shared: &Shared, udp: bool) -> StreamInterval {
        let now = shared.figures();
        let before = std::mem::replace(&mut self.figures, now);
        let tcp = (!udp).then(|| tcp_figures(shared)).flatten();
        if let Some(tcp) = tcp.filter(|_| stream.sends) {
            self.record_extremes(&tcp);
        }
        let retransmits = (stream.sends && !udp).then(|| {
            let now = shared.retransmits();
            let before = std::mem::replace(&mut self.retransmits, now);
            u64::from(now.saturating_sub(before))
        });
        StreamInterval {
            id: stream.id,
            socket: stream.socket,
            sends: stream.sends,
            bytes: now.bytes.saturating_sub(before.bytes),
            retransmits,
            tcp,
            datagrams: udp.then(|| DatagramFigures {
                packets: now.packets.saturating_sub(before.packets),
                lost: Some(signed(now.lost).saturating_sub(signed(before.lost))),
                out_of_order: now.out_of_order.saturating_sub(before.out_of_order),
                jitter_s: now.jitter_s,
            }),
        }
    }

    fn record_extremes(&mut self, tcp: &TcpFigures) {
        let seen = &mut self.extremes;
        seen.max_snd_cwnd_bytes = seen.max_snd_cwnd_bytes.max(tcp.snd_cwnd_bytes);
        seen.max_snd_wnd_bytes = seen.max_snd_wnd_bytes.max(tcp.snd_wnd_bytes);
        seen.max_rtt_us = seen.max_rtt_us.max(tcp.rtt_us);
        seen.min_rtt_us = match seen.min_rtt_us {
            0 => tcp.rtt_us,
            least => least.min(tcp.rtt_us),
        };
        seen.reorder = tcp.reorder;
        self.rtt_sum_us += u64::from(tcp.rtt_us);
        self.rtt_count += 1;
    }

    fn extremes(&self) -> TcpExtremes {
        let mean = self.rtt_sum_us.checked_div(self.rtt_count).unwrap_or(0);
        TcpExtremes { mean_rtt_us: u32::try_from(mean).unwrap_or(u32::MAX), ..self.extremes }
    }

    fn result(&self, stream: &Stream, shared: &Shared, udp: bool, seconds: f64) -> StreamResult {
        let (all, omitted) = (shared.figures(), shared.omitted());
        let resent = shared.retransmits().saturating_sub(self.base_retransmits);
        StreamResult {
            id: stream.id,
            bytes: all.bytes.saturating_sub(omitted.bytes),
            omitted_bytes: None,
            retransmits: (stream.sends && !udp).then(|| resent.into()),
            jitter_s: all.jitter_s,
            errors: signed(all.lost),
            omitted_errors: Some(signed(omitted.lost)),
            packets: if udp { all.packets } else { 0 },
            omitted_packets: Some(if udp { omitted.packets } else { 0 }),
            start_time_s: Some(0.0),
            end_time_s: Some(seconds),
        }
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

fn local_totals(
    result: &StreamResult,
    shared: &Shared,
    parameters: &Parameters,
    seconds: f64,
) -> Totals {
    let omitted = shared.omitted();
    let late = shared.figures().out_of_order.saturating_sub(omitted.out_of_order);
    let mut totals = Totals::of_results(result, omitted.packets, parameters, seconds);
    if let Some(datagrams) = &mut totals.datagrams {
        datagrams.out_of_order = late;
    }
    totals
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn tcp_figures(shared: &Shared) -> Option<TcpFigures> {
    let socket = shared.flow.socket.as_ref()?;
    let (status, window) = (tcp_status(socket.as_fd())?, tcp_window(socket.as_fd()));
    Some(TcpFigures {
        snd_cwnd_bytes: u64::from(status.cwnd_segments) * u64::from(status.mss_bytes),
        snd_wnd_bytes: window.snd_wnd_bytes.unwrap_or(0).into(),
        rtt_us: status.rtt_us,
        rtt_var_us: status.rtt_var_us,
        pmtu_bytes: status.pmtu_bytes,
        reorder: window.reordering_seen.unwrap_or(0),
    })
}

fn congestion(load: &Load) -> Option<String> {
    let (_, shared) = load.streams.first()?;
    sockopt::tcp_congestion(shared.flow.socket.as_ref()?.as_fd()).ok()
}
