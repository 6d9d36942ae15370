//! The run document of a test: the nearest native plan, and what both ends counted.

use std::sync::Arc;

use linerate_engine::netperf::{
    ControlPlan, CpuFigures, EndFigures, Outcome, Pacing, TestEnd, TestKind, TestPlan,
    TestTransport, method_letter,
};
use linerate_measure::dialect::netperf::{EndTotals, FlowTotals};
use linerate_measure::dialect::{EndExtension, FlowExtension};
use linerate_measure::plan::Local;
use linerate_measure::report::{FlowReport, SocketFacts};
use linerate_measure::sample::{DatagramCounts, Traffic};
use linerate_measure::{
    Arrivals, Dialect, DialectOptions, Direction, End, EndReport, Kind, Plan, Rate, Role, Sample,
    Schedule, Transport, Workload,
};

use linerate_personality::getopt::{Flag, Lexeme, Lexer};
use linerate_personality::netperf::flags::GLOBAL;

use super::figures::{Cost, Figures};
use super::planning::{Control, Request};
use crate::personality::run_document::{RunOutput, RunRecord};

/// Samples are so long where no interim results are asked for.
pub(super) const INTERVAL_NS: u64 = 1_000_000_000;
/// How long a response is awaited over UDP unless told otherwise.
const RESPONSE_TIMEOUT_NS: u64 = 1_000_000_000;

/// The record of a test that begins.
pub(super) fn begin(
    output: &Arc<RunOutput>,
    control: &Control,
    request: &Request,
    words: &[String],
) -> RunRecord {
    let mut record = output.begin(Dialect::Netperf, Role::Client, plan(control, request));
    if let Some(draft) = record.draft() {
        let program = std::iter::once("netperf".to_owned());
        let command_line = program.chain(without_passphrase(words)).collect();
        draft.options = Some(DialectOptions { command_line, ..DialectOptions::default() });
    }
    record
}

/// The words without the argument of each `-Z`.
fn without_passphrase(words: &[String]) -> Vec<String> {
    let mut told = Vec::with_capacity(words.len());
    let mut lexer = Lexer::new(GLOBAL, words);
    let mut read = 0;
    while let Some(lexeme) = lexer.next() {
        let end = words.len() - lexer.remaining();
        told.extend(words.iter().take(end).skip(read).cloned());
        read = end;
        let Ok(Lexeme::Flag(Flag { short: Some('Z'), .. }, Some(passphrase))) = lexeme else {
            continue;
        };
        // The last word is the passphrase, or the flag with the passphrase joined to it.
        let last: Option<String> = told.pop();
        let flag = last.filter(|word| *word != passphrase);
        told.extend(flag.and_then(|word| word.strip_suffix(&passphrase).map(str::to_owned)));
    }
    told
}

/// The nearest native plan.
fn plan(control: &Control, request: &Request) -> Plan {
    let TestPlan { local, family, source_ports, .. } = &request.plan;
    let ControlPlan { host, port, .. } = &control.plan;
    let mut plan = Plan::new(host.clone(), *port, workload(&request.plan));
    plan.family = *family;
    plan.local = Local {
        cpus: local.bind_cpu.into_iter().collect(),
        binds: local.address.map(Into::into).into_iter().collect(),
        source_ports: *source_ports,
        ..Local::default()
    };
    plan
}

fn workload(test: &TestPlan) -> Workload {
    let transport = match test.transport {
        TestTransport::Tcp => Transport::Tcp,
        TestTransport::Udp => Transport::Udp,
    };
    let mut workload = match test.kind {
        TestKind::Send | TestKind::SendFile => Workload::stream(Direction::Up, transport),
        TestKind::Receive => Workload::stream(Direction::Down, transport),
        TestKind::RequestResponse => Workload::rr(transport),
        TestKind::ConnectRequestResponse | TestKind::Connect => Workload::connect(transport),
    };
    set_kind(&mut workload, test);
    workload.end = match (test.end, test.kind.has_transactions()) {
        (TestEnd::Seconds(seconds), _) => {
            End::Time { duration_ns: u64::from(seconds) * 1_000_000_000 }
        }
        (TestEnd::Units(units), true) => End::Count { count: units.into() },
        (TestEnd::Units(units), false) => End::Bytes { bytes: units.into() },
        (TestEnd::Interrupt, _) => End::Time { duration_ns: 0 },
    };
    workload.threads = Some(1);
    workload.interval_ns = test.interval_ns.unwrap_or(INTERVAL_NS);
    workload.busy_poll = test.busy_poll;
    workload.socket.no_delay = test.options.no_delay;
    workload.socket.congestion = test.local.congestion.clone();
    workload.socket.mss_bytes = test.options.mss_bytes;
    workload.socket.dscp = test.local.service.map(|service| service >> 2);
    workload
}

