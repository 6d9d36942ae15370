//! The rules: the first that holds tells the place and the cause.
//!
//! The limits lie between what was measured of transfers whose limit was known: 290 over TCP, 150 over UDP and QUIC and
//! of requests and responses.

use super::{Cause, LimitEvidence, Place};

/// A thread that ran and waited for a processor for such a share of the time had no time left.
const DEMAND: f64 = 0.6;
/// The same of datagrams and of QUIC, whose threads never block in the kernel for long.
const DATAGRAM_DEMAND: f64 = 0.7;
/// Bytes that stand unread in a receiver's socket; a quarter of its buffer where that is less.
const UNREAD_BYTES: u64 = 128 << 10;
/// A sender's socket with less than this has nothing more to send.
const DRY_BYTES: u64 = 16 << 10;
/// The share of the busy time that a buffer or window must have held up.
const HELD: f64 = 0.2;
/// A sender that was busy for less didn't send all the time.
const BUSY: f64 = 0.9;
const BARELY_BUSY: f64 = 0.85;
/// The last quarter against the second.
pub(super) const TREND: f64 = 1.25;
/// A window that nothing holds up has not grown to the path's yet in fewer round trips than this. Of 50 tests of 7 to 12
/// round trips, the 18 of fewer than 8 sent less than 25 % more in their last quarter than in the second.
const START_UP_ROUND_TRIPS: f64 = 20.0;
/// Segments sent again, packets that the own device's queue dropped or held back, or QUIC packets lost.
const LOST: f64 = 0.0005;
/// The average congestion window at the rate of losses, against the one in use. Even rarer losses than [`LOST`] limit a
/// flow whose window is half of that average or more. A window far above the average is not held by these losses.
const LOSS_WINDOW: std::ops::RangeInclusive<f64> = 0.05..=2.0;
/// From this share of segments sent again on the receive window is held up by losses, too: the receiver keeps what it got
/// behind a lost segment until that segment comes.
const MANY_LOST: f64 = 0.002;
/// Round trips under load against the least.
const QUEUEING: f64 = 1.25;
/// Round trips that are no longer than this against the least wait for a thread rather than in a queue of the path.
const QUEUE_US: u32 = 1000;
/// The share of the time, or of the losses, that makes something the reason.
const MOSTLY: f64 = 0.5;
/// The share of the lost packets that drops of the receiver's socket must come to where receive offload is on. A drop may
/// then be a whole train: stalled readers lost 10 datagrams a drop at the least mean. How long the trains were isn't
/// known, so that the drops are compared as they were counted.
const TRAINS_DROPPED: f64 = 0.1;
/// Delays of the receiver's conductor, at least, against the time that flow control held up the sender. A standstill is
/// told up to 50 ms shorter than it was, and flow control holds until the first packet after it.
const DELAYED: f64 = 0.6;
/// The share of a window in flight.
const IN_FLIGHT: f64 = 0.5;
/// Datagrams lost or dropped: what counts, and what random loss seldom exceeds.
const DATAGRAMS_LOST: f64 = 0.001;
const MANY_DATAGRAMS_LOST: f64 = 0.05;
/// The share of the time that lost or very long transactions must have taken.
const STALLED: f64 = 0.3;
/// Stalls of threads that used less than this of a processor are no matter of processors.
const STALL_DEMAND: f64 = 0.45;
/// Half of the transactions took no longer than this against the least, and at least so long: the path's delay.
const EVEN: f64 = 1.2;
const PATH_DELAY_NS: f64 = 1e6;

/// What the rules look at beside the evidence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) evidence: LimitEvidence,
    /// Whether a rate or schedule was asked for and kept.
    pub(super) keeps_rate: bool,
    /// Whether one was asked for and missed by the sender.
    pub(super) misses_rate: bool,
    pub(super) receive_buffer_bytes: Option<u64>,
    /// What was sent in the last quarter against the second.
    pub(super) trend: Option<f64>,
    /// How many round trips the flow took.
    pub(super) round_trips: Option<f64>,
    /// The packets that the sender's own device queue dropped or held back, as a share of those that were sent.
    pub(super) local_queue_ratio: Option<f64>,
    /// The shares of the demands of the ends' busiest threads that these waited for a processor.
    pub(super) sender_wait_ratio: Option<f64>,
    pub(super) receiver_wait_ratio: Option<f64>,
}

