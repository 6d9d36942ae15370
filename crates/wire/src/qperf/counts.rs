//! What a connection has carried.

/// What was counted of a connection, in an interval or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of streams: sent by a server, those that were sent again included; received by a client, each once.
    pub bytes: u64,
    /// QUIC packets sent by a server, or received by a client.
    pub packets: u64,
    /// Packets that a server took for lost.
    pub lost_packets: u64,
}

impl Counts {
    /// What was counted since an earlier reading.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            packets: self.packets.saturating_sub(before.packets),
            lost_packets: self.lost_packets.saturating_sub(before.lost_packets),
        }
    }
}
