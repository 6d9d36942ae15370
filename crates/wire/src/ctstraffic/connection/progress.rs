//! How far a transfer is: what its turns allow, what is outstanding, what is done.

use crate::ctstraffic::transfer::{Pattern, TransferPlan, Turns};

/// One direction, in bytes since the connection's beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// What the turns so far allow.
    allowed: u64,
    /// What was given out to be sent.
    begun: u64,
    /// What was sent or received.
    done: u64,
}

/// The progress of one end.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    turns: Turns,
    send: Direction,
    receive: Direction,
    /// Another send may begin while fewer bytes are outstanding.
    backlog_bytes: u64,
}

impl Progress {
    pub(super) fn new(plan: &TransferPlan) -> Self {
        let buffer_bytes = plan.buffer_bytes.high.max(1);
        let sends = u64::from(plan.outstanding_sends.max(1));
        // In turns, one send at a time is outstanding.
        let backlog_bytes = match plan.pattern {
            Pattern::PushPull => 1,
            _ => buffer_bytes.saturating_mul(sends),
        };
        let mut progress = Self {
            turns: plan.turns(),
            send: Direction::default(),
            receive: Direction::default(),
            backlog_bytes,
        };
        progress.begin_turn();
        progress
    }

    /// Begins the next turn if this one is done; whether there is anything left to do.
    fn begin_turn(&mut self) -> bool {
        let Self { send, receive, .. } = self;
        if send.done < send.allowed || receive.done < receive.allowed {
            return true;
        }
        let Some(turn) = self.turns.next() else { return false };
        send.allowed = send.allowed.saturating_add(turn.send_bytes);
        receive.allowed = receive.allowed.saturating_add(turn.receive_bytes);
        true
    }

    /// The next send of up to `most` bytes: its offset and its length.
    pub(super) fn begin_send(&mut self, most: u64) -> Option<(u64, u64)> {
        let Direction { allowed, begun, done } = self.send;
        let outstanding = begun - done;
        if begun >= allowed || outstanding >= self.backlog_bytes {
            return None;
        }
        let bytes = most.max(1).min(allowed - begun);
        self.send.begun += bytes;
        Some((begun, bytes))
    }

    /// The offset of what comes next, and how many bytes of up to `most` may be read.
    pub(super) fn receivable(&self, most: u64) -> Option<(u64, u64)> {
        let Direction { allowed, done, .. } = self.receive;
        (done < allowed).then(|| (done, most.max(1).min(allowed - done)))
    }

    /// So many outstanding bytes were sent; whether there were as many.
    pub(super) fn record_sent(&mut self, bytes: u64) -> bool {
        if bytes > self.send.begun - self.send.done {
            return false;
        }
        self.send.done += bytes;
        true
    }

    /// So many bytes came; whether as many were to come.
    pub(super) fn record_received(&mut self, bytes: u64) -> bool {
        if bytes > self.receive.allowed - self.receive.done {
            return false;
        }
        self.receive.done += bytes;
        true
    }

    pub(super) fn is_complete(&mut self) -> bool {
        !self.begin_turn()
    }

    pub(super) fn set_backlog(&mut self, bytes: u64) {
        self.backlog_bytes = bytes.max(1);
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.send.done
    }

    pub(super) fn received_bytes(&self) -> u64 {
        self.receive.done
    }
}
