//! The datagrams of a media stream. All integers are little-endian.

use crate::ctstraffic::{CONNECTION_ID_BYTES, ConnectionId};

/// The datagram with which a client requests a stream.
pub const START: [u8; 5] = *b"START";

/// Bytes in front of a datagram's data.
pub const HEADER_BYTES: usize = 26;

/// Bytes of the datagram with the stream's id.
pub const ID_BYTES: usize = FLAG_BYTES + CONNECTION_ID_BYTES;

/// The largest payload of a UDP datagram over IPv4, bytes.
pub const DATAGRAM_MOST_BYTES: u32 = 65_507;

/// The smallest size of datagrams that every frame can be split into, bytes: a datagram can be cut so
/// that it and the next one each have a header and a byte.
pub const DATAGRAM_LEAST_BYTES: u32 = 2 * HEADER_BYTES as u32 + 1;

/// Ticks per second of the counter that linerate writes into its datagrams, which is that of current
/// Windows. It is to count from the program's start: the original keeps 48 bits of it.
pub const SENDER_FREQUENCY: i64 = 10_000_000;

const FLAG_BYTES: usize = 2;
const DATA_FLAG: u16 = 0x0000;
const ID_FLAG: u16 = 0x1000;

/// What stands in front of a datagram's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataHeader {
    /// The frame's number; a stream's first has 1.
    pub sequence: i64,
    /// The sender's counter just before it sent the datagram, ticks.
    pub sender_counter: i64,
    /// The counter's ticks per second.
    pub sender_frequency: i64,
}

impl DataHeader {
    /// Writes the header to the front of a datagram. One that is too short stays as it is.
    #[inline]
    pub fn encode(&self, datagram: &mut [u8]) {
        let Some(bytes) = datagram.first_chunk_mut::<HEADER_BYTES>() else { return };
        bytes[..2].copy_from_slice(&DATA_FLAG.to_le_bytes());
        bytes[2..10].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[10..18].copy_from_slice(&self.sender_counter.to_le_bytes());
        bytes[18..].copy_from_slice(&self.sender_frequency.to_le_bytes());
    }
}

/// The datagram with a stream's id.
pub fn encode_id(id: &ConnectionId) -> [u8; ID_BYTES] {
    let mut datagram = [0; ID_BYTES];
    datagram[..FLAG_BYTES].copy_from_slice(&ID_FLAG.to_le_bytes());
    datagram[FLAG_BYTES..].copy_from_slice(id.wire());
    datagram
}

/// A datagram from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// The stream's id.
    Id(ConnectionId),
    /// A part of a frame, and its data.
    Data(DataHeader, &'a [u8]),
}

/// Why bytes are no datagram of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// Shorter than its kind.
    #[error("a datagram of {length} bytes is shorter than the {least} of its kind")]
    TooShort {
        /// Its length, bytes.
        length: usize,
        /// The least for its kind, bytes.
        least: usize,
    },
    /// Of a kind that isn't known.
    #[error("a datagram begins with the unknown flag {0:#06x}")]
    UnknownFlag(u16),
    /// To a server: something else than [`START`].
    #[error("a datagram of {0} bytes is not START")]
    NotStart(usize),
}

impl<'a> Datagram<'a> {
    /// Reads a datagram from a server.
    ///
    /// # Errors
    /// It is too short, or of no known kind.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DatagramError> {
        let too_short = |least| DatagramError::TooShort { length: bytes.len(), least };
        let flag = bytes.first_chunk().ok_or(too_short(FLAG_BYTES))?;
        match u16::from_le_bytes(*flag) {
            DATA_FLAG => {
                let (header, data) =
                    bytes.split_first_chunk::<HEADER_BYTES>().ok_or(too_short(HEADER_BYTES))?;
                let header = DataHeader {
                    sequence: number_at(header, 2),
                    sender_counter: number_at(header, 10),
                    sender_frequency: number_at(header, 18),
                };
                Ok(Self::Data(header, data))
            }
            ID_FLAG => {
                let id = bytes.get(FLAG_BYTES..).and_then(<[u8]>::first_chunk);
                Ok(Self::Id(ConnectionId::of_wire(*id.ok_or(too_short(ID_BYTES))?)))
            }
            other => Err(DatagramError::UnknownFlag(other)),
        }
    }
}

/// Eight bytes of a header from this place on.
fn number_at(header: &[u8; HEADER_BYTES], place: usize) -> i64 {
    let bytes = header.get(place..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

/// Checks a datagram to a server.
///
/// # Errors
/// It is something else than [`START`].
pub fn check_start(bytes: &[u8]) -> Result<(), DatagramError> {
    if bytes == START { Ok(()) } else { Err(DatagramError::NotStart(bytes.len())) }
}
