//! One direction of a run: the sender, the receiver, and what each end reports.

use super::times::is_shorter;
use crate::media::FrameCounts;
use crate::plan::{Direction, Workload};
use crate::report::{EndReport, FlowReport, FlowSum, SharedTime, Span};
use crate::sample::{DatagramCounts, Traffic};

/// The two ends of one direction of a stream, as far as their reports are known: the flows of that
/// direction added up, whether they were listed or not.
pub(super) struct Lane {
    has_datagrams: bool,
    pub(super) direction: Direction,
    pub(super) sending: Option<FlowSum>,
    pub(super) receiving: Option<FlowSum>,
    receiver_elapsed_ns: u64,
    shared_time: Option<SharedTime>,
    /// Whether the receiver has the last word on what was lost: iperf3's knows which datagrams were still on their way.
    pub(super) receiver_knows_loss: bool,
}

/// The lanes of a stream: one, or two where both directions run; none for request and response.
pub(super) fn lanes(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Vec<Lane> {
    let lane = |direction, sender: Option<&EndReport>, receiver: Option<&EndReport>| Lane {
        has_datagrams: workload.has_datagrams(),
        direction,
        sending: sender.map(|report| flows_of(workload, direction, report)),
        receiving: receiver.map(|report| flows_of(workload, direction, report)),
        receiver_elapsed_ns: receiver.map_or(0, |report| report.elapsed_ns),
        shared_time: receiver.and_then(|report| report.shared_time),
        receiver_knows_loss: receiver.is_some_and(EndReport::knows_loss),
    };
    let up = || lane(Direction::Up, client, server);
    let down = || lane(Direction::Down, server, client);
    match workload.direction() {
        Some(Direction::Up) => vec![up()],
        Some(Direction::Down) => vec![down()],
        Some(Direction::Both) => vec![up(), down()],
        None => Vec::new(),
    }
}

/// The flows of one direction of a report, added up.
pub(super) fn flows_of(workload: &Workload, direction: Direction, report: &EndReport) -> FlowSum {
    let mut sum = report.unlisted.as_ref().map(|unlisted| unlisted.of(direction).clone());
    let belongs = |flow: &&FlowReport| workload.flow_direction(flow.flow) == direction;
    let mut span = sum.as_ref().map_or_else(Span::default, |sum| sum.span);
    for flow in report.flows.iter().filter(belongs) {
        span.cover(Span { from_ns: flow.from_ns, to_ns: flow.to_ns });
    }
    for flow in report.flows.iter().filter(belongs) {
        sum.get_or_insert_default().add(workload, flow, span);
    }
    sum.unwrap_or_default()
}

impl Lane {
    /// What was sent; `None` where the sender's report is missing or counts nothing.
    pub(super) fn sent(&self) -> Option<Traffic> {
        self.sending.as_ref()?.sent
    }

    /// What was received; likewise.
    pub(super) fn received(&self) -> Option<Traffic> {
        self.receiving.as_ref()?.received
    }

    /// Time from the first to the last send, all flows together.
    pub(super) fn send_time_ns(&self) -> Option<u64> {
        self.sending.as_ref()?.span.length_ns()
    }

    /// Time from the first to the last arrival, all flows together.
    pub(super) fn receive_time_ns(&self) -> Option<u64> {
        self.receiving.as_ref()?.span.length_ns()
    }

    /// Whether its bytes go in streams, not in datagrams.
    pub(super) fn is_of_streams(&self) -> bool {
        !self.has_datagrams
    }

    /// The time that all flows shared, where the receiver tells one that its own counts and the sender's time allow.
    pub(super) fn shared_time(&self) -> Option<SharedTime> {
        let time = self.shared_time.filter(|_| !self.has_datagrams)?;
        let (span, received) = (self.receiving.as_ref()?.span, self.received()?);
        let is_within = span.from_ns? <= time.from_ns
            && time.from_ns < time.to_ns
            && time.to_ns <= span.to_ns?
            && (1..=received.bytes).contains(&time.bytes);
        let length_ns = time.to_ns.saturating_sub(time.from_ns);
        let is_long =
            self.least_time_ns(time.bytes).is_none_or(|least_ns| !is_shorter(length_ns, least_ns));
        (is_within && is_long).then_some(time)
    }

    /// So many bytes were sent within their share of the sender's time at least.
    pub(super) fn least_time_ns(&self, bytes: u64) -> Option<f64> {
        let (sent, sent_ns) = (self.sent()?, self.send_time_ns()?);
        Some(bytes.min(sent.bytes) as f64 / sent.bytes.max(1) as f64 * sent_ns as f64)
    }

    /// The payload and the time that the total is made of: those that all flows shared, else everything that arrived.
    pub(super) fn measured(&self) -> Option<(u64, u64)> {
        match self.shared_time() {
            Some(time) => Some((time.bytes, time.to_ns.saturating_sub(time.from_ns))),
            None => Some((self.received()?.bytes, self.receive_time_ns()?)),
        }
    }

    /// The length of that time.
    pub(super) fn measured_ns(&self) -> Option<u64> {
        self.shared_time()
            .map(|time| time.to_ns.saturating_sub(time.from_ns))
            .or(self.receive_time_ns())
    }

    /// What arrived after the time that all flows shared.
    pub(super) fn drained_bytes(&self) -> Option<u64> {
        Some(self.received()?.bytes.saturating_sub(self.shared_time()?.bytes))
    }

    /// Bits that arrived per second of the measured time. Where nothing arrived there is no
    /// such time, and the rate is 0 if the end was listening for any time at all.
    pub(super) fn goodput_bps(&self) -> Option<f64> {
        let received = self.received()?;
        if received.bytes == 0 {
            return (self.receiver_elapsed_ns > 0).then_some(0.0);
        }
        let (bytes, time_ns) = self.measured()?;
        per_second(bytes as f64 * 8.0, time_ns)
    }

    /// Datagram counts of both ends: the sender's `sent` and `refused`, the receiver's others, and
    /// `lost` anew from both where both are known.
    pub(super) fn datagrams(&self) -> Option<DatagramCounts> {
        if !self.has_datagrams {
            return None;
        }
        let sender = self.sending.as_ref().and_then(|flows| flows.datagrams);
        let receiver = self.receiving.as_ref().and_then(|flows| flows.datagrams);
        let counts = match (sender, receiver) {
            (None, None) => return None,
            (sender, receiver) => DatagramCounts {
                sent: sender.and_then(|counts| counts.sent),
                refused: sender.and_then(|counts| counts.refused),
                ..receiver.unwrap_or_default()
            },
        };
        let lost = match (counts.sent, counts.received) {
            (Some(sent), Some(received)) if !self.receiver_knows_loss => {
                Some(sent.saturating_sub(received))
            }
            _ => counts.lost,
        };
        // With receive offload the drops are an estimate, and drops are a part of the loss.
        let most = lost.unwrap_or(u64::MAX);
        let dropped_by_socket = counts.dropped_by_socket.map(|dropped| dropped.min(most));
        let frames = frames(sender.and_then(|counts| counts.frames), counts.frames);
        Some(DatagramCounts { lost, dropped_by_socket, frames, ..counts })
    }
}

/// The frames of both ends: those that were sent and of which nothing came are dropped, too.
fn frames(sender: Option<FrameCounts>, receiver: Option<FrameCounts>) -> Option<FrameCounts> {
    let sent = sender.and_then(|frames| frames.sent);
    let Some(receiver) = receiver else { return sender };
    let come = receiver.completed.zip(receiver.late).map(|(a, b)| a.saturating_add(b));
    let missing = sent.zip(come).map(|(sent, come)| sent.saturating_sub(come));
    Some(FrameCounts { sent, dropped: missing.or(receiver.dropped), ..receiver })
}

/// `amount` per second of `time_ns`; `None` where there was no time.
pub(super) fn per_second(amount: f64, time_ns: u64) -> Option<f64> {
    (time_ns > 0).then(|| amount * 1e9 / time_ns as f64)
}
