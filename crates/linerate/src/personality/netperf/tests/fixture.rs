//! Results that never change.

use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_engine::netperf::{
    BufferFigures, CpuFigures, EndFigures, Outcome, TestKind, TestTransport,
};
use linerate_measure::histogram::Histogram;
use linerate_measure::plan::Family;
use linerate_measure::report::{FlowReport, SocketFacts};
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
        local.cpu = Some(cpu());
    }
    if plan.remote.cpu {
        remote.cpu = Some(cpu());
    }
    let mut latency = Histogram::new();
    if plan.kind.has_transactions() || plan.times_calls {
        [12, 14, 14, 19, 59].iter().for_each(|us| latency.record_ns(us * 1000));
    }
    let socket = SocketFacts {
        mss_bytes: (plan.transport == TestTransport::Tcp).then_some(65_483),
        ..SocketFacts::default()
    };
    let flow = FlowReport { socket: Some(socket), ..FlowReport::default() };
    Outcome {
        elapsed_ns: (elapsed_s * 1e9) as u64,
        server_told: true,
        interrupted: false,
        report: EndReport {
            flows: vec![flow],
            latency_hdr: (!latency.is_empty()).then(|| latency.to_base64()),
            ..EndReport::nothing(Role::Client)
        },
        local,
        remote,
        local_address: Some(([127, 0, 0, 1], 40_000).into()),
        remote_address: Some(([127, 0, 0, 1], 40_001).into()),
        tcp: None,
    }
}

fn buffers() -> EndFigures {
    EndFigures {
        send_bytes: -1,
        receive_bytes: -1,
        send_width: 2,
        receive_width: 2,
        send_buffer: BufferFigures { asked: -1, at_start: 16_384, at_end: 4_194_304 },
        receive_buffer: BufferFigures { asked: -1, at_start: 131_072, at_end: 1_693_259 },
        retransmits: Some(0),
        congestion: Some("cubic".to_owned()),
        priority: -1,
        service: -1,
        ..EndFigures::default()
    }
}

fn sender() -> EndFigures {
    EndFigures { bytes_sent: 5_013_504, send_calls: 306, send_bytes: 16_384, ..buffers() }
}

fn receiver() -> EndFigures {
    EndFigures { bytes_received: 5_013_504, receive_calls: 40, receive_bytes: 131_072, ..buffers() }
}

fn exchanger() -> EndFigures {
    EndFigures {
        bytes_sent: 500_000,
        bytes_received: 500_000,
        send_calls: 5000,
        receive_calls: 5000,
        transactions: 5000,
        send_bytes: 100,
        receive_bytes: 100,
        ..buffers()
    }
}

fn over_udp(local: &mut EndFigures, remote: &mut EndFigures) {
    for end in [local, remote] {
        let size = BufferFigures { asked: -1, at_start: 212_992, at_end: 212_992 };
        (end.send_buffer, end.receive_buffer) = (size, size);
        (end.retransmits, end.congestion) = (None, None);
        if end.receive_calls == 40 {
            end.bytes_received = 655_360;
        }
    }
}

fn cpu() -> CpuFigures {
    CpuFigures {
        util_percent: 50.0,
        user_percent: 10.0,
        system_percent: 30.0,
        iowait_percent: 1.0,
        irq_percent: 2.0,
        softirq_percent: 7.0,
        peak_percent: 75.0,
        peak_cpu: 1,
        cpus: 2,
        method: 8,
    }
}
