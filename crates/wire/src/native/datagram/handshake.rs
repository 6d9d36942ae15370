//! The handshake of a UDP flow.

use super::{COOKIE, DatagramError, HELLO, PROOF, WELCOME, put, take};
use crate::native::TOKEN_BYTES;

/// Bytes of a [`Hello`] and of a [`Proof`], padded with zeros: no answer is longer.
pub const PADDED_BYTES: usize = 64;

/// Bytes of a [`Cookie`] message.
pub const COOKIE_BYTES: usize = 24;

/// Bytes of a [`Welcome`].
pub const WELCOME_BYTES: usize = 12;

const _: () = assert!(COOKIE_BYTES < PADDED_BYTES && WELCOME_BYTES < PADDED_BYTES);

/// The client wants to set up a flow. Layout: kind, 3 zero bytes, flow (u32), token, 40 zero
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The flow.
    pub flow: u32,
    /// The token of its test.
    pub token: [u8; TOKEN_BYTES],
}

/// The server wants to see whether the client's address is its own. Layout: kind, 3 zero bytes,
/// flow (u32), cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The flow.
    pub flow: u32,
    /// What the client shall show.
    pub cookie: [u8; TOKEN_BYTES],
}

/// The client shows the cookie. Layout: kind, 3 zero bytes, flow (u32), token, cookie, 24 zero
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The flow.
    pub flow: u32,
    /// The token of its test.
    pub token: [u8; TOKEN_BYTES],
    /// What the server sent.
    pub cookie: [u8; TOKEN_BYTES],
}

/// The flow stands. Layout: kind, 3 zero bytes, flow (u32), tag (u32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The flow.
    pub flow: u32,
    /// What stands for it in every message from now on.
    pub tag: u32,
}

/// Any message of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// From the client.
    Hello(Hello),
    /// From the server.
    Cookie(Cookie),
    /// From the client.
    Proof(Proof),
    /// From the server.
    Welcome(Welcome),
}

impl Handshake {
    /// Bytes of the message.
    pub fn len_bytes(&self) -> usize {
        match self {
            Handshake::Hello(_) | Handshake::Proof(_) => PADDED_BYTES,
            Handshake::Cookie(_) => COOKIE_BYTES,
            Handshake::Welcome(_) => WELCOME_BYTES,
        }
    }

    /// Writes the message at the start of `datagram` and says how many bytes it has.
    ///
    /// # Errors
    ///
    /// When there is too little room.
    pub fn encode(&self, datagram: &mut [u8]) -> Result<usize, DatagramError> {
        let mut message = [0; PADDED_BYTES];
        let (kind, flow) = match self {
            Handshake::Hello(hello) => {
                message[8..24].copy_from_slice(&hello.token);
                (HELLO, hello.flow)
            }
            Handshake::Cookie(cookie) => {
                message[8..24].copy_from_slice(&cookie.cookie);
                (COOKIE, cookie.flow)
            }
            Handshake::Proof(proof) => {
                message[8..24].copy_from_slice(&proof.token);
                message[24..40].copy_from_slice(&proof.cookie);
                (PROOF, proof.flow)
            }
            Handshake::Welcome(welcome) => {
                message[8..12].copy_from_slice(&welcome.tag.to_be_bytes());
                (WELCOME, welcome.flow)
            }
        };
        message[0] = kind;
        message[4..8].copy_from_slice(&flow.to_be_bytes());
        put(&message[..self.len_bytes()], datagram)?;
        Ok(self.len_bytes())
    }

    /// Reads a whole datagram as a message of the handshake.
    ///
    /// # Errors
    ///
    /// When it is no such message, has another length than that message has, or reserved bytes
    /// are not zero.
    pub fn decode(datagram: &[u8]) -> Result<Self, DatagramError> {
        let mut rest = datagram;
        let [kind, reserved @ ..]: [u8; 4] = take(&mut rest)?;
        let flow = u32::from_be_bytes(take(&mut rest)?);
        let message = match kind {
            HELLO => Handshake::Hello(Hello { flow, token: take(&mut rest)? }),
            COOKIE => Handshake::Cookie(Cookie { flow, cookie: take(&mut rest)? }),
            PROOF => {
                let (token, cookie) = (take(&mut rest)?, take(&mut rest)?);
                Handshake::Proof(Proof { flow, token, cookie })
            }
            WELCOME => {
                Handshake::Welcome(Welcome { flow, tag: u32::from_be_bytes(take(&mut rest)?) })
            }
            _ => return Err(DatagramError::Kind(kind)),
        };
        if datagram.len() != message.len_bytes() {
            let wanted_bytes = message.len_bytes();
            return Err(DatagramError::Length { bytes: datagram.len(), wanted_bytes });
        }
        if reserved != [0; 3] || rest.iter().any(|byte| *byte != 0) {
            return Err(DatagramError::Reserved);
        }
        Ok(message)
    }
}
