//! How requests and responses as datagrams are told apart, dialect by dialect.

use linerate_wire::native::datagram::RrHeader;

use super::NativeHeading;
use crate::buffers::Buffers;

/// How a dialect marks requests and responses. The loops are made for one of these, so that the choice costs nothing
/// where datagrams move.
pub(crate) trait Requests: Clone {
    /// Whether a response names no request: it answers the oldest one. After a loss nobody could tell whose a
    /// response is, so that all requests on their way are lost together.
    const IN_ORDER: bool;

    /// A datagram of so many bytes, as it is before anything is written to it.
    fn blank(&self, bytes: usize) -> Vec<u8>;
    /// Makes a datagram the request of this number.
    fn write_request(&self, datagram: &mut [u8], seq: u64, warm_up: bool);
    /// Which request a datagram answers, where `oldest` has waited longest; `None`: it answers none of the flow's.
    fn read_response(&self, datagram: &[u8], oldest: u64) -> Option<u64>;
    /// Writes the response to a datagram; `false`: it is no request of the flow's.
    fn write_response(&self, request: &[u8], response: &mut [u8]) -> bool;
    /// Whether a datagram tells that the peer has finished.
    fn is_end(&self, datagram: &[u8]) -> bool;
    /// What is done to a buffer before it is filled.
    fn before_receive(&self, buffer: &mut [u8]);
}

impl Requests for NativeHeading {
    const IN_ORDER: bool = false;

    fn blank(&self, bytes: usize) -> Vec<u8> {
        vec![0; bytes]
    }

    #[inline]
    fn write_request(&self, datagram: &mut [u8], seq: u64, warm_up: bool) {
        // A request has room for its header: the plan's limits see to it.
        let _has_room = RrHeader { response: false, tag: self.tag, seq, warm_up }.encode(datagram);
    }

    #[inline]
    fn read_response(&self, datagram: &[u8], _oldest: u64) -> Option<u64> {
        let header = RrHeader::decode(datagram).ok()?;
        (header.response && header.tag == self.tag).then_some(header.seq)
    }

    #[inline]
    fn write_response(&self, request: &[u8], response: &mut [u8]) -> bool {
        let Ok(header) = RrHeader::decode(request) else { return false };
        if header.response || header.tag != self.tag {
            return false;
        }
        // A response has room for its header: the plan's limits see to it.
        let _has_room = RrHeader { response: true, ..header }.encode(response);
        true
    }

    #[inline]
    fn is_end(&self, _datagram: &[u8]) -> bool {
        false
    }

    #[inline]
    fn before_receive(&self, _buffer: &mut [u8]) {}
}

/// Any datagram is a request or a response, but an empty one: that says the end.
impl Requests for Buffers {
    const IN_ORDER: bool = true;

    fn blank(&self, bytes: usize) -> Vec<u8> {
        self.filled(bytes, 1)
    }

    #[inline]
    fn write_request(&self, datagram: &mut [u8], _seq: u64, _warm_up: bool) {
        self.dirt.before_send(datagram);
    }

    #[inline]
    fn read_response(&self, _datagram: &[u8], oldest: u64) -> Option<u64> {
        Some(oldest)
    }

    #[inline]
    fn write_response(&self, _request: &[u8], response: &mut [u8]) -> bool {
        self.dirt.before_send(response);
        true
    }

    #[inline]
    fn is_end(&self, datagram: &[u8]) -> bool {
        datagram.is_empty()
    }

    #[inline]
    fn before_receive(&self, buffer: &mut [u8]) {
        self.dirt.before_receive(buffer);
    }
}
