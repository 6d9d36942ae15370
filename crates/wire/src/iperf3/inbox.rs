//! Bytes on their way in, and what is wrong with them.

use super::code::Code;

/// Why a conversation can't go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The other end spoke wrongly, or this end can't accept what it said.
    #[error("{}", .0.text())]
    Wrong(Code),
    /// The other end gives up, for this reason and with this system error.
    #[error("{}", .0.text())]
    Peer(Code, i32),
    /// The other end said nothing for too long.
    #[error("{0}: nothing came for {1} s", .code.text(), .seconds)]
    Silent {
        /// What was awaited.
        code: Code,
        /// For how long.
        seconds: u64,
    },
}

impl Fault {
    /// The reason as a number.
    pub fn code(&self) -> Code {
        match self {
            Self::Wrong(code) | Self::Peer(code, _) | Self::Silent { code, .. } => *code,
        }
    }
}

/// Bytes that have come and weren't understood yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// How many of them have been taken.
    taken: usize,
}

impl Inbox {
    pub(super) fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Whether nothing is there but this byte.
    pub(super) fn is_only(&self, byte: u8) -> bool {
        self.rest() == [byte]
    }

    /// The next byte.
    pub(super) fn take_byte(&mut self) -> Option<u8> {
        let byte = self.rest().first().copied()?;
        self.taken += 1;
        Some(byte)
    }

    /// The next number: four bytes, big-endian.
    pub(super) fn take_number(&mut self) -> Option<i32> {
        let bytes = *self.rest().first_chunk::<4>()?;
        self.taken += 4;
        Some(i32::from_be_bytes(bytes))
    }

    /// The next JSON message: its length in four bytes, then its text.
    ///
    /// # Errors
    ///
    /// `refusal` where it is longer than `limit_bytes`.
    pub(super) fn take_message(
        &mut self,
        limit_bytes: usize,
        refusal: Code,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let Some(header) = self.rest().first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*header) as usize;
        if length == 0 || length > limit_bytes {
            return Err(Fault::Wrong(refusal));
        }
        let Some(text) = self.rest().get(4..4 + length).map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        self.taken += 4 + length;
        Ok(Some(text))
    }
}

/// A JSON message as it is sent.
pub(super) fn framed(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(4 + text.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
