//! What is counted of a path's congestion.

/// How often a path was found congested (RFC 9002, section 7.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct CongestionCounts {
    /// By losses or marks; those that belong to one that was counted already are no more.
    pub(in super::super) events: u64,
    /// Part of them: by marks of explicit congestion notification.
    pub(in super::super) ecn_events: u64,
}

impl CongestionCounts {
    pub(in super::super) fn and(self, other: Self) -> Self {
        Self {
            events: self.events.saturating_add(other.events),
            ecn_events: self.ecn_events.saturating_add(other.ecn_events),
        }
    }

    pub(in super::super) fn without(self, part: Self) -> Self {
        Self {
            events: self.events.saturating_sub(part.events),
            ecn_events: self.ecn_events.saturating_sub(part.ecn_events),
        }
    }
}
