//! The rules: the first that holds tells the place and the cause.
//!
//! The limits lie between what was measured of transfers whose limit was known: 290 over TCP, 150 over UDP and QUIC and
//! of requests and responses, and 280 over paths with round trips, jitter and queues as access networks have them.

mod datagrams;
mod quic;
mod transactions;

use super::delays::Delays;
use super::{Cause, LimitEvidence, Place};

pub(super) use datagrams::{DatagramShares, datagrams, is_clear_of_datagrams};
pub(super) use quic::{QuicFacts, quic};
pub(super) use transactions::{Transactions, is_clear_of_transactions, transactions};

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
/// The same of a sender that nothing held up and that lost nothing: its window grows until a queue stands.
const SHORT_QUEUEING: f64 = 1.05;
/// Such a queue against the variation of the round trips, which jitter makes as large.
const STEADY_QUEUE: f64 = 3.0;
/// Round trips that are no longer than this against the least wait for a thread rather than in a queue of the path.
const QUEUE_US: u32 = 1000;
/// The share of the time, or of the losses, that makes something the reason.
const MOSTLY: f64 = 0.5;
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
    /// How much round-trip times varied.
    pub(super) rtt_var_us: Option<u32>,
    /// Whether far more was acknowledged than came to the receiver.
    pub(super) is_acknowledged_ahead: bool,
    /// How long datagrams were on their way.
    pub(super) delays: Option<Delays>,
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
    pub(super) fn has_queue(&self) -> bool {
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

    /// Whether a queue stands in the path that is short against the round trip, as losses would make it longer.
    fn has_short_queue(&self) -> bool {
        let longer_us = self.evidence.rtt_us.zip(self.evidence.min_rtt_us);
        let longer_us = longer_us.map_or(0, |(rtt, least)| rtt.saturating_sub(least));
        let is_steady = self.rtt_var_us.is_some_and(|variation_us| {
            f64::from(longer_us) >= STEADY_QUEUE * f64::from(variation_us)
        });
        longer_us > QUEUE_US && is_steady && self.queueing() >= Some(SHORT_QUEUEING)
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
    let is_held = held(evidence.sndbuf_limited_ratio) || held(evidence.rwnd_limited_ratio);
    // Over a round trip something is on its way all the time. A sender that has nothing to send waits for its turn.
    if facts.keeps_rate && (busy < BUSY || (is_dry && !is_held)) {
        return (Place::Sender, Cause::OwnPacing);
    }
    if evidence.receive_queue_bytes.is_some_and(|bytes| bytes > unread) {
        let both = facts.processor(DEMAND).filter(|_| is_dry);
        return both.unwrap_or(facts.receiver());
    }
    // What the kernel says is then of the way to whoever acknowledges, and not of the way to the receiver.
    if facts.is_acknowledged_ahead {
        return (Place::Path, Cause::Path);
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
        false if facts.has_short_queue() => Cause::PathRate,
        false => Cause::Path,
    };
    (Place::Path, cause)
}

/// Whether the evidence of a stream is twice past the threshold of its rule.
pub(super) fn is_clear(facts: &Facts, cause: Cause) -> bool {
    let evidence = &facts.evidence;
    let above = |value: Option<f64>, limit: f64| value.is_some_and(|value| value >= 2.0 * limit);
    let busy = evidence.busy_ratio;
    match cause {
        Cause::SendBuffer => above(evidence.sndbuf_limited_ratio, HELD),
        Cause::ReceiveWindow => {
            above(evidence.rwnd_limited_ratio.or(evidence.flow_control_ratio), HELD)
        }
        // The kernel knows of TCP how busy the sender was, and what it had not sent.
        Cause::OwnPacing => match busy {
            Some(busy) if busy >= BUSY => {
                evidence.notsent_bytes.is_some_and(|bytes| bytes < DRY_BYTES / 2)
            }
            _ => facts.keeps_rate,
        },
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
        Cause::Path | Cause::PathDelay | Cause::PathMtu | Cause::Stalls | Cause::BothCpus => false,
    }
}
