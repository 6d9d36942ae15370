//! Limits in words.

use super::{Cause, Limit, Place};
use crate::plan::Direction;
use crate::sample::Role;

impl Limit {
    /// Whether the network or the plan is the limit, as it should be.
    pub fn is_well(&self) -> bool {
        matches!(
            self.cause,
            Cause::OwnPacing | Cause::PathRate | Cause::PathDelay | Cause::Path | Cause::BothCpus
        )
    }

    /// The sender and the receiver of its direction.
    pub fn ends(&self) -> (Role, Role) {
        match self.direction {
            Direction::Down => (Role::Server, Role::Client),
            Direction::Up | Direction::Both => (Role::Client, Role::Server),
        }
    }

    /// What limited, so that it can stand behind "limited by".
    pub fn describe(&self) -> String {
        let (sender, receiver) = self.ends();
        let (sender, receiver) = (sender.name(), receiver.name());
        match self.cause {
            Cause::OwnPacing => "the rate or schedule that was asked for".to_owned(),
            Cause::LocalCpu => format!("the {sender}'s processor"),
            Cause::SenderIdle => format!("the {sender}, which did nothing for a while"),
            Cause::SendBuffer => format!("the {sender}'s send buffer"),
            Cause::LocalQueue => format!("the queue of the {sender}'s own device"),
            Cause::ReceiveWindow => format!("the {receiver}'s receive window"),
            Cause::StartUp => "slow start: the test was too short".to_owned(),
            Cause::Loss => "losses on the path".to_owned(),
            Cause::PathRate => "the path's rate".to_owned(),
            Cause::PathDelay => "the path's delay".to_owned(),
            Cause::PathMtu => "the path's MTU: datagrams of this size don't fit".to_owned(),
            Cause::Path => "the path".to_owned(),
            Cause::Stalls => match self.place {
                Place::Sender => format!("stalls of the {sender}"),
                Place::Receiver => format!("stalls of the {receiver}"),
                _ => "stalls".to_owned(),
            },
            Cause::RemoteCpu => format!("the {receiver}'s processor"),
            Cause::ReceiverSocket => format!("the {receiver}'s socket buffer"),
            Cause::ReceiverIdle => format!("the {receiver}, which did nothing for a while"),
            Cause::BothCpus => "work and wake-ups at both ends".to_owned(),
        }
    }
}
