//! One direction of a run: who sent, who received, and what each end says of it.

use crate::plan::{Direction, Transport, Workload};
use crate::report::{EndReport, FlowReport};
use crate::sample::{DatagramCounts, Traffic};

/// The two ends of one direction of a stream, as far as their reports are known.
#[derive(Clone, Copy)]
pub(super) struct Lane<'a> {
    workload: &'a Workload,
    pub(super) direction: Direction,
    pub(super) sender: Option<&'a EndReport>,
    pub(super) receiver: Option<&'a EndReport>,
}

/// The lanes of a stream: one, or two where both directions run; none for request and response.
pub(super) fn lanes<'a>(
    workload: &'a Workload,
    client: Option<&'a EndReport>,
    server: Option<&'a EndReport>,
) -> Vec<Lane<'a>> {
    let up = Lane { workload, direction: Direction::Up, sender: client, receiver: server };
    let down = Lane { workload, direction: Direction::Down, sender: server, receiver: client };
    match workload.direction() {
        Some(Direction::Up) => vec![up],
        Some(Direction::Down) => vec![down],
        Some(Direction::Both) => vec![up, down],
        None => Vec::new(),
    }
}

impl<'a> Lane<'a> {
    /// The flows as the sender counted them.
    pub(super) fn sending(self) -> Option<Vec<&'a FlowReport>> {
        self.sender.map(|report| self.flows_of(report))
    }

    /// The flows as the receiver counted them.
    pub(super) fn receiving(self) -> Option<Vec<&'a FlowReport>> {
        self.receiver.map(|report| self.flows_of(report))
    }

    fn flows_of(self, report: &'a EndReport) -> Vec<&'a FlowReport> {
        let belongs =
            |flow: &&FlowReport| self.workload.flow_direction(flow.flow) == self.direction;
        report.flows.iter().filter(belongs).collect()
    }

    /// What was sent; `None` where the sender's report is missing or counts nothing.
    pub(super) fn sent(self) -> Option<Traffic> {
        self.sending()?.iter().filter_map(|flow| flow.sent).reduce(plus)
    }

    /// What was received; likewise.
    pub(super) fn received(self) -> Option<Traffic> {
        self.receiving()?.iter().filter_map(|flow| flow.received).reduce(plus)
    }

    /// Time from the first to the last send, all flows together.
    pub(super) fn send_time_ns(self) -> Option<u64> {
        Some(span_ns(&self.sending()?)?.1)
    }

    /// Time from the first to the last arrival, all flows together.
    pub(super) fn receive_time_ns(self) -> Option<u64> {
        Some(span_ns(&self.receiving()?)?.1)
    }

    /// Bits that arrived per second of the receivers' time. Where nothing arrived there is no
    /// such time, and the rate is 0 if the end was listening for any time at all.
    pub(super) fn goodput_bps(self) -> Option<f64> {
        let received = self.received()?;
        if received.bytes == 0 {
            return (self.receiver?.elapsed_ns > 0).then_some(0.0);
        }
        per_second(received.bytes as f64 * 8.0, self.receive_time_ns()?)
    }

    /// Datagram counts of both ends: the sender's `sent` and `refused`, the receiver's others, and
    /// `lost` anew from both where both are known.
    pub(super) fn datagrams(self) -> Option<DatagramCounts> {
        if self.workload.transport != Transport::Udp {
            return None;
        }
        let sender = self.sending().and_then(|flows| datagrams_of(&flows));
        let receiver = self.receiving().and_then(|flows| datagrams_of(&flows));
        let counts = match (sender, receiver) {
            (None, None) => return None,
            (sender, receiver) => DatagramCounts {
                sent: sender.and_then(|counts| counts.sent),
                refused: sender.and_then(|counts| counts.refused),
                ..receiver.unwrap_or_default()
            },
        };
        let lost = match (counts.sent, counts.received) {
            (Some(sent), Some(received)) => Some(sent.saturating_sub(received)),
            _ => counts.lost,
        };
        // With receive offload the drops are an estimate, and drops are a part of the loss.
        let most = lost.unwrap_or(u64::MAX);
        let dropped_by_socket = counts.dropped_by_socket.map(|dropped| dropped.min(most));
        Some(DatagramCounts { lost, dropped_by_socket, ..counts })
    }
}

/// Start and length of the time that the flows cover; `None` where no flow has both its ends.
pub(super) fn span_ns(flows: &[&FlowReport]) -> Option<(u64, u64)> {
    let from_ns = flows.iter().filter_map(|flow| flow.from_ns).min()?;
    let to_ns = flows.iter().filter_map(|flow| flow.to_ns).max()?;
    Some((from_ns, to_ns.checked_sub(from_ns)?))
}

/// `amount` per second of `time_ns`; `None` where there was no time.
pub(super) fn per_second(amount: f64, time_ns: u64) -> Option<f64> {
    (time_ns > 0).then(|| amount * 1e9 / time_ns as f64)
}

/// `value` of each item added up; `None` where no item has one.
pub(super) fn sum<T>(items: &[T], value: impl Fn(&T) -> Option<u64>) -> Option<u64> {
    items.iter().filter_map(value).reduce(u64::saturating_add)
}

/// Two counts of datagrams added up, field by field.
pub(super) fn add_datagrams(a: DatagramCounts, b: DatagramCounts) -> DatagramCounts {
    let add = |field: fn(&DatagramCounts) -> Option<u64>| sum(&[a, b], field);
    DatagramCounts {
        sent: add(|counts| counts.sent),
        refused: add(|counts| counts.refused),
        received: add(|counts| counts.received),
        lost: add(|counts| counts.lost),
        duplicated: add(|counts| counts.duplicated),
        reordered: add(|counts| counts.reordered),
        late: add(|counts| counts.late),
        dropped_by_socket: add(|counts| counts.dropped_by_socket),
    }
}

fn datagrams_of(flows: &[&FlowReport]) -> Option<DatagramCounts> {
    flows.iter().filter_map(|flow| flow.datagrams).reduce(add_datagrams)
}

fn plus(a: Traffic, b: Traffic) -> Traffic {
    Traffic { bytes: a.bytes.saturating_add(b.bytes), calls: a.calls.saturating_add(b.calls) }
}
