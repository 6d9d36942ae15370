//! What came out of a test: a report for each end.

use linerate_measure::dialect::iperf3::{CpuPercent, EndTotals, FlowTotals};
use linerate_measure::dialect::{EndExtension, FlowExtension};
use linerate_measure::sample::{CpuSeconds, DatagramCounts, Traffic};
use linerate_measure::{EndReport, FlowReport, Role};
use linerate_wire::iperf3::results::{self, ServerOutput};
use linerate_wire::iperf3::{Parameters, Protocol, Results, StreamResult, stream_id};

use super::tail::{Ends, Late};
use crate::clock::SECOND_NS;

/// What came out of a test. Flow number i is the stream that was made as number i; one that an end sends on has
/// `sent`, and one that it receives on `received`.
#[derive(Clone, Debug)]
pub struct Report {
    /// What this end counted.
    pub own: EndReport,
    /// What the other end says it counted, where the test came to its end. A flow that it didn't tell of is missing.
    pub peer: Option<EndReport>,
    /// What the server printed, where that was asked for and is known.
    pub server_output: Option<ServerOutput>,
}

impl Report {
    /// Adds what the other end counted, beside what this one told it; says which stream it didn't count.
    pub(super) fn add_peer(
        &mut self,
        theirs: &Results,
        own: &Results,
        parameters: &Parameters,
        late: &Late,
    ) -> Option<u32> {
        let role = self.own.role;
        let mut missing = None;
        let mut flows = Vec::new();
        for flow in &mut self.own.flows {
            let (id, sends) = (stream_id(flow.flow as usize), flow.sent.is_some());
            let (Some(result), Some(own)) = (theirs.stream(id), own.stream(id)) else {
                missing = missing.or(Some(id));
                continue;
            };
            let omitted = own.omitted_packets.unwrap_or(0);
            let mut other = flow_report(flow.flow, !sends, result, omitted, parameters);
            let seconds = result.seconds().filter(|seconds| *seconds > 0.0);
            // The cast saturates.
            let told_ns = seconds.map(|seconds| (seconds * 1e9).round() as u64);
            let length_ns = told_ns.unwrap_or_else(|| length_ns(flow));
            let from_ns = u64::from(parameters.omit_s) * SECOND_NS;
            (other.from_ns, other.to_ns) = (Some(from_ns), Some(from_ns.saturating_add(length_ns)));
            let ends = Ends { sends, role, own, theirs: result };
            let tail = ends.tail(parameters, late);
            let (receiver, bytes) = match sends {
                true => (&mut other, result.received_of(own)),
                false => (&mut *flow, own.received_of(result)),
            };
            if let Some(received) = &mut receiver.received {
                received.bytes = bytes;
            }
            add_tail(receiver, tail);
            flows.push(other);
        }
        self.peer = Some(peer_report(role, theirs, flows));
        self.server_output.clone_from(&theirs.server_output);
        missing
    }
}

/// The other end's report, of an end that is `role`.
fn peer_report(role: Role, theirs: &Results, flows: Vec<FlowReport>) -> EndReport {
    let role = if role == Role::Client { Role::Server } else { Role::Client };
    let elapsed_ns = flows.iter().map(length_ns).max().unwrap_or(0);
    let percent = theirs.cpu_percent;
    let used_s = |percent: f64| percent / 100.0 * elapsed_ns as f64 / 1e9;
    EndReport {
        flows,
        elapsed_ns,
        cpu: Some(CpuSeconds { user_s: used_s(percent.user), system_s: used_s(percent.system) }),
        extension: Some(end_extension(percent, theirs.congestion_used.clone())),
        ..EndReport::nothing(role)
    }
}

/// What only iperf3 tells of an end.
pub(super) fn end_extension(
    percent: results::CpuPercent,
    congestion: Option<String>,
) -> EndExtension {
    let results::CpuPercent { total, user, system } = percent;
    EndExtension::Iperf3(EndTotals {
        cpu_percent: Some(CpuPercent { total, user, system }),
        congestion,
    })
}

fn length_ns(flow: &FlowReport) -> u64 {
    flow.to_ns.unwrap_or(0).saturating_sub(flow.from_ns.unwrap_or(0))
}

/// What an end's results say of a stream that it sends on or not. Releases before 3.14 count datagrams of the omitted
/// time, too; `own_omitted` is what this end had in it.
pub(super) fn flow_report(
    flow: u32,
    sends: bool,
    result: &StreamResult,
    own_omitted: u64,
    parameters: &Parameters,
) -> FlowReport {
    let traffic = Some(Traffic { bytes: result.bytes, calls: None });
    let report = FlowReport { flow, ..FlowReport::default() };
    let mut report = match sends {
        true => FlowReport { sent: traffic, ..report },
        false => FlowReport { received: traffic, ..report },
    };
    if parameters.protocol != Protocol::Udp {
        report.retransmitted_segments = result.retransmits.filter(|_| sends);
        return report;
    }
    let (packets, lost) = datagrams(result, own_omitted, parameters);
    let lost = lost.filter(|_| !sends);
    report.jitter_ns = (!sends).then_some(result.jitter_s * 1e9);
    report.datagrams = Some(datagram_counts(sends, packets, lost));
    let totals = FlowTotals { packets: Some(packets), lost, extremes: None };
    report.extension = Some(FlowExtension::Iperf3(totals));
    report
}

/// Datagrams that were sent by the numbers, and lost ones; `None`: not known.
fn datagrams(
    result: &StreamResult,
    own_omitted: u64,
    parameters: &Parameters,
) -> (u64, Option<i64>) {
    match result.omitted_packets.zip(result.omitted_errors) {
        // An original's datagrams that came late make fewer missing than were in the omitted time.
        Some((packets, errors)) => {
            let lost = result.errors.saturating_sub(errors).max(0);
            (result.packets.saturating_sub(packets), Some(lost))
        }
        None if parameters.omit_s == 0 => (result.packets, Some(result.errors)),
        // Their bytes are without that time, and all datagrams have one length.
        None if result.errors == 0 => {
            (result.bytes / u64::from(parameters.block_bytes.max(1)), Some(0))
        }
        // When they were lost isn't told, and the ends don't begin to count at the same datagram.
        None => (result.packets.saturating_sub(own_omitted), None),
    }
}

/// The uniform counts of a stream. Of a receiver `packets` are those sent by the numbers of those that came.
pub(super) fn datagram_counts(sends: bool, packets: u64, lost: Option<i64>) -> DatagramCounts {
    if sends {
        return DatagramCounts { sent: Some(packets), ..DatagramCounts::default() };
    }
    DatagramCounts {
        received: lost.map(|lost| packets.saturating_add_signed(lost.saturating_neg())),
        lost: lost.map(|lost| u64::try_from(lost).unwrap_or(0)),
        ..DatagramCounts::default()
    }
}

/// Adds datagrams that never arrived and have a higher number than all that did.
fn add_tail(receiver: &mut FlowReport, tail: u64) {
    let Some(FlowExtension::Iperf3(totals)) = &mut receiver.extension else { return };
    let packets = totals.packets.unwrap_or(0).saturating_add(tail);
    totals.packets = Some(packets);
    totals.lost = totals.lost.map(|lost| lost.saturating_add_unsigned(tail));
    let reordered = receiver.datagrams.and_then(|counts| counts.reordered);
    receiver.datagrams =
        Some(DatagramCounts { reordered, ..datagram_counts(false, packets, totals.lost) });
}

#[cfg(test)]
mod tests;
