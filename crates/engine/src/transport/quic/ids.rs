//! Connection ids that others can read something from.
//!
//! Their layout is msquic's: a byte by chance and a server's number in 4 bytes, little-endian (where the
//! server has one); 2 bytes, its partition there and the number of a server's socket here; a well-known mark, up to 6 bytes (CIBIR);
//! chance, so that the last two parts have 7 bytes together.

use std::time::Duration;

use quinn_proto::{
    ConnectionId, ConnectionIdGenerator, EndpointConfig, InvalidCid, RandomConnectionIdGenerator,
};

const SERVER_ID_BYTES: usize = 5;
const PARTITION_BYTES: usize = 2;
const PAYLOAD_BYTES: usize = 7;
/// What the first packets go to is as long as can be, so that it can be told from what follows.
const FIRST_BYTES: usize = 20;

/// Bytes that stand in every connection id of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    bytes: [u8; Self::MOST_BYTES],
    length: u8,
}

impl Mark {
    /// The most bytes of one.
    pub const MOST_BYTES: usize = 6;

    /// A mark of 1 to 6 bytes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut mark = Self { bytes: [0; Self::MOST_BYTES], length: bytes.len() as u8 };
        mark.bytes.get_mut(..bytes.len()).filter(|_| !bytes.is_empty())?.copy_from_slice(bytes);
        Some(mark)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or(&self.bytes)
    }
}

/// What stands in the connection ids that an endpoint gives out, beside chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionIds {
    /// The server's number, for load balancers.
    pub server: Option<u32>,
    /// What all ids of a service have.
    pub mark: Option<Mark>,
    /// The number of the server's socket, big-endian here, among those that share its port.
    pub partition: Option<u16>,
    /// Whether ids have no bytes: connections are then known by the addresses of both ends.
    pub empty: bool,
}

impl ConnectionIds {
    /// Has an endpoint give out such ids.
    pub(super) fn apply(self, config: &mut EndpointConfig) {
        if self.empty {
            config.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
        } else if self != Self::default() {
            config.cid_generator(move || Box::new(self));
        }
    }

    /// What a client sends the first packets of a connection to.
    pub(super) fn first(self) -> ConnectionId {
        // It doesn't know the server's numbers yet.
        Self { server: None, partition: None, ..self }.make(FIRST_BYTES)
    }

    fn server_bytes(self) -> usize {
        if self.server.is_some() { SERVER_ID_BYTES } else { 0 }
    }

    /// The same for the socket of this number among those that share a port. Packets then come to that socket even
    /// after the client's address has changed.
    pub(crate) fn numbered(self, number: u32) -> Self {
        Self { partition: u16::try_from(number).ok(), ..self }
    }

    /// Where the socket's number stands.
    pub(crate) fn partition_at(self) -> usize {
        self.server_bytes()
    }

    fn mark_at(self) -> usize {
        self.partition_at() + PARTITION_BYTES
    }

    fn make(self, length: usize) -> ConnectionId {
        let mut bytes = RandomConnectionIdGenerator::new(length).generate_cid().to_vec();
        let server = self.server.map(u32::to_le_bytes);
        let partition = self.partition.map(u16::to_be_bytes);
        let parts = [
            (1, server.as_ref().map(<[u8; 4]>::as_slice)),
            (self.partition_at(), partition.as_ref().map(<[u8; 2]>::as_slice)),
            (self.mark_at(), self.mark.as_ref().map(Mark::bytes)),
        ];
        for (at, part) in parts {
            if let Some(part) = part
                && let Some(place) = bytes.get_mut(at..at + part.len())
            {
                place.copy_from_slice(part);
            }
        }
        ConnectionId::new(&bytes)
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.make(self.cid_len())
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let mark = self.mark.as_ref().map_or(&[][..], Mark::bytes);
        let partition = self.partition.map(u16::to_be_bytes);
        let is_there = |at: usize, part: &[u8]| id.get(at..).is_some_and(|id| id.starts_with(part));
        let is_ours = is_there(self.mark_at(), mark)
            && partition.is_none_or(|number| is_there(self.partition_at(), &number));
        is_ours.then_some(()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        self.mark_at() + PAYLOAD_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_what_they_are_to_have_where_it_belongs() {
        let mark = Mark::new(&[0xc1, 0xb1, 0x12]);
        for (server, length, at) in [(None, 9, 2), (Some(0x0102_0304), 14, 7)] {
            let mut ids =
                ConnectionIds { server, mark, partition: Some(0x0506), ..ConnectionIds::default() };
            let (one, other) = (ids.generate_cid(), ids.generate_cid());
            assert_eq!((one.len(), &one[at..at + 3]), (length, &[0xc1, 0xb1, 0x12][..]));
            assert_eq!(one[at - 2..at], [5, 6]);
            let another = ConnectionIds { partition: Some(0x0507), ..ids };
            assert!(another.validate(&one).is_err());
            if server.is_some() {
                assert_eq!(&one[1..5], [4, 3, 2, 1]);
            }
            assert_ne!(one, other);
            assert!(ids.validate(&one).is_ok());
            assert!(ids.validate(&ConnectionId::new(&[0; 14])).is_err());
            let first = ids.first();
            assert_eq!((first.len(), &first[2..5]), (FIRST_BYTES, &[0xc1, 0xb1, 0x12][..]));
        }
    }

    #[test]
    fn a_mark_has_one_to_six_bytes() {
        assert_eq!(Mark::new(&[]), None);
        assert_eq!(Mark::new(&[0; 7]), None);
        assert_eq!(Mark::new(&[9; 6]).unwrap().bytes(), [9; 6]);
    }
}
