//! What has come on a connection.

use quinn_proto::EcnCodepoint;

use super::super::counted::Opened;
use super::super::session::{Agreed, Said};
use super::Connection;
use crate::transport::multiplexer::QuicStatistics;

/// What has come, opened or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Arrived {
    packets: u64,
    /// Datagrams with a mark of congestion.
    pub(super) ce_datagrams: u64,
    /// Acknowledgements that had come when a flush began.
    pub(super) acks_before_flush: u64,
}

impl Connection {
    /// A datagram has come, of so many packets, and is yet to be opened.
    pub(in super::super) fn record_datagram(&mut self, packets: u64, ecn: Option<EcnCodepoint>) {
        if self.has_unnoted {
            self.note_limits();
        }
        self.arrived.packets += packets;
        self.arrived.ce_datagrams += u64::from(ecn == Some(EcnCodepoint::Ce));
    }

    /// Acknowledgements that have come: the peer was there when it sent them.
    pub(crate) fn received_acks(&self) -> u64 {
        self.proto.stats().frame_rx.acks
    }

    fn said(&self) -> Option<Said> {
        let said = self.proto.crypto_session().handshake_data()?;
        said.downcast().ok().map(|said| *said)
    }

    /// What TLS has agreed on, so far.
    pub(crate) fn agreed(&self) -> Agreed {
        self.said().map_or_else(Agreed::default, |said| said.agreed)
    }

    /// The application protocol, so far.
    pub(crate) fn protocol(&self) -> Option<Vec<u8>> {
        self.said()?.protocol
    }

    /// Bytes of streams in packets that were sent, those that were sent again included, where that is counted.
    pub(crate) fn sent_stream_bytes(&self) -> Option<u64> {
        self.said()?.sent_stream_bytes
    }

    /// What users are told of it; what was not counted is absent.
    pub(crate) fn statistics(&self) -> QuicStatistics {
        let (status, agreed) = (self.status(), self.agreed());
        let opened: Option<Opened> = self.said().and_then(|said| said.opened);
        let packets = self.arrived.packets;
        QuicStatistics {
            rtt_us: u64::from(status.rtt_us),
            min_rtt_us: Some(u64::from(status.min_rtt_us)),
            ecn_capable: self.carries_marks(),
            sent_packets: status.sent_packets,
            lost_packets: status.lost_packets,
            congestion_events: status.congestion_events,
            ecn_congestion_events: status.ecn_events,
            received_packets: opened.map(|_| packets),
            reordered_packets: opened.map(|opened| opened.reordered),
            dropped_packets: opened.map(|opened| packets.saturating_sub(opened.taken)),
            duplicate_packets: opened.map(|opened| opened.duplicates),
            decryption_failures: opened.map(|opened| opened.failures),
            cipher_suite: agreed.suite,
            group: agreed.group,
        }
    }
}