impl Facts {
    fn sender(&self) -> (Place, Cause) {
        match self.evidence.demand_sender.unwrap_or(0.0) >= DEMAND {
            true => (Place::Sender, Cause::LocalCpu),
            false => (Place::Sender, Cause::SenderIdle),
        }
    }

    fn receiver(&self) -> (Place, Cause) {
        match self.evidence.demand_receiver.unwrap_or(0.0) >= DEMAND {
            true => (Place::Receiver, Cause::RemoteCpu),
            false => (Place::Receiver, Cause::ReceiverIdle),
        }
    }

    /// The end whose thread had less time left, where one had none.
    fn processor(&self, least: f64) -> Option<(Place, Cause)> {
        let sender = self.evidence.demand_sender.unwrap_or(0.0);
        let receiver = self.evidence.demand_receiver.unwrap_or(0.0);
        if sender.max(receiver) < least {
            return None;
        }
        Some(match sender >= receiver {
            true => (Place::Sender, Cause::LocalCpu),
            false => (Place::Receiver, Cause::RemoteCpu),
        })
    }

    /// Whether round trips are so much longer than the least that data stand in a queue of the path.
    fn has_queue(&self) -> bool {
        let both = self.evidence.rtt_us.zip(self.evidence.min_rtt_us);
        both.is_some_and(|(rtt, least)| rtt.saturating_sub(least) > QUEUE_US)
    }

    /// Whether losses are frequent.
    pub(super) fn loses(&self) -> bool {
        self.evidence.lost_ratio.unwrap_or(0.0) > LOST
    }

    /// Whether losses limit the congestion window, be they frequent or rare.
    fn is_limited_by_losses(&self) -> bool {
        let ratio = self.evidence.loss_window_ratio;
        self.loses() || ratio.is_some_and(|ratio| LOSS_WINDOW.contains(&ratio))
    }

    /// Whether the rate still grew in the last quarter, without many losses.
    fn grows(&self) -> bool {
        self.trend.is_some_and(|trend| trend > TREND) && !self.loses()
    }

    fn queueing(&self) -> Option<f64> {
        let (rtt, least) = (self.evidence.rtt_us?, self.evidence.min_rtt_us?);
        Some(f64::from(rtt) / f64::from(least.max(1)))
    }
}

/// A stream over TCP or TLS.
pub(super) fn tcp(facts: &Facts) -> (Place, Cause) {
    let evidence = &facts.evidence;
    let busy = evidence.busy_ratio.unwrap_or(1.0);
    let is_dry = evidence.notsent_bytes.is_some_and(|bytes| bytes < DRY_BYTES);
    let unread = facts.receive_buffer_bytes.map_or(UNREAD_BYTES, |all| UNREAD_BYTES.min(all / 4));
    let held = |share: Option<f64>| share.is_some_and(|share| share >= HELD);
    if facts.keeps_rate && busy < BUSY {
        return (Place::Sender, Cause::OwnPacing);
    }
    if evidence.receive_queue_bytes.is_some_and(|bytes| bytes > unread) {
        let both = facts.processor(DEMAND).filter(|_| is_dry);
        return both.unwrap_or(facts.receiver());
    }
    if held(evidence.sndbuf_limited_ratio) {
        return (Place::SendBuffer, Cause::SendBuffer);
    }
    let loses_many = evidence.lost_ratio.is_some_and(|ratio| ratio > MANY_LOST);
    let window = evidence.rwnd_limited_ratio;
    if held(window) && (!loses_many || window.is_some_and(|share| share >= MOSTLY)) {
        return (Place::ReceiveWindow, Cause::ReceiveWindow);
    }
    if is_dry && busy < BUSY {
        return facts.sender();
    }
    if facts.local_queue_ratio.is_some_and(|ratio| ratio > LOST) {
        return (Place::LocalQueue, Cause::LocalQueue);
    }
    if busy < BARELY_BUSY {
        return facts.sender();
    }
    if facts.grows() {
        return (Place::Path, Cause::StartUp);
    }
    // A receiver that mostly waits for its processor loses segments itself, when its buffer is full.
    let mostly_waits = facts.receiver_wait_ratio.is_some_and(|ratio| ratio > MOSTLY);
    let may_lose = |place| place == Place::Receiver && mostly_waits;
    match facts
        .processor(DEMAND)
        .filter(|(end, _)| !facts.has_queue() && (!facts.loses() || may_lose(*end)))
    {
        Some(processor) => processor,
        None => path(facts),
    }
}

