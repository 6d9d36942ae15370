//! What a dialect's bulk transfers do beside what their steps say.

use std::sync::Arc;

use super::{CALLS_PER_TURN, Goal};
use crate::phase::Phase;

/// After so many bytes a sender yields its processor. A receiver that shares the processor then
/// takes the bytes while the cache still has them. Without a yield, the kernel at times runs the
/// sender until every buffer is full, and then each byte costs twice as much. On a processor of
/// its own the call comes back at once.
///
/// Many flows gain most. A lone flow loses where its receiver doesn't yield.
const BYTES_PER_YIELD: usize = 2560 << 10;

/// What the bulk transfers of a load do beside what their steps say.
#[derive(Clone)]
pub(crate) struct BulkRules {
    pub(crate) sender: SenderRules,
    pub(crate) receiver: ReceiverRules,
    /// What the flows of this direction carry together, where that ends the load.
    pub(crate) goal: Option<Arc<Goal>>,
}

/// Those of linerate's own transfers.
static NATIVE: BulkRules = BulkRules {
    sender: SenderRules { bytes_per_yield: BYTES_PER_YIELD, calls_per_turn: CALLS_PER_TURN },
    receiver: ReceiverRules { is_held: false, drains: false, ends_with_bytes_since: None },
    goal: None,
};

impl BulkRules {
    /// Those of linerate's own transfers.
    pub(crate) fn native() -> &'static Self {
        &NATIVE
    }
}

/// Rules of senders over connections.
#[derive(Clone, Copy)]
pub(crate) struct SenderRules {
    /// See [`BYTES_PER_YIELD`].
    pub(crate) bytes_per_yield: usize,
    /// System calls in one turn.
    pub(crate) calls_per_turn: u32,
}

/// Rules of receivers.
#[derive(Clone, Copy)]
pub(crate) struct ReceiverRules {
    /// Whether nothing is received before the load begins.
    pub(crate) is_held: bool,
    /// Whether what has come by the time that the load is drained is received and counted.
    pub(crate) drains: bool,
    /// The flow's time ends with the last bytes that came in this phase or a later one; absent: when the receiver
    /// ends.
    pub(crate) ends_with_bytes_since: Option<Phase>,
}

impl ReceiverRules {
    /// Whether a receiver waits for the load to begin.
    #[inline]
    pub(super) fn holds(&self, phase: Phase) -> bool {
        self.is_held && phase == Phase::Hold
    }

    /// Whether what comes no longer counts.
    #[inline]
    pub(super) fn are_over(&self, phase: Phase) -> bool {
        phase > Phase::Drained || (phase == Phase::Drained && !self.drains)
    }

    /// Whether the flow's time ends with bytes that come in this phase, unless more do.
    #[inline]
    pub(super) fn end_with_bytes(&self, phase: Phase) -> bool {
        self.ends_with_bytes_since.is_some_and(|since| phase >= since)
    }
}