/// Sizes and paces.
fn set_kind(workload: &mut Workload, test: &TestPlan) {
    let sender = if test.kind == TestKind::Receive { &test.remote } else { &test.local };
    let sizes = match test.kind {
        TestKind::Connect => (0, 0),
        _ => (test.request_bytes, test.response_bytes),
    };
    let paced = sender
        .pacing
        .map(|pacing| Schedule { per_s: sends_per_s(pacing), arrivals: Arrivals::Even });
    match &mut workload.kind {
        Kind::Stream { send_bytes, .. } => {
            // What nobody asked for is known when the kernel has granted a buffer.
            *send_bytes = sender.send_bytes.unwrap_or(0);
            let paced = sender.pacing.zip(sender.send_bytes);
            let bps = paced.map(|(pacing, bytes)| sends_per_s(pacing) * f64::from(bytes) * 8.0);
            workload.rate = bps.map(|bps| Rate::AllFlows { bps: bps as u64 });
        }
        Kind::Rr { request_bytes, response_bytes, timeout_ns, outstanding, schedule, .. } => {
            (*request_bytes, *response_bytes) = sizes;
            *timeout_ns = test.timeout_ns.unwrap_or(RESPONSE_TIMEOUT_NS);
            *outstanding = Some(test.burst.saturating_add(1));
            *schedule = paced;
        }
        Kind::Connect { request_bytes, response_bytes, schedule, .. } => {
            (*request_bytes, *response_bytes) = sizes;
            *schedule = paced;
        }
    }
}

fn sends_per_s(pacing: Pacing) -> f64 {
    f64::from(pacing.burst) * 1e6 / f64::from(pacing.interval_us.max(1))
}

/// A test has come to an end, and this is what both ends counted.
pub(super) fn record_outcome(record: &mut RunRecord, test: &TestPlan, outcome: &Outcome) {
    let Some(draft) = record.draft() else { return };
    draft.record_report(client_report(test, outcome));
    draft.server = outcome.server_told.then(|| server_report(test, outcome));
    let sender = if test.kind == TestKind::Receive { &outcome.remote } else { &outcome.local };
    if let Kind::Stream { send_bytes, .. } = &mut draft.plan.workload.kind {
        *send_bytes = u32::try_from(sender.send_bytes).unwrap_or(*send_bytes);
    }
}

/// All tests have come to an end: their means.
pub(super) fn record_figures(record: &mut RunRecord, figures: &Figures) {
    let Some(draft) = record.draft() else { return };
    let iterations = figures.agreement.iterations;
    if iterations > 1 {
        draft.notes.push(format!(
            "samples and reports are of the last of {iterations} tests; netperf's own figures are means of all"
        ));
    }
    if let Some(report) = &mut draft.client {
        let is_demanded = figures.agreement.demand.is_some();
        report.extension = Some(EndExtension::Netperf(EndTotals {
            throughput: Some(figures.throughput),
            throughput_units: Some(format!("{}/s", figures.unit.name())),
            iterations: Some(iterations),
            confidence_width_percent: is_demanded.then_some(figures.agreement.result_percent),
            ..end_totals(&figures.local, figures.last.local.cpu.as_ref())
        }));
    }
    if let Some(report) = &mut draft.server {
        let totals = end_totals(&figures.remote, figures.last.remote.cpu.as_ref());
        let is_told = totals != EndTotals::default();
        report.extension = is_told.then_some(EndExtension::Netperf(totals));
    }
}

fn end_totals(cost: &Cost, cpu: Option<&CpuFigures>) -> EndTotals {
    EndTotals {
        cpu_util_percent: cost.util_percent,
        cpu_util_method: cpu.map(|cpu| method_letter(cpu.method).to_string()),
        service_demand_us: cost.demand_us,
        ..EndTotals::default()
    }
}

fn client_report(test: &TestPlan, outcome: &Outcome) -> EndReport {
    let mut report = outcome.report.clone();
    if !test.kind.has_transactions() {
        // Of calls, not of transactions.
        report.latency_hdr = None;
    }
    if let Some(flow) = report.flows.first_mut() {
        flow.extension = Some(FlowExtension::Netperf(flow_totals(&outcome.local)));
        if test.transport == TestTransport::Udp && test.kind == TestKind::Receive {
            flow.datagrams = Some(received(&outcome.local));
        }
    }
    report
}