fn path(facts: &Facts) -> (Place, Cause) {
    let is_longer = facts.queueing().is_some_and(|times| times >= QUEUEING);
    // Microseconds are no queue of the path: beside losses they say nothing.
    let cause = match facts.is_limited_by_losses() {
        _ if is_longer && (facts.has_queue() || !facts.loses()) => Cause::PathRate,
        true => Cause::Loss,
        false if facts.round_trips.is_some_and(|trips| trips < START_UP_ROUND_TRIPS) => {
            Cause::StartUp
        }
        false => Cause::Path,
    };
    (Place::Path, cause)
}

/// What the two ends' connections tell of a flow over QUIC.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuicFacts {
    /// The share of the congestion window that was in flight.
    pub(super) in_flight_ratio: Option<f64>,
    /// The shares of the time that the sender waited for its windows (congestion and pacing), and for data.
    pub(super) window_ratio: Option<f64>,
    pub(super) application_ratio: Option<f64>,
    /// Whether packets were spaced out for a rate that was asked for, and for which share of the time.
    pub(super) asked_pacing_ratio: Option<f64>,
    /// What the receiver's socket dropped, as a share of the packets that were lost; only of a connection that has the
    /// socket for itself.
    pub(super) socket_drop_ratio: Option<f64>,
    /// Whether that may be trains of datagrams.
    pub(super) drops_trains: bool,
    /// How late the receiver's conductor woke up, altogether, against the time of flow control.
    pub(super) wakeup_delay_ratio: Option<f64>,
}

/// A stream over QUIC.
pub(super) fn quic(facts: &Facts, seen: QuicFacts) -> (Place, Cause) {
    let above = |share: Option<f64>, least: f64| share.is_some_and(|share| share >= least);
    if facts.keeps_rate || above(seen.asked_pacing_ratio, MOSTLY) {
        return (Place::Sender, Cause::OwnPacing);
    }
    if let Some(processor) = facts.processor(DATAGRAM_DEMAND) {
        return processor;
    }
    let dropped = if seen.drops_trains { TRAINS_DROPPED } else { MOSTLY };
    let drops = above(seen.socket_drop_ratio, dropped);
    if facts.loses() && drops {
        return (Place::Receiver, Cause::ReceiverSocket);
    }
    if above(facts.evidence.flow_control_ratio, HELD) {
        return match above(seen.wakeup_delay_ratio, DELAYED) {
            true => (Place::Receiver, Cause::ReceiverIdle),
            false => (Place::ReceiveWindow, Cause::ReceiveWindow),
        };
    }
    let is_window = match (seen.window_ratio, seen.application_ratio) {
        // Where a sender mostly waited for its turn the rest tells little.
        (Some(window), Some(application)) if window + application >= MOSTLY => {
            window >= application
        }
        _ => seen.in_flight_ratio.is_some_and(|ratio| ratio > IN_FLIGHT),
    };
    match is_window {
        true if facts.is_limited_by_losses() && drops => (Place::Receiver, Cause::ReceiverSocket),
        true if facts.grows() => (Place::Path, Cause::StartUp),
        true => path(facts),
        false => facts.sender(),
    }
}

/// What became of datagrams, as shares of those that were sent or refused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DatagramShares {
    pub(super) lost: f64,
    pub(super) dropped_by_socket: f64,
    pub(super) refused: f64,
}

