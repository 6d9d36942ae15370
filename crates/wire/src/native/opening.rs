//! The first bytes of a TCP connection: what it is, and whose.
//!
//! Control and data share one TCP port. A control connection starts with a TLS record (RFC 8446,
//! section 5.1: content type handshake, 0x16), a data connection with the opening; where the load
//! is carried under TLS, its handshake follows the opening.

use super::TOKEN_BYTES;

/// Bytes of an opening.
pub const OPENING_BYTES: usize = 32;

/// How every opening starts.
pub const MAGIC: [u8; 4] = *b"LRD1";

const TLS_HANDSHAKE: u8 = 0x16;

/// What the client says first on a data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The flow that the connection carries.
    pub flow: u32,
    /// The token of its test.
    pub token: [u8; TOKEN_BYTES],
}

/// What a connection turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Control: a TLS handshake.
    Control,
    /// Data: an [`Opening`].
    Data,
    /// Nothing of ours.
    Foreign,
}

/// Why bytes are no opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// They don't start with [`MAGIC`].
    #[error("the connection doesn't start like a data connection")]
    Magic,
    /// The last 8 bytes are not zero.
    #[error("the reserved bytes of the opening are not zero")]
    Reserved,
}

impl Opening {
    /// The opening as it stands on the wire: magic, flow (big-endian), token, 8 zero bytes.
    pub fn encode(&self) -> [u8; OPENING_BYTES] {
        let mut bytes = [0; OPENING_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.flow.to_be_bytes());
        bytes[8..24].copy_from_slice(&self.token);
        bytes
    }

    /// Reads an opening.
    ///
    /// # Errors
    ///
    /// When the bytes don't start with [`MAGIC`] or don't end in zeros.
    pub fn decode(bytes: &[u8; OPENING_BYTES]) -> Result<Self, OpeningError> {
        let (magic, rest) = bytes.split_at(4);
        let (flow, rest) = rest.split_at(4);
        let (token, reserved) = rest.split_at(TOKEN_BYTES);
        if magic != MAGIC {
            return Err(OpeningError::Magic);
        }
        if reserved != [0; 8] {
            return Err(OpeningError::Reserved);
        }
        let flow = flow.iter().fold(0, |flow, byte| flow << 8 | u32::from(*byte));
        let mut opening = Self { flow, token: [0; TOKEN_BYTES] };
        opening.token.copy_from_slice(token);
        Ok(opening)
    }
}

/// What a TCP connection is, by the bytes it started with; `None` while there are none. One byte
/// is enough to choose, more make a `Data` surer.
pub fn sniff(first: &[u8]) -> Option<Arrival> {
    match first {
        [] => None,
        [TLS_HANDSHAKE, ..] => Some(Arrival::Control),
        _ if first.iter().zip(MAGIC).all(|(byte, wanted)| *byte == wanted) => Some(Arrival::Data),
        _ => Some(Arrival::Foreign),
    }
}

#[cfg(test)]
mod tests;
