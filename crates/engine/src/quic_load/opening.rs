//! The opening of a stream, as it comes: it says which load the stream is of, and which flow.

use std::io;
use std::io::ErrorKind::{InvalidData, UnexpectedEof, WouldBlock};

use linerate_wire::native::opening::{OPENING_BYTES, Opening};

use crate::transport::quic::{SharedConnection, StreamId};

/// As much of an opening as has come.
#[derive(Default)]
pub(super) struct ArrivingOpening {
    bytes: [u8; OPENING_BYTES],
    done: usize,
}

impl ArrivingOpening {
    /// Reads as much as has come.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where that isn't all, and anything else where it will never be.
    pub(super) fn read(
        &mut self,
        connection: &SharedConnection,
        id: StreamId,
    ) -> io::Result<Opening> {
        let Self { bytes, done } = self;
        let most = OPENING_BYTES.saturating_sub(*done);
        let (_, finished) = connection.borrow_mut().receive(id, most, &mut |piece| {
            if let Some(place) = bytes.get_mut(*done..*done + piece.len()) {
                place.copy_from_slice(piece);
                *done += piece.len();
            }
        })?;
        if *done < OPENING_BYTES {
            let kind = if finished { UnexpectedEof } else { WouldBlock };
            return Err(kind.into());
        }
        Opening::decode(bytes).map_err(|_| InvalidData.into())
    }
}