/// A stream of datagrams.
pub(super) fn datagrams(facts: &Facts, shares: DatagramShares) -> (Place, Cause) {
    let demand = facts.evidence.demand_sender.unwrap_or(0.0);
    let DatagramShares { lost, dropped_by_socket, refused } = shares;
    match () {
        () if facts.misses_rate && demand >= DATAGRAM_DEMAND => (Place::Sender, Cause::LocalCpu),
        () if facts.misses_rate && refused <= DATAGRAMS_LOST => (Place::Sender, Cause::SenderIdle),
        () if refused > DATAGRAMS_LOST => (Place::LocalQueue, Cause::LocalQueue),
        () if lost > DATAGRAMS_LOST && dropped_by_socket * 2.0 > lost => {
            (Place::Receiver, Cause::ReceiverSocket)
        }
        () if lost > MANY_DATAGRAMS_LOST => (Place::Path, Cause::PathRate),
        () if lost > DATAGRAMS_LOST => (Place::Path, Cause::Loss),
        () if facts.keeps_rate => (Place::Sender, Cause::OwnPacing),
        () if demand >= DATAGRAM_DEMAND => (Place::Sender, Cause::LocalCpu),
        // A call that sends waits for room in the socket's buffer, which the device empties.
        () => (Place::LocalQueue, Cause::LocalQueue),
    }
}

/// What became of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transactions {
    /// The share of all flows' time in which a lost one was waited for.
    pub(super) lost_share: f64,
    /// The share that went to those that took 10 times the median and 1 ms.
    pub(super) stalled_share: f64,
    pub(super) median_ns: f64,
    pub(super) least_ns: f64,
    /// Which end's conductor stood still.
    pub(super) client_was_late: bool,
    pub(super) server_was_late: bool,
}

/// Requests and responses.
pub(super) fn transactions(facts: &Facts, seen: Transactions) -> (Place, Cause) {
    let demand = facts.evidence.demand_sender.unwrap_or(0.0);
    let demand = demand.max(facts.evidence.demand_receiver.unwrap_or(0.0));
    let stalls = match (seen.client_was_late, seen.server_was_late) {
        (true, _) => Place::Sender,
        (false, true) => Place::Receiver,
        (false, false) => Place::Path,
    };
    match () {
        () if facts.keeps_rate => (Place::Sender, Cause::OwnPacing),
        () if seen.lost_share > STALLED => (Place::Path, Cause::Loss),
        () if seen.stalled_share > STALLED && demand < STALL_DEMAND => (stalls, Cause::Stalls),
        () if seen.stalled_share > STALLED => (Place::Sender, Cause::BothCpus),
        () if seen.median_ns > PATH_DELAY_NS && seen.median_ns < EVEN * seen.least_ns => {
            (Place::Path, Cause::PathDelay)
        }
        () => (Place::Sender, Cause::BothCpus),
    }
}

/// Whether the evidence is twice past the threshold of its rule.
pub(super) fn is_clear(facts: &Facts, cause: Cause) -> bool {
    let evidence = &facts.evidence;
    let above = |value: Option<f64>, limit: f64| value.is_some_and(|value| value >= 2.0 * limit);
    let busy = evidence.busy_ratio;
    match cause {
        Cause::SendBuffer => above(evidence.sndbuf_limited_ratio, HELD),
        Cause::ReceiveWindow => {
            above(evidence.rwnd_limited_ratio.or(evidence.flow_control_ratio), HELD)
        }
        Cause::OwnPacing => facts.keeps_rate,
        Cause::SenderIdle => busy.is_some_and(|busy| busy < BUSY / 2.0),
        Cause::ReceiverSocket if evidence.socket_drops.is_some() => {
            above(evidence.lost_ratio, LOST)
        }
        Cause::ReceiverIdle | Cause::ReceiverSocket => {
            evidence.receive_queue_bytes.is_some_and(|bytes| bytes >= 2 * UNREAD_BYTES)
        }
        Cause::Loss => {
            let is_held = evidence.rwnd_limited_ratio.is_some_and(|share| share >= HELD);
            above(evidence.lost_ratio, LOST) && !is_held
        }
        Cause::PathRate => above(facts.queueing().map(|times| times - 1.0), QUEUEING - 1.0),
        Cause::StartUp => above(facts.trend.map(|trend| trend - 1.0), TREND - 1.0),
        Cause::LocalCpu => evidence.demand_sender.is_some_and(|demand| demand >= BUSY),
        Cause::RemoteCpu => evidence.demand_receiver.is_some_and(|demand| demand >= BUSY),
        Cause::LocalQueue => above(facts.local_queue_ratio, LOST),
        Cause::PathDelay => true,
        Cause::Path | Cause::Stalls | Cause::BothCpus => false,
    }
}
