//! The rules of streams of datagrams.

use super::super::{Cause, Place};
use super::{DATAGRAM_DEMAND, Facts, LOST};

/// Datagrams lost or dropped: what counts, and what random loss seldom exceeds.
const DATAGRAMS_LOST: f64 = 0.001;
const MANY_DATAGRAMS_LOST: f64 = 0.05;

/// What became of datagrams, as shares of those that were sent or refused.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct DatagramShares {
    pub(in super::super) lost: f64,
    pub(in super::super) dropped_by_socket: f64,
    pub(in super::super) refused: f64,
    /// What the queue of the sender's own device dropped, other packets too.
    pub(in super::super) dropped_here: f64,
    /// Whether the path carries datagrams of the asked size no longer.
    pub(in super::super) mtu_is_short: bool,
    /// What limits the connection that carries them (QUIC), which waits for its congestion window.
    pub(in super::super) connection: Option<(Place, Cause)>,
}

/// A stream of datagrams.
pub(in super::super) fn datagrams(facts: &Facts, shares: DatagramShares) -> (Place, Cause) {
    let demand = facts.evidence.demand_sender.unwrap_or(0.0);
    let DatagramShares { lost, dropped_by_socket, refused, dropped_here, .. } = shares;
    // The own device holds packets back, so that the rate is missed.
    let is_held_here = facts.local_queue_ratio.is_some_and(|ratio| ratio > LOST);
    // A call that sends waits for room in the socket's buffer, which the device empties.
    let nothing_known = (Place::LocalQueue, Cause::LocalQueue);
    match () {
        () if refused > DATAGRAMS_LOST && shares.mtu_is_short => (Place::Path, Cause::PathMtu),
        () if facts.misses_rate && demand >= DATAGRAM_DEMAND => (Place::Sender, Cause::LocalCpu),
        () if refused > DATAGRAMS_LOST => (Place::LocalQueue, Cause::LocalQueue),
        () if is_held_here && facts.misses_rate => (Place::LocalQueue, Cause::LocalQueue),
        () if lost > DATAGRAMS_LOST && dropped_here * 2.0 > lost => {
            (Place::LocalQueue, Cause::LocalQueue)
        }
        () if lost > DATAGRAMS_LOST && dropped_by_socket * 2.0 > lost => {
            (Place::Receiver, Cause::ReceiverSocket)
        }
        () if lost > DATAGRAMS_LOST => (Place::Path, lost_on_path(facts, &shares)),
        () if facts.keeps_rate && facts.delays.is_some_and(|all| all.has_growing_queue(1.0)) => {
            (Place::Path, Cause::PathRate)
        }
        () if facts.keeps_rate => (Place::Sender, Cause::OwnPacing),
        () if shares.connection.is_some() => shares.connection.unwrap_or(nothing_known),
        () if facts.misses_rate => (Place::Sender, Cause::SenderIdle),
        () if demand >= DATAGRAM_DEMAND => (Place::Sender, Cause::LocalCpu),
        () => nothing_known,
    }
}

/// Whether a full queue lost them, or something else.
fn lost_on_path(facts: &Facts, shares: &DatagramShares) -> Cause {
    let is_rate = shares.connection.is_some_and(|(_, cause)| cause == Cause::PathRate);
    match facts.delays {
        _ if is_rate => Cause::PathRate,
        Some(delays) if delays.has_full_queue(1.0) || delays.has_growing_queue(1.0) => {
            Cause::PathRate
        }
        // Delays that jitter hides tell nothing of a queue, unlike those that are next to none.
        _ if shares.lost > MANY_DATAGRAMS_LOST => Cause::PathRate,
        _ => Cause::Loss,
    }
}

/// Whether the evidence is twice past the threshold of its rule.
pub(in super::super) fn is_clear_of_datagrams(
    facts: &Facts,
    shares: DatagramShares,
    cause: Cause,
) -> bool {
    let demand = |demand: Option<f64>| demand.is_some_and(|demand| demand >= super::BUSY);
    let DatagramShares { lost, dropped_by_socket, refused, .. } = shares;
    match cause {
        // Without the delays nobody knows whether a queue grew meanwhile.
        Cause::OwnPacing => {
            facts.delays.is_some_and(|delays| delays.is_clearly_without_queue())
                && lost * 2.0 <= DATAGRAMS_LOST
        }
        Cause::PathRate => facts
            .delays
            .is_some_and(|delays| delays.has_full_queue(2.0) || delays.has_growing_queue(2.0)),
        Cause::Loss => {
            lost >= 2.0 * DATAGRAMS_LOST
                && shares.connection.is_none()
                && facts.delays.is_some_and(|delays| delays.is_clearly_without_queue())
        }
        Cause::LocalQueue => {
            let dropped = refused.max(shares.dropped_here);
            dropped >= 2.0 * DATAGRAMS_LOST
                || facts.local_queue_ratio.is_some_and(|ratio| ratio >= 2.0 * LOST)
        }
        Cause::ReceiverSocket => lost >= 2.0 * DATAGRAMS_LOST && dropped_by_socket >= 0.9 * lost,
        Cause::LocalCpu => demand(facts.evidence.demand_sender),
        Cause::RemoteCpu => demand(facts.evidence.demand_receiver),
        _ => false,
    }
}
