//! The rules of flows over QUIC.

use super::super::{Cause, Place};
use super::{DATAGRAM_DEMAND, Facts, HELD, MOSTLY, path};

/// The share of the lost packets that drops of the receiver's socket must come to where receive offload is on. A drop may
/// then be a whole train: stalled readers lost 10 datagrams a drop at the least mean. How long the trains were isn't
/// known, so that the drops are compared as they were counted.
const TRAINS_DROPPED: f64 = 0.1;
/// Delays of the receiver's conductor, at least, against the time that flow control held up the sender. A standstill is
/// told up to 50 ms shorter than it was, and flow control holds until the first packet after it.
const DELAYED: f64 = 0.6;
/// The share of a window in flight.
const IN_FLIGHT: f64 = 0.5;
/// Several streams whose windows are too small for the path are held up that often in a round trip.
const BLOCKED: f64 = 0.5;

/// What the two ends' connections tell of a flow over QUIC.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct QuicFacts {
    /// The share of the congestion window that was in flight.
    pub(in super::super) in_flight_ratio: Option<f64>,
    /// The shares of the time that the sender waited for its windows (congestion and pacing), and for data.
    pub(in super::super) window_ratio: Option<f64>,
    pub(in super::super) application_ratio: Option<f64>,
    /// Whether packets were spaced out for a rate that was asked for, and for which share of the time.
    pub(in super::super) asked_pacing_ratio: Option<f64>,
    /// What the receiver's socket dropped, as a share of the packets that were lost; only of a connection that has the
    /// socket for itself.
    pub(in super::super) socket_drop_ratio: Option<f64>,
    /// Whether that may be trains of datagrams.
    pub(in super::super) drops_trains: bool,
    /// How late the receiver's conductor woke up, altogether, against the time of flow control.
    pub(in super::super) wakeup_delay_ratio: Option<f64>,
    /// Of a connection with several streams whose own windows aren't told apart: the share of the time in which nothing
    /// could be sent, and how often in a round trip a stream's window held it up.
    pub(in super::super) nothing_to_send_ratio: Option<f64>,
    pub(in super::super) blocked_per_round_trip: Option<f64>,
}

/// A stream over QUIC.
pub(in super::super) fn quic(facts: &Facts, seen: QuicFacts) -> (Place, Cause) {
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
    if above(seen.nothing_to_send_ratio, MOSTLY) && above(seen.blocked_per_round_trip, BLOCKED) {
        return (Place::ReceiveWindow, Cause::ReceiveWindow);
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