/// What a netserver tells: its counts, its time, its buffers.
fn server_report(test: &TestPlan, outcome: &Outcome) -> EndReport {
    let remote = &outcome.remote;
    let told_ns = remote.elapsed_s.map(|seconds| (seconds * 1e9) as u64);
    let elapsed_ns = told_ns.filter(|ns| *ns > 0).unwrap_or(outcome.elapsed_ns);
    let traffic = |bytes, calls| Traffic { bytes, calls: Some(calls) };
    let sends = !matches!(test.kind, TestKind::Send | TestKind::SendFile | TestKind::Connect);
    let receives = !matches!(test.kind, TestKind::Receive | TestKind::Connect);
    let sent = traffic(remote.bytes_sent, remote.send_calls);
    let arrived = traffic(remote.bytes_received, remote.receive_calls);
    let datagrams = match (test.transport, test.kind) {
        (TestTransport::Udp, TestKind::Send) => Some(received(remote)),
        (TestTransport::Udp, TestKind::Receive) => Some(DatagramCounts {
            sent: Some(remote.send_calls),
            refused: Some(remote.failed_sends),
            ..DatagramCounts::default()
        }),
        _ => None,
    };
    let flow = FlowReport {
        sent: sends.then_some(sent),
        received: receives.then_some(arrived),
        from_ns: Some(0),
        to_ns: Some(elapsed_ns),
        datagrams,
        retransmitted_segments: remote.retransmits.map(u64::from),
        socket: server_socket(outcome),
        extension: Some(FlowExtension::Netperf(flow_totals(remote))),
        ..FlowReport::default()
    };
    EndReport { flows: vec![flow], elapsed_ns, ..EndReport::nothing(Role::Server) }
}

/// All of a test that was too short for samples, which ended at this time (UTC).
pub(super) fn whole_sample(outcome: &Outcome, utc_ns: i64) -> Sample {
    let report = &outcome.report;
    let sum = |traffic: fn(&FlowReport) -> Option<Traffic>| {
        report.flows.iter().filter_map(traffic).reduce(Traffic::plus)
    };
    Sample {
        to_ns: outcome.elapsed_ns,
        utc_ns,
        sent: sum(|flow| flow.sent),
        received: sum(|flow| flow.received),
        transactions: report.flows.iter().filter_map(|flow| flow.transactions).reduce(|a, b| a + b),
        ..Sample::nothing(Role::Client)
    }
}

fn received(end: &EndFigures) -> DatagramCounts {
    DatagramCounts { received: Some(end.receive_calls), ..DatagramCounts::default() }
}

fn server_socket(outcome: &Outcome) -> Option<SocketFacts> {
    let remote = &outcome.remote;
    let send_buffer_bytes = u32::try_from(remote.send_buffer.at_end).ok()?;
    let receive_buffer_bytes = u32::try_from(remote.receive_buffer.at_end).ok()?;
    Some(SocketFacts {
        local: outcome.remote_address?.to_string(),
        peer: outcome.local_address?.to_string(),
        congestion: remote.congestion.clone(),
        send_buffer_bytes,
        receive_buffer_bytes,
        ..SocketFacts::default()
    })
}

fn flow_totals(end: &EndFigures) -> FlowTotals {
    let told = |size: i32| u32::try_from(size).ok().filter(|size| *size > 0);
    FlowTotals {
        send_bytes: told(end.send_bytes),
        receive_bytes: told(end.receive_bytes),
        send_width: told(end.send_width),
        receive_width: told(end.receive_width),
    }
}

#[cfg(test)]
mod tests {
    use super::without_passphrase;

    #[test]
    fn the_passphrase_is_left_out_wherever_it_stands() {
        for (typed, told) in [
            ("-Z 1 -H 10.0.0.1 -l 1", "-Z -H 10.0.0.1 -l 1"),
            ("-Z a -Z b -l 1", "-Z -Z -l 1"),
            ("-Zsecret -H secret", "-Z -H secret"),
            ("-cZsecret -CZ secret -l 1", "-cZ -CZ -l 1"),
            ("stray -Z -Z -l 1 -- -Z 1 -m 1", "stray -Z -l 1 -- -Z 1 -m 1"),
            ("-H Z -l 1", "-H Z -l 1"),
        ] {
            let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            assert_eq!(without_passphrase(&words).join(" "), told, "{typed}");
        }
        let empty = ["-Z", "", "-l", "1"].map(str::to_owned);
        assert_eq!(without_passphrase(&empty), ["-Z", "-l", "1"]);
    }
}
