//! Results that never change.

use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_engine::netperf::{Outcome, TestKind, TestTransport};
use linerate_measure::dialect::netperf::{BufferSizes, CpuUse, EndTotals, FlowTotals};
use linerate_measure::dialect::{EndExtension, FlowExtension};
use linerate_measure::histogram::Histogram;
use linerate_measure::plan::Family;
use linerate_measure::report::{FlowReport, SocketFacts};
use linerate_measure::sample::Traffic;
use linerate_measure::{EndReport, Role};
use linerate_personality::netperf::command_line::Said;

use super::super::banner::{Ends, render_banner};
use super::super::figures::{Figures, Iterations};
use super::super::planning::{Request, Work};
use super::super::reading::{Read, read};
use super::super::table::render_result;

pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The test that a command line asks for.
pub(super) fn request(line: &str) -> Request {
    match read("netperf", &words(line)) {
        Read::Work(_, Work::Test(request), _) => {
            Request { command_line: format!("netperf {line}"), ..*request }
        }
        other => panic!("{line}: {other:?}"),
    }
}

/// What a command line says instead of testing.
pub(super) fn said(line: &str) -> (String, String, u8) {
    match read("netperf", &words(line)) {
        Read::Said(Said { stdout, stderr, exit_code }) => (stdout, stderr, exit_code),
        Read::Work(..) => panic!("{line} is something to do"),
    }
}

/// All that is printed for a command line whose test always has the same result.
pub(super) fn printed(line: &str) -> String {
    let request = request(line);
    let v6 = request.names.family == Some(Family::Ipv6);
    let ends = if v6 {
        Ends { local: Ipv6Addr::UNSPECIFIED.into(), remote: Ipv6Addr::LOCALHOST.into() }
    } else {
        Ends { local: Ipv4Addr::UNSPECIFIED.into(), remote: Ipv4Addr::LOCALHOST.into() }
    };
    let banner = if request.shown.headers { render_banner(&request, ends) } else { String::new() };
    let uuid = "00000000-0000-4000-8000-000000000000";
    banner + &render_result(&request, &figures(&request, &[1.0]), uuid)
}

/// The figures of iterations that took so long.
pub(super) fn figures(request: &Request, elapsed_s: &[f64]) -> Figures {
    let mut iterations = Iterations::new(request.subject());
    for seconds in elapsed_s {
        iterations.record(outcome(request, *seconds));
    }
    iterations.figures(&request.schedule).unwrap()
}

pub(super) fn outcome(request: &Request, elapsed_s: f64) -> Outcome {
    let plan = &request.plan;
    let (mut local, mut remote) = match plan.kind {
        TestKind::Receive => (receiver(), sender()),
        TestKind::Send | TestKind::SendFile => (sender(), receiver()),
        _ => (exchanger(), exchanger()),
    };
    if plan.transport == TestTransport::Udp {
        over_udp(&mut local, &mut remote);
    }
    if plan.local.cpu {
        local.totals.cpu = Some(cpu());
    }
    if plan.remote.cpu {
        remote.totals.cpu = Some(cpu());
    }
    let mut latency = Histogram::new();
    if plan.kind.has_transactions() || plan.times_calls {
        [12, 14, 14, 19, 59].iter().for_each(|us| latency.record_ns(us * 1000));
    }
    let mss_bytes = (plan.transport == TestTransport::Tcp).then_some(65_483);
    if let Some(socket) = &mut local.flow.socket {
        socket.mss_bytes = mss_bytes;
    }
    let latency_hdr = (!latency.is_empty()).then(|| latency.to_base64());
    let is_bulk = !plan.kind.has_transactions();
    local.totals.source = Some("127.0.0.1:40000".to_owned());
    local.totals.destination = Some("127.0.0.1:40001".to_owned());
    local.totals.call_times_hdr = latency_hdr.clone().filter(|_| is_bulk);
    let elapsed_ns = (elapsed_s * 1e9) as u64;
    let latency_hdr = latency_hdr.filter(|_| !is_bulk);
    Outcome {
        client: EndReport { elapsed_ns, latency_hdr, ..local.report(Role::Client) },
        server: EndReport { elapsed_ns, ..remote.report(Role::Server) },
        server_told: true,
        interrupted: false,
        tcp: None,
    }
}

/// An end's figures.
#[derive(Default)]
struct Parts {
    flow: FlowReport,
    settings: FlowTotals,
    totals: EndTotals,
}

impl Parts {
    fn report(self, role: Role) -> EndReport {
        let extension = Some(FlowExtension::Netperf(self.settings));
        let flow = FlowReport { extension, ..self.flow };
        let extension = Some(EndExtension::Netperf(Box::new(self.totals)));
        EndReport { flows: vec![flow], extension, ..EndReport::nothing(role) }
    }
}

fn traffic(bytes: u64, calls: u64) -> Option<Traffic> {
    Some(Traffic { bytes, calls: Some(calls) })
}

fn sizes(at_start: u32, at_end: u32) -> BufferSizes {
    BufferSizes { asked: None, at_start: Some(at_start), at_end: Some(at_end) }
}

fn buffers(send_bytes: Option<u32>, receive_bytes: Option<u32>) -> Parts {
    let congestion = Some("cubic".to_owned());
    let flow = FlowReport {
        socket: Some(SocketFacts { congestion, ..SocketFacts::default() }),
        retransmitted_segments: Some(0),
        ..FlowReport::default()
    };
    let settings = FlowTotals {
        send_bytes,
        receive_bytes,
        send_width: Some(2),
        receive_width: Some(2),
        send_buffer: sizes(16_384, 4_194_304),
        receive_buffer: sizes(131_072, 1_693_259),
        ..FlowTotals::default()
    };
    Parts { flow, settings, totals: EndTotals::default() }
}

fn sender() -> Parts {
    let mut parts = buffers(Some(16_384), None);
    parts.flow.sent = traffic(5_013_504, 306);
    parts
}

fn receiver() -> Parts {
    let mut parts = buffers(None, Some(131_072));
    parts.flow.received = traffic(5_013_504, 40);
    parts
}

fn exchanger() -> Parts {
    let mut parts = buffers(Some(100), Some(100));
    parts.flow.sent = traffic(500_000, 5000);
    parts.flow.received = traffic(500_000, 5000);
    parts.flow.transactions = Some(5000);
    parts
}

fn over_udp(local: &mut Parts, remote: &mut Parts) {
    for end in [local, remote] {
        (end.settings.send_buffer, end.settings.receive_buffer) =
            (sizes(212_992, 212_992), sizes(212_992, 212_992));
        (end.flow.retransmitted_segments, end.flow.socket) = (None, None);
        if end.flow.received == traffic(5_013_504, 40) {
            end.flow.received = traffic(655_360, 40);
        }
    }
}

fn cpu() -> CpuUse {
    CpuUse {
        util_percent: 50.0,
        user_percent: Some(10.0),
        system_percent: Some(30.0),
        iowait_percent: Some(1.0),
        irq_percent: Some(2.0),
        softirq_percent: Some(7.0),
        peak_percent: Some(75.0),
        peak_cpu: Some(1),
        cpus: 2,
        method: "S".to_owned(),
    }
}
