//! Messages of UDP flows: a handshake that makes the client's address prove itself, then data or
//! requests and responses.
//!
//! One UDP port serves these flows and QUIC. The first byte tells them apart, in the manner of
//! RFC 9443: 0x40 and above is QUIC (RFC 9000, section 17: the fixed bit, with or without the
//! header form bit), everything below is ours.
//!
//! The handshake, each step started by the client and sent again until it is answered:
//!
//! 1. the client sends a [`Hello`] of 64 bytes;
//! 2. the server, which keeps no state for it, answers with a shorter [`Cookie`] that it can
//!    recognise later: a keyed hash of the client's address, the flow and the token;
//! 3. the client shows the cookie in a [`Proof`] of 64 bytes: its address is really its own;
//! 4. the server answers with a shorter [`Welcome`] that names the flow's tag, which stands in
//!    every later message.
//!
//! So until its address is proved, a client gets fewer bytes than it sent. All numbers are
//! big-endian, reserved bytes are zero, and decoding accepts nothing else.

use super::TOKEN_BYTES;

mod handshake;
mod header;

pub use handshake::{
    COOKIE_BYTES, Cookie, Handshake, Hello, PADDED_BYTES, Proof, WELCOME_BYTES, Welcome,
};
pub use header::{DATA_HEADER_BYTES, DataHeader, RR_HEADER_BYTES, RrHeader, tag_of};

/// The kind byte of a [`Hello`].
pub const HELLO: u8 = 0x21;
/// The kind byte of a [`Cookie`].
pub const COOKIE: u8 = 0x22;
/// The kind byte of a [`Proof`].
pub const PROOF: u8 = 0x23;
/// The kind byte of a [`Welcome`].
pub const WELCOME: u8 = 0x24;
/// The kind byte of a [`DataHeader`].
pub const DATA: u8 = 0x25;
/// The kind byte of a request's [`RrHeader`].
pub const REQUEST: u8 = 0x26;
/// The kind byte of a response's [`RrHeader`].
pub const RESPONSE: u8 = 0x27;

/// What stands for a flow of datagrams in each of them. Both ends know it, so that a lost welcome
/// does no harm.
pub fn flow_tag(token: &[u8; TOKEN_BYTES], flow: u32) -> u32 {
    let [a, b, c, d, ..] = *token;
    u32::from_be_bytes([a, b, c, d]) ^ flow
}

/// Whether a datagram with this first byte is QUIC's; otherwise it is ours.
#[inline]
pub fn is_quic(first_byte: u8) -> bool {
    first_byte >= 0x40
}

/// Why bytes are no message, or a message doesn't fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// There are too few bytes, or too little room.
    #[error("a datagram has {bytes} bytes where {wanted_bytes} are needed")]
    Length {
        /// How many there are.
        bytes: usize,
        /// How many it takes.
        wanted_bytes: usize,
    },
    /// The first byte is another kind's, or of no kind.
    #[error("a datagram is of another kind or of none (0x{0:02x})")]
    Kind(u8),
    /// A reserved byte or flag is not zero.
    #[error("the reserved bytes of a datagram are not zero")]
    Reserved,
}

/// Takes the next `N` bytes.
#[inline]
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], DatagramError> {
    let Some((taken, left)) = rest.split_first_chunk::<N>() else {
        return Err(DatagramError::Length { bytes: rest.len(), wanted_bytes: N });
    };
    *rest = left;
    Ok(*taken)
}

/// Writes a message at the start of a datagram.
#[inline]
fn put(message: &[u8], datagram: &mut [u8]) -> Result<(), DatagramError> {
    let bytes = datagram.len();
    match datagram.get_mut(..message.len()) {
        Some(room) => room.copy_from_slice(message),
        None => return Err(DatagramError::Length { bytes, wanted_bytes: message.len() }),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
