//! How much of what a stream was given its peer has acknowledged.
//!
//! `quinn-proto` says so only of a whole stream. But it lets each piece of memory go that it was given as
//! soon as all of it, and all before it, was acknowledged; so a piece that tells when it goes tells what was
//! delivered, to the piece.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// What is on its way of one stream.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// The lengths of the pieces that haven't been let go, as far as anybody looked.
    pieces: VecDeque<usize>,
    /// How many have been let go, and weren't looked at.
    released: Arc<AtomicUsize>,
    delivered_bytes: u64,
}

/// A piece of memory that counts when it goes.
struct Piece {
    bytes: Bytes,
    released: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.released.fetch_add(1, Ordering::Relaxed);
    }
}

impl Delivery {
    /// The same bytes, as a piece to be given to the stream at once.
    pub(super) fn piece(&self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Piece { bytes, released: Arc::clone(&self.released) })
    }

    /// So many bytes of the last piece were taken, and what remained of it has been let go.
    pub(super) fn record_taken(&mut self, bytes: usize) {
        if bytes > 0 {
            self.pieces.push_back(bytes);
        } else {
            self.released.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Bytes that the peer has acknowledged, counted by whole pieces.
    pub(super) fn bytes(&mut self) -> u64 {
        for _ in 0..self.released.swap(0, Ordering::Relaxed) {
            let piece = self.pieces.pop_front().unwrap_or(0);
            self.delivered_bytes = self.delivered_bytes.saturating_add(piece as u64);
        }
        self.delivered_bytes
    }

    /// The stream is given up: what is let go from now on was not delivered.
    pub(super) fn end(&mut self) {
        self.bytes();
        self.pieces.clear();
        self.released = Arc::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_count_when_they_go_and_by_what_was_taken_of_them() {
        let mut delivery = Delivery::default();
        let block = Bytes::from(vec![7; 1_000]);
        let first = delivery.piece(block.clone());
        delivery.record_taken(1_000);
        let mut second = delivery.piece(block.clone());
        let part = second.split_to(300);
        drop(second);
        delivery.record_taken(300);
        drop(delivery.piece(block.clone()));
        delivery.record_taken(0);
        assert_eq!((delivery.bytes(), first.len(), part.len()), (0, 1_000, 300));
        drop(first);
        assert_eq!(delivery.bytes(), 1_000);
        drop(part);
        assert_eq!((delivery.bytes(), delivery.bytes()), (1_300, 1_300));
        let last = delivery.piece(block);
        delivery.record_taken(1_000);
        delivery.end();
        drop(last);
        assert_eq!(delivery.bytes(), 1_300);
    }
}
