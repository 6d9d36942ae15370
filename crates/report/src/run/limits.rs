//! What limits are called.

use linerate_measure::limits::{Cause, Place};

/// Where data stood.
pub(super) fn place(place: Place) -> &'static str {
    match place {
        Place::Sender => "at the sending program",
        Place::SendBuffer => "in the send buffer",
        Place::LocalQueue => "in the queue of the sender's device",
        Place::Path => "on the path",
        Place::ReceiveWindow => "before the receive window",
        Place::Receiver => "at the receiver",
    }
}

/// Why it stood there.
pub(super) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::OwnPacing => "the rate that was asked for",
        Cause::LocalCpu => "the sender's processor",
        Cause::SenderIdle => "a sender that did nothing",
        Cause::SendBuffer => "the size of the send buffer",
        Cause::LocalQueue => "the sender's own device or shaper",
        Cause::ReceiveWindow => "the receive window",
        Cause::StartUp => "a congestion window that was still growing",
        Cause::Loss => "losses",
        Cause::PathRate => "the rate of the slowest link",
        Cause::PathDelay => "the time that the path takes",
        Cause::PathMtu => "the longest packet of the path",
        Cause::Path => "the path",
        Cause::Stalls => "times without answers",
        Cause::RemoteCpu => "the receiver's processor",
        Cause::ReceiverSocket => "the receiver's socket buffer",
        Cause::ReceiverIdle => "a receiver that did nothing",
        Cause::BothCpus => "work and wake-ups at both ends",
    }
}
