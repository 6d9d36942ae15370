//! What stands at the start of a datagram under load.

use super::{DATA, DatagramError, REQUEST, RESPONSE, put, take};

/// Bytes of a [`DataHeader`].
pub const DATA_HEADER_BYTES: usize = 24;

/// Bytes of an [`RrHeader`].
pub const RR_HEADER_BYTES: usize = 16;

/// Flags, bit 0, as it stands in the first word: the datagram belongs to the warm-up.
const WARM_UP: u32 = 1 << 16;

/// The start of each datagram of a stream. Filler or pattern follows.
///
/// Layout: kind, flags, 2 zero bytes, tag (u32), sequence number (u64), send time (u64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// The flow's tag, from its [`super::Welcome`].
    pub tag: u32,
    /// 0 for the flow's first datagram, then one more for each.
    pub seq: u64,
    /// When it was sent, on the sender's monotonic clock.
    pub sent_ns: u64,
    /// Whether it belongs to the warm-up.
    pub warm_up: bool,
}

impl DataHeader {
    /// Writes the header at the start of a datagram.
    ///
    /// # Errors
    ///
    /// When there is too little room.
    #[inline]
    pub fn encode(&self, datagram: &mut [u8]) -> Result<(), DatagramError> {
        let mut header = [0; DATA_HEADER_BYTES];
        header[..4].copy_from_slice(&first_word(DATA, self.warm_up).to_be_bytes());
        header[4..8].copy_from_slice(&self.tag.to_be_bytes());
        header[8..16].copy_from_slice(&self.seq.to_be_bytes());
        header[16..].copy_from_slice(&self.sent_ns.to_be_bytes());
        put(&header, datagram)
    }

    /// Reads the header of a datagram; what follows it is not looked at.
    ///
    /// # Errors
    ///
    /// When the datagram is too short, of another kind, or has a reserved bit set.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<Self, DatagramError> {
        let header: &[u8; DATA_HEADER_BYTES] =
            datagram.first_chunk().ok_or(DatagramError::Length {
                bytes: datagram.len(),
                wanted_bytes: DATA_HEADER_BYTES,
            })?;
        let mut rest = header.as_slice();
        let first = u32::from_be_bytes(take(&mut rest)?);
        if first & !WARM_UP != u32::from(DATA) << 24 {
            return Err(wrong_first_word(first, &[DATA]));
        }
        Ok(Self {
            tag: u32::from_be_bytes(take(&mut rest)?),
            seq: u64::from_be_bytes(take(&mut rest)?),
            sent_ns: u64::from_be_bytes(take(&mut rest)?),
            warm_up: first & WARM_UP != 0,
        })
    }
}

/// The start of each request and response; filler or pattern follows. The response repeats the
/// request's header but for the kind.
///
/// Layout: kind, flags, 2 zero bytes, tag (u32), sequence number (u64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RrHeader {
    /// Whether it starts a response; otherwise a request.
    pub response: bool,
    /// The flow's tag, from its [`super::Welcome`].
    pub tag: u32,
    /// 0 for the flow's first request, then one more for each.
    pub seq: u64,
    /// Whether it belongs to the warm-up.
    pub warm_up: bool,
}

impl RrHeader {
    /// Writes the header at the start of a datagram.
    ///
    /// # Errors
    ///
    /// When there is too little room.
    #[inline]
    pub fn encode(&self, datagram: &mut [u8]) -> Result<(), DatagramError> {
        let kind = if self.response { RESPONSE } else { REQUEST };
        let mut header = [0; RR_HEADER_BYTES];
        header[..4].copy_from_slice(&first_word(kind, self.warm_up).to_be_bytes());
        header[4..8].copy_from_slice(&self.tag.to_be_bytes());
        header[8..].copy_from_slice(&self.seq.to_be_bytes());
        put(&header, datagram)
    }

    /// Reads the header of a datagram; what follows it is not looked at.
    ///
    /// # Errors
    ///
    /// When the datagram is too short, of another kind, or has a reserved bit set.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<Self, DatagramError> {
        let header: &[u8; RR_HEADER_BYTES] =
            datagram.first_chunk().ok_or(DatagramError::Length {
                bytes: datagram.len(),
                wanted_bytes: RR_HEADER_BYTES,
            })?;
        let mut rest = header.as_slice();
        let first = u32::from_be_bytes(take(&mut rest)?);
        let response = match first & !WARM_UP {
            word if word == u32::from(REQUEST) << 24 => false,
            word if word == u32::from(RESPONSE) << 24 => true,
            _ => return Err(wrong_first_word(first, &[REQUEST, RESPONSE])),
        };
        Ok(Self {
            response,
            tag: u32::from_be_bytes(take(&mut rest)?),
            seq: u64::from_be_bytes(take(&mut rest)?),
            warm_up: first & WARM_UP != 0,
        })
    }
}

/// The tag of a datagram under load, whichever it is; `None` where it is too short.
#[inline]
pub fn tag_of(datagram: &[u8]) -> Option<u32> {
    let tag = datagram.get(4..)?.first_chunk()?;
    Some(u32::from_be_bytes(*tag))
}

fn first_word(kind: u8, warm_up: bool) -> u32 {
    u32::from(kind) << 24 | if warm_up { WARM_UP } else { 0 }
}

#[cold]
fn wrong_first_word(first: u32, kinds: &[u8]) -> DatagramError {
    let [kind, ..] = first.to_be_bytes();
    if kinds.contains(&kind) { DatagramError::Reserved } else { DatagramError::Kind(kind) }
}
