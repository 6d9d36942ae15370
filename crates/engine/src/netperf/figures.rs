//! From what both ends counted to a report for each of them.

use std::net::SocketAddr;

use linerate_measure::dialect::netperf::{BufferSizes, CpuUse, EndTotals, FlowTotals};
use linerate_measure::dialect::{EndExtension, FlowExtension};
use linerate_measure::report::{FlowReport, SocketFacts};
use linerate_measure::sample::{DatagramCounts, Traffic};
use linerate_measure::{EndReport, Role};
use linerate_wire::netperf::test::{Length, Part, Request, Results, Setup, Transport};

use super::data::{Granted, ring};
use super::job::{Job, Task};
use super::outcome::Outcome;
use super::plan::{EndPlan, TestPlan};
use super::processor::of_wire;
use crate::clock::SECOND_NS;
use crate::socket::TcpFigures;
use crate::tally::Counts;

/// What this end has measured.
pub(super) struct Measured {
    pub(super) elapsed_ns: u64,
    pub(super) interrupted: bool,
    pub(super) counts: Counts,
    pub(super) report: EndReport,
    pub(super) cpu: Option<CpuUse>,
    pub(super) tcp: Option<TcpFigures>,
    pub(super) granted: Granted,
    pub(super) server: SocketAddr,
    /// Whether the server told its figures.
    pub(super) told: bool,
}

pub(super) fn outcome(
    plan: &TestPlan,
    job: &Job,
    setup: &Setup,
    results: &Results,
    measured: Measured,
) -> Outcome {
    let (interrupted, server_told, tcp) = (measured.interrupted, measured.told, measured.tcp);
    let counts = measured.counts;
    let client = client_report(plan, job, measured);
    let mut server = server_report(plan, setup);
    if server_told {
        add_results(&mut server, job, results, &counts, &client);
    }
    Outcome { client, server, server_told, interrupted, tcp }
}

fn client_report(plan: &TestPlan, job: &Job, measured: Measured) -> EndReport {
    let Measured { elapsed_ns, counts, mut report, cpu, granted, server, told, .. } = measured;
    let enough = match job.length {
        Length::Units(bytes) => counts.sent_bytes >= u64::from(bytes),
        Length::Seconds(seconds) => told && elapsed_ns >= u64::from(seconds) * SECOND_NS,
        Length::Open => false,
    };
    if enough && job.task == Task::Send {
        // A server that has counted enough, or whose time is up, may close before it has read what is
        // beyond that.
        report.errors.remove("reset");
        report.flows.iter_mut().for_each(|flow| flow.error = None);
    }
    // A receiver of datagrams ends with the last of them, not with the timer that it waited for.
    let waits = job.task == Task::Receive && job.transport == Transport::Udp;
    let last_ns = report.flows.first().and_then(|flow| flow.to_ns).filter(|_| waits);
    report.elapsed_ns = last_ns.map_or(elapsed_ns, |last_ns| last_ns.min(elapsed_ns));
    let socket = report.flows.first().and_then(|flow| flow.socket.as_ref());
    let source = if job.task == Task::Connections {
        // Connections that come and go have a port each.
        let any = super::unspecified(server.is_ipv6());
        let asked = SocketAddr::new(plan.local.address.unwrap_or(any), plan.local.port);
        Some(asked).filter(|asked| is_set(*asked)).map(|asked| asked.to_string())
    } else {
        socket.and_then(|socket| socket.local.clone())
    };
    let is_bulk = matches!(job.task, Task::Send | Task::Receive);
    let totals = EndTotals {
        cpu,
        // Of calls, not of transactions.
        call_times_hdr: report.latency_hdr.take_if(|_| is_bulk),
        source,
        destination: Some(server.to_string()),
        ..EndTotals::default()
    };
    report.extension = Some(EndExtension::Netperf(Box::new(totals)));
    if let Some(flow) = report.flows.first_mut() {
        if waits {
            flow.datagrams = Some(received_datagrams(counts.datagrams.received));
        }
        let totals = local_totals(plan, job, &granted, flow.socket.as_ref());
        flow.extension = Some(FlowExtension::Netperf(totals));
    }
    report
}

