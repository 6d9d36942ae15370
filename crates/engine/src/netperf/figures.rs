//! From what both ends counted to what comes out.

use std::net::SocketAddr;

use linerate_measure::EndReport;
use linerate_wire::netperf::test::{Carrier, Length, Results, Setup};

use super::data::{Granted, ring};
use super::job::{Job, Task};
use super::outcome::{BufferFigures, CpuFigures, EndFigures, Outcome, SIZE_UNKNOWN};
use super::plan::TestPlan;
use crate::clock::SECOND_NS;
use crate::socket::TcpFigures;
use crate::tally::Counts;

/// What this end has measured.
pub(super) struct Measured {
    pub(super) elapsed_ns: u64,
    pub(super) interrupted: bool,
    pub(super) counts: Counts,
    pub(super) report: EndReport,
    pub(super) cpu: Option<CpuFigures>,
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
    let local = local_figures(plan, job, &measured);
    let remote = remote_figures(plan, setup, results, &measured);
    let Measured { elapsed_ns, interrupted, counts, mut report, tcp, server, told, .. } = measured;
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
    let flow = report.flows.first();
    // A receiver of datagrams ends with the last of them, not with the timer that it waited for.
    let waits = job.task == Task::Receive && job.carrier == Carrier::Udp;
    let last_ns = flow.and_then(|flow| flow.to_ns).filter(|_| waits);
    let local_address = flow.and_then(|flow| flow.socket.as_ref()?.local.parse().ok());
    report.elapsed_ns = last_ns.map_or(elapsed_ns, |last_ns| last_ns.min(elapsed_ns));
    Outcome {
        elapsed_ns: report.elapsed_ns,
        interrupted,
        server_told: told,
        report,
        local,
        remote,
        // Connections that come and go have a port each.
        local_address: if job.task == Task::Connections {
            let any = super::unspecified(server.is_ipv6());
            Some(SocketAddr::new(plan.local.address.unwrap_or(any), plan.local.port))
        } else {
            local_address
        },
        remote_address: Some(server),
        tcp,
    }
}

fn local_figures(plan: &TestPlan, job: &Job, measured: &Measured) -> EndFigures {
    let (counts, granted) = (&measured.counts, &measured.granted);
    let datagrams = job.carrier == Carrier::Udp;
    let facts = measured.report.flows.first();
    let socket = facts.and_then(|flow| flow.socket.as_ref());
    let sizes = socket.map(|socket| (socket.send_buffer_bytes, socket.receive_buffer_bytes));
    let (send_end, receive_end) = sizes.unwrap_or_default();
    let refused = facts.and_then(|flow| flow.datagrams).and_then(|datagrams| datagrams.refused);
    let (sends, receives) = match job.task {
        Task::Send => (Some(job.unit_bytes), plan.local.receive_bytes),
        Task::Receive => (plan.local.send_bytes, Some(job.unit_bytes)),
        // Requests and responses have sizes of their own.
        _ => (plan.local.send_bytes, plan.local.receive_bytes),
    };
    // As the original shows what nobody asked of its own end.
    let size = |bytes: Option<u32>| bytes.map_or(0, |bytes| shown(Some(bytes)));
    let width = |asked: Option<u32>, buffer| ring(asked.unwrap_or(0), buffer, job.unit_bytes);
    let (interval_burst, interval_us) = job.pacing.unwrap_or((0, 0));
    EndFigures {
        bytes_sent: counts.sent_bytes,
        bytes_received: counts.received_bytes,
        send_calls: if datagrams { counts.datagrams_sent } else { counts.send_calls },
        receive_calls: if datagrams { counts.datagrams_received } else { counts.receive_calls },
        failed_sends: refused.unwrap_or(0),
        transactions: counts.transactions,
        elapsed_s: Some(measured.elapsed_ns as f64 / 1e9),
        send_bytes: size(sends),
        receive_bytes: size(receives),
        send_width: match job.task {
            Task::Send => width(plan.local.send_width, granted.send_buffer_bytes),
            _ => shown(plan.local.send_width).max(1),
        },
        receive_width: match job.task {
            Task::Receive => width(plan.local.receive_width, granted.receive_buffer_bytes),
            _ => shown(plan.local.receive_width).max(1),
        },
        send_buffer: buffer(plan.local.send_buffer_bytes, granted.send_buffer_bytes, send_end),
        receive_buffer: buffer(
            plan.local.receive_buffer_bytes,
            granted.receive_buffer_bytes,
            receive_end,
        ),
        no_delay: plan.options.no_delay,
        cpu: measured.cpu,
        retransmits: facts.and_then(|flow| flow.tcp).map(|tcp| tcp.retransmitted_segments),
        congestion: socket.and_then(|socket| socket.congestion.clone()),
        priority: granted.priority,
        service: granted.service,
        interval_burst,
        interval_us,
    }
}

fn remote_figures(
    plan: &TestPlan,
    setup: &Setup,
    results: &Results,
    measured: &Measured,
) -> EndFigures {
    let remote = &plan.remote;
    let at_end = |size: i32| u32::try_from(size).unwrap_or(0);
    // Its own count of transactions; one that doesn't count them, as in bulk, tells none.
    EndFigures {
        bytes_sent: results.bytes_sent,
        bytes_received: results.bytes_received,
        send_calls: near(results.send_calls, measured.counts.receive_calls),
        receive_calls: near(results.receive_calls, measured.counts.send_calls),
        failed_sends: results.failed_sends.into(),
        transactions: near(results.transactions, measured.counts.transactions),
        elapsed_s: results.elapsed_s.map(f64::from),
        send_bytes: setup.send_bytes,
        receive_bytes: setup.receive_bytes,
        send_width: setup.send_width,
        receive_width: setup.receive_width,
        send_buffer: buffer(
            remote.send_buffer_bytes,
            setup.send_buffer_bytes,
            at_end(results.send_buffer_bytes),
        ),
        receive_buffer: buffer(
            remote.receive_buffer_bytes,
            setup.receive_buffer_bytes,
            at_end(results.receive_buffer_bytes),
        ),
        no_delay: setup.no_delay,
        cpu: results.cpu.as_ref().map(|cpu| CpuFigures::of_wire(cpu, results.cpus)),
        retransmits: u32::try_from(results.retransmits).ok(),
        congestion: results.congestion.clone(),
        priority: setup.priority,
        service: setup.service,
        interval_burst: setup.pacing.0,
        interval_us: setup.pacing.1,
    }
}

/// A count that came modulo 2^32: the whole one that is nearest to a count of ours like it.
fn near(told: u32, ours: u64) -> u64 {
    const TURN: u64 = 1 << 32;
    let told = u64::from(told);
    let turns = ours.saturating_sub(told).saturating_add(TURN / 2) / TURN;
    told + turns * TURN
}

fn shown(bytes: Option<u32>) -> i32 {
    bytes.and_then(|bytes| i32::try_from(bytes).ok()).unwrap_or(SIZE_UNKNOWN)
}

fn buffer(asked: Option<u32>, at_start: i32, at_end: u32) -> BufferFigures {
    let at_end = i32::try_from(at_end).ok().filter(|size| *size > 0).unwrap_or(at_start);
    BufferFigures { asked: shown(asked), at_start, at_end }
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
