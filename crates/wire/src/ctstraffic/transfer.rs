//! What one TCP connection transfers, and in which order.

use super::pace::PaceSettings;
use super::{Role, Span};

/// Who sends when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// The client sends.
    #[default]
    Push,
    /// The server sends.
    Pull,
    /// Both send in turn, the client first.
    PushPull,
    /// Both send at the same time, each a half.
    Duplex,
}

/// How a client ends a connection on which all went well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shutdown {
    /// The client closes its direction and waits until the server has closed the other one.
    #[default]
    Graceful,
    /// The client resets the connection.
    Rude,
}

/// What one end of a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferPlan {
    /// Which end.
    pub role: Role,
    /// Who sends when.
    pub pattern: Pattern,
    /// Bytes of both directions together, without the id and `DONE`.
    pub total_bytes: u64,
    /// Bytes of a client's turn in [`Pattern::PushPull`], at least 1.
    pub push_bytes: u32,
    /// Bytes of a server's turn there, at least 1.
    pub pull_bytes: u32,
    /// Bytes of a send or receive. With a range, each draws its own.
    pub buffer_bytes: Span,
    /// Sends that may be outstanding, in buffers of the greatest size; 0: one, until
    /// [`Connection::set_backlog`](super::connection::Connection::set_backlog) changes it.
    pub outstanding_sends: u32,
    /// When sends are due.
    pub pace: PaceSettings,
    /// How a client ends the connection.
    pub shutdown: Shutdown,
}

/// A part of a transfer: what one end sends and receives before the next part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Bytes to send.
    pub send_bytes: u64,
    /// Bytes to receive, at the same time.
    pub receive_bytes: u64,
}

impl TransferPlan {
    /// The turns of this end, in order.
    pub fn turns(&self) -> Turns {
        Turns { plan: *self, left_bytes: self.all_bytes(), is_push: true }
    }

    /// Bytes of both directions together. An odd total grows by one where both send a half.
    pub fn all_bytes(&self) -> u64 {
        match self.pattern {
            Pattern::Duplex => half(self.total_bytes).saturating_mul(2),
            _ => self.total_bytes,
        }
    }

    /// Bytes that this end sends in all, and bytes that it receives.
    pub fn amounts(&self) -> Turn {
        let total = self.total_bytes;
        let (push, pull) = match self.pattern {
            Pattern::Push => (total, 0),
            Pattern::Pull => (0, total),
            Pattern::Duplex => (half(total), half(total)),
            Pattern::PushPull => {
                let push = u64::from(self.push_bytes.max(1));
                let round = push + u64::from(self.pull_bytes.max(1));
                let pushed = total / round * push + (total % round).min(push);
                (pushed, total - pushed)
            }
        };
        self.turn(push, pull)
    }

    /// What this end does while the client sends and the server sends.
    fn turn(&self, push_bytes: u64, pull_bytes: u64) -> Turn {
        match self.role {
            Role::Client => Turn { send_bytes: push_bytes, receive_bytes: pull_bytes },
            Role::Server => Turn { send_bytes: pull_bytes, receive_bytes: push_bytes },
        }
    }
}

/// What each end sends where both send at once.
fn half(total_bytes: u64) -> u64 {
    total_bytes / 2 + total_bytes % 2
}

/// The turns of a transfer, as an iterator: one, or as many as [`Pattern::PushPull`] takes.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    plan: TransferPlan,
    left_bytes: u64,
    /// Whether the next turn is the client's, where both send in turn.
    is_push: bool,
}

impl Iterator for Turns {
    type Item = Turn;

    fn next(&mut self) -> Option<Turn> {
        let plan = &self.plan;
        if self.left_bytes == 0 {
            return None;
        }
        if plan.pattern != Pattern::PushPull {
            self.left_bytes = 0;
            return Some(plan.amounts());
        }
        let segment = if self.is_push { plan.push_bytes } else { plan.pull_bytes };
        let bytes = self.left_bytes.min(segment.max(1).into());
        let turn = if self.is_push { plan.turn(bytes, 0) } else { plan.turn(0, bytes) };
        self.left_bytes -= bytes;
        self.is_push = !self.is_push;
        Some(turn)
    }
}