/// This end's sizes. In bulk it sends or receives so much at a time; requests and responses have sizes of their own.
fn local_totals(
    plan: &TestPlan,
    job: &Job,
    granted: &Granted,
    socket: Option<&SocketFacts>,
) -> FlowTotals {
    let local = &plan.local;
    let (send_bytes, receive_bytes) = match job.task {
        Task::Send => (Some(job.unit_bytes), local.receive_bytes),
        Task::Receive => (local.send_bytes, Some(job.unit_bytes)),
        _ => (local.send_bytes, local.receive_bytes),
    };
    let width = |asked: Option<u32>, buffer_bytes, is_used| match is_used {
        true => ring(asked.unwrap_or(0), buffer_bytes, job.unit_bytes).cast_unsigned(),
        false => asked.unwrap_or(1).max(1),
    };
    let send_end = socket.and_then(|socket| socket.send_buffer_bytes);
    let receive_end = socket.and_then(|socket| socket.receive_buffer_bytes);
    let (interval_burst, interval_us) = job.pacing.unwrap_or((0, 0));
    FlowTotals {
        send_bytes,
        receive_bytes,
        send_width: Some(width(
            local.send_width,
            granted.send_buffer_bytes,
            job.task == Task::Send,
        )),
        receive_width: Some(width(
            local.receive_width,
            granted.receive_buffer_bytes,
            job.task == Task::Receive,
        )),
        send_buffer: buffer(local.send_buffer_bytes, granted.send_buffer_bytes, send_end),
        receive_buffer: buffer(
            local.receive_buffer_bytes,
            granted.receive_buffer_bytes,
            receive_end,
        ),
        no_delay: plan.options.no_delay,
        priority: as_set(granted.priority),
        service: as_set(granted.service),
        interval_burst,
        interval_us,
        transactions: None,
    }
}

/// What a server has granted, before it has told what it counted.
fn server_report(plan: &TestPlan, setup: &Setup) -> EndReport {
    let EndPlan { send_buffer_bytes, receive_buffer_bytes, .. } = plan.remote;
    let totals = granted_totals((send_buffer_bytes, receive_buffer_bytes), setup);
    let extension = Some(FlowExtension::Netperf(totals));
    let flow = FlowReport { extension, ..FlowReport::default() };
    EndReport { flows: vec![flow], ..EndReport::nothing(Role::Server) }
}

/// What a server has granted of the buffers asked for, and beside them.
fn granted_totals(
    (send_buffer_bytes, receive_buffer_bytes): (Option<u32>, Option<u32>),
    setup: &Setup,
) -> FlowTotals {
    let known = |size: i32| u32::try_from(size).ok();
    FlowTotals {
        send_bytes: known(setup.send_bytes),
        receive_bytes: known(setup.receive_bytes),
        send_width: known(setup.send_width),
        receive_width: known(setup.receive_width),
        send_buffer: buffer(send_buffer_bytes, setup.send_buffer_bytes, None),
        receive_buffer: buffer(receive_buffer_bytes, setup.receive_buffer_bytes, None),
        no_delay: setup.no_delay,
        priority: as_set(setup.priority),
        service: as_set(setup.service),
        interval_burst: setup.pacing.0,
        interval_us: setup.pacing.1,
        transactions: None,
    }
}

/// Completes what a server has counted itself.
pub(super) fn complete_server(
    report: &mut EndReport,
    request: &Request,
    setup: &Setup,
    counts: &Counts,
    cpu: Option<CpuUse>,
) {
    if cpu.is_some() {
        let cpu_util_percent = cpu.as_ref().map(|cpu| cpu.util_percent);
        let totals = EndTotals { cpu_util_percent, cpu, ..EndTotals::default() };
        report.extension = Some(EndExtension::Netperf(Box::new(totals)));
    }
    let Some(flow) = report.flows.first_mut() else { return };
    if request.transport == Transport::Udp && request.part == Part::Receive {
        flow.datagrams = Some(received_datagrams(counts.datagrams.received));
    }
    let mut totals =
        granted_totals((request.send_buffer_bytes, request.receive_buffer_bytes), setup);
    if let Some(socket) = &flow.socket {
        totals.send_buffer = at_end(totals.send_buffer, socket.send_buffer_bytes);
        totals.receive_buffer = at_end(totals.receive_buffer, socket.receive_buffer_bytes);
    }
    let is_bulk = matches!(request.part, Part::Send | Part::Receive);
    totals.transactions = Some(counts.transactions).filter(|_| !is_bulk);
    flow.extension = Some(FlowExtension::Netperf(totals));
}

