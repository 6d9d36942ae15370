//! What a stream has done, as the conductor sees it.

use std::os::fd::AsFd;
use std::sync::Arc;

use crate::flow::FlowShared;
use crate::socket::tcp_status;
use crate::tally::Counts;

/// A stream as the conductor sees it.
pub(super) struct Shared {
    pub(super) flow: Arc<FlowShared>,
    pub(super) sends: bool,
}

/// A stream's figures at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) bytes: u64,
    pub(super) calls: u64,
    pub(super) packets: u64,
    /// Negative since an earlier moment, where more came late than were lost meanwhile.
    pub(super) lost: i64,
    pub(super) out_of_order: u64,
}

impl Figures {
    fn of(counts: &Counts, sends: bool) -> Self {
        Self {
            bytes: if sends { counts.sent_bytes } else { counts.received_bytes },
            calls: if sends { counts.send_calls } else { counts.receive_calls },
            packets: if sends { counts.datagrams.sent } else { counts.datagrams.expected },
            lost: i64::try_from(counts.datagrams.lost).unwrap_or(i64::MAX),
            out_of_order: counts.datagrams.reordered,
        }
    }

    /// What has happened since an earlier moment.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            calls: self.calls.saturating_sub(before.calls),
            packets: self.packets.saturating_sub(before.packets),
            lost: self.lost.saturating_sub(before.lost),
            out_of_order: self.out_of_order.saturating_sub(before.out_of_order),
        }
    }
}

impl Shared {
    /// All since the beginning, the omitted time included.
    pub(super) fn figures(&self) -> Figures {
        Figures::of(&self.flow.tally.counts(), self.sends)
    }

    /// What of that lies in the omitted time. A stream that hasn't seen the end of that time yet has
    /// done nothing since.
    pub(super) fn omitted(&self) -> Figures {
        match self.flow.base() {
            Some(base) => Figures::of(&base.counts, self.sends),
            None => self.figures(),
        }
    }

    /// Jitter now, nanoseconds.
    pub(super) fn jitter_ns(&self) -> f64 {
        let extra = self.flow.tally.known_extra();
        extra.map_or(0.0, |extra| f64::from_bits(extra.arrivals.jitter_ns.value()))
    }

    /// Segments that its connection sent again: known since it ended, or asked for now.
    pub(super) fn retransmits(&self) -> u32 {
        // The kernel forgets some of it when the connection ends.
        let status = self.flow.tcp_at_end().or_else(|| {
            let socket = self.flow.socket.as_ref()?;
            tcp_status(socket.as_fd())
        });
        status.map_or(0, |status| status.retransmitted_segments)
    }
}
