//! What a proxy has done, counted by its threads.

use linerate_wire::relay::End;

use crate::tally::Counter;

/// What one thread has done: it writes, others read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counts {
    pub(super) connections: Counter,
    pub(super) open: Counter,
    pub(super) refused: Counter,
    pub(super) failed: Counter,
    pub(super) streams: Counter,
    pub(super) untold: Counter,
    /// By the end where bytes come from.
    ways: [WayCounts; 2],
}

/// What one thread has carried from one end.
#[derive(Debug, Default)]
pub(super) struct WayCounts {
    pub(super) bytes: Counter,
    pub(super) held_bytes: Counter,
    pub(super) datagrams: Counter,
    pub(super) dropped_datagrams: Counter,
    /// Packets that were sent to this end, and that were lost on the way there.
    pub(super) sent_packets: Counter,
    pub(super) lost_packets: Counter,
}

impl Counts {
    pub(super) fn end(&self, end: End) -> &WayCounts {
        let [client, target] = &self.ways;
        match end {
            End::Client => client,
            End::Target => target,
        }
    }
}

/// What a proxy has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Clients that were taken.
    pub connections: u64,
    /// Those of them that are still there.
    pub open: u64,
    /// Clients that were refused, because of a limit.
    pub refused: u64,
    /// Connections to the target that failed before they stood.
    pub failed: u64,
    /// Streams that were carried.
    pub streams: u64,
    /// Events that were dropped, because too many waited to be read.
    pub untold: u64,
    /// What came from clients, and what went to them.
    pub client: EndTotals,
    /// What came from the target, and what went to it.
    pub target: EndTotals,
}

/// What a proxy has done at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndTotals {
    /// Bytes of streams that came from there and were taken by the other end.
    pub bytes: u64,
    /// Bytes that came from there and wait in the proxy.
    pub held_bytes: u64,
    /// Datagrams that came from there and were passed on.
    pub datagrams: u64,
    /// Datagrams that came from there and for which the other end had no room.
    pub dropped_datagrams: u64,
    /// Packets that were sent there.
    pub sent_packets: u64,
    /// Packets that were sent there and lost: what was in them was sent again over this path only.
    pub lost_packets: u64,
}

impl Totals {
    pub(super) fn with(self, counts: &Counts) -> Self {
        Self {
            connections: self.connections + counts.connections.value(),
            open: self.open + counts.open.value(),
            refused: self.refused + counts.refused.value(),
            failed: self.failed + counts.failed.value(),
            streams: self.streams + counts.streams.value(),
            untold: self.untold + counts.untold.value(),
            client: self.client.with(counts.end(End::Client)),
            target: self.target.with(counts.end(End::Target)),
        }
    }
}

impl EndTotals {
    fn with(self, counts: &WayCounts) -> Self {
        Self {
            bytes: self.bytes + counts.bytes.value(),
            held_bytes: self.held_bytes + counts.held_bytes.value(),
            datagrams: self.datagrams + counts.datagrams.value(),
            dropped_datagrams: self.dropped_datagrams + counts.dropped_datagrams.value(),
            sent_packets: self.sent_packets + counts.sent_packets.value(),
            lost_packets: self.lost_packets + counts.lost_packets.value(),
        }
    }
}
