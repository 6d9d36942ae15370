//! What a server makes of a stream's bytes.

use super::HEADER_BYTES;

/// The first bytes of a piece of a stream: as many as a header can need of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    bytes: [u8; HEADER_BYTES],
    length: u8,
}

impl Start {
    /// The start of this piece.
    pub fn of(piece: &[u8]) -> Self {
        let mut start = Self::default();
        start.extend(piece);
        start
    }

    /// Another piece follows; as much of it is kept as is missing.
    pub fn extend(&mut self, piece: &[u8]) {
        for byte in piece {
            let Some(vacant) = self.bytes.get_mut(usize::from(self.length)) else { return };
            *vacant = *byte;
            self.length += 1;
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// What a finished request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It ended before its header was there: the stream is aborted.
    Abort,
    /// So many bytes and then the end; 0 is the end alone, [`super::UNLIMITED`] is no end at all.
    Bytes(u64),
}

/// A request as it comes in. Only its end makes it one: the original answers no earlier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    header: [u8; HEADER_BYTES],
    filled: u8,
    received_bytes: u64,
    finished: bool,
}

impl Request {
    /// Takes in the next piece of the stream, by its start and its length; what the request wants,
    /// once, when this was the last.
    pub fn handle_received(
        &mut self,
        start: Start,
        length: usize,
        finished: bool,
    ) -> Option<Demand> {
        if self.finished {
            return None;
        }
        self.received_bytes = self.received_bytes.saturating_add(length as u64);
        let vacant = self.header.iter_mut().skip(usize::from(self.filled));
        for (byte, said) in vacant.zip(start.bytes().iter().take(length)) {
            *byte = *said;
            self.filled += 1;
        }
        self.finished = finished;
        finished.then(|| match self.wanted_bytes() {
            Some(bytes) => Demand::Bytes(bytes),
            None => Demand::Abort,
        })
    }

    /// The length of the response, from the header; `None` until it is there.
    pub fn wanted_bytes(&self) -> Option<u64> {
        (usize::from(self.filled) == HEADER_BYTES).then(|| u64::from_be_bytes(self.header))
    }

    /// Bytes that came, header and all.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }
}