/// Adds what the server told. `counts` are this end's.
fn add_results(
    report: &mut EndReport,
    job: &Job,
    results: &Results,
    counts: &Counts,
    client: &EndReport,
) {
    // The cast saturates.
    let told_ns = results.elapsed_s.map(|seconds| (f64::from(seconds) * 1e9) as u64);
    report.elapsed_ns = told_ns.filter(|ns| *ns > 0).unwrap_or(client.elapsed_ns);
    if let Some(cpu) = &results.cpu {
        let cpu = Some(of_wire(cpu, results.cpus));
        let totals = EndTotals { cpu, ..EndTotals::default() };
        report.extension = Some(EndExtension::Netperf(Box::new(totals)));
    }
    let Some(flow) = report.flows.first_mut() else { return };
    let send_calls = near(results.send_calls, counts.receive_calls);
    let receive_calls = near(results.receive_calls, counts.send_calls);
    let traffic =
        |bytes, calls| (bytes > 0 || calls > 0).then_some(Traffic { bytes, calls: Some(calls) });
    flow.sent = traffic(results.bytes_sent, send_calls);
    // Nothing received is a figure where the client sent, not a missing one.
    flow.received = match job.task {
        Task::Send => Some(Traffic { bytes: results.bytes_received, calls: Some(receive_calls) }),
        _ => traffic(results.bytes_received, receive_calls),
    };
    (flow.from_ns, flow.to_ns) = (Some(0), Some(report.elapsed_ns));
    flow.datagrams = match (job.transport, job.task) {
        (Transport::Udp, Task::Send) => Some(received_datagrams(receive_calls)),
        (Transport::Udp, Task::Receive) => Some(DatagramCounts {
            sent: Some(send_calls),
            refused: Some(results.failed_sends.into()),
            ..DatagramCounts::default()
        }),
        _ => None,
    };
    flow.retransmitted_segments = u64::try_from(results.retransmits).ok();
    let Some(FlowExtension::Netperf(totals)) = &mut flow.extension else { return };
    let size = |size: i32| u32::try_from(size).ok();
    totals.send_buffer = at_end(totals.send_buffer, size(results.send_buffer_bytes));
    totals.receive_buffer = at_end(totals.receive_buffer, size(results.receive_buffer_bytes));
    // In bulk a server counts none, and sends 0.
    let is_bulk = matches!(job.task, Task::Send | Task::Receive);
    totals.transactions = (!is_bulk).then(|| near(results.transactions, counts.transactions));
    flow.socket = server_socket(totals, results, client);
}

fn server_socket(
    totals: &FlowTotals,
    results: &Results,
    client: &EndReport,
) -> Option<SocketFacts> {
    let Some(EndExtension::Netperf(ends)) = &client.extension else { return None };
    Some(SocketFacts {
        local: ends.destination.clone(),
        // Connections that come and go have no address in common.
        peer: client.flows.first().and_then(|flow| flow.socket.as_ref()?.local.clone()),
        congestion: results.congestion.clone(),
        send_buffer_bytes: totals.send_buffer.at_end,
        receive_buffer_bytes: totals.receive_buffer.at_end,
        ..SocketFacts::default()
    })
}

fn received_datagrams(count: u64) -> DatagramCounts {
    DatagramCounts { received: Some(count), ..DatagramCounts::default() }
}

/// A count that came modulo 2^32: the whole one that is nearest to a count of ours like it.
fn near(told: u32, ours: u64) -> u64 {
    const TURN: u64 = 1 << 32;
    let told = u64::from(told);
    let turns = ours.saturating_sub(told).saturating_add(TURN / 2) / TURN;
    told + turns * TURN
}

/// A figure of a socket: -1 says that it was not asked for.
pub(super) fn as_set(value: i32) -> Option<i32> {
    Some(value).filter(|value| *value != -1)
}

/// A buffer's sizes, with that of the end where it is known.
pub(super) fn buffer(asked: Option<u32>, at_start: i32, size: Option<u32>) -> BufferSizes {
    at_end(BufferSizes { asked, at_start: u32::try_from(at_start).ok(), at_end: None }, size)
}

/// With the size at the end; without one that is known, that of the start.
fn at_end(buffer: BufferSizes, size: Option<u32>) -> BufferSizes {
    let at_end = size.filter(|size| *size > 0).or(buffer.at_start);
    BufferSizes { at_end, ..buffer }
}

/// Whether an address says anything.
fn is_set(address: SocketAddr) -> bool {
    address.port() > 0 || !address.ip().is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn a_count_that_went_around_is_the_nearest_to_ours() {
        assert_eq!(near(5, 7), 5);
        assert_eq!(near(5, (1 << 32) + 7), (1 << 32) + 5);
        assert_eq!(near(u32::MAX, 1 << 32), u64::from(u32::MAX));
        assert_eq!(near(3, (3 << 32) - 9), (3 << 32) + 3);
    }
}
