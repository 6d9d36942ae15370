//! What lies between a socket and its records.

use std::ops::Range;

use rustls::Error;

use super::keys::{CONTENT_LIMIT_BYTES, OVERHEAD_BYTES, record_bytes};

/// Bytes taken from the socket at once, at most.
const INCOMING_BYTES: usize = 256 << 10;
/// With less room than this behind what came, the rest of it moves to the front.
const LEAST_VACANT_BYTES: usize = 128 << 10;

/// Bytes that came: plain ones that were not taken yet, and after them records.
pub(super) struct Incoming {
    bytes: Vec<u8>,
    /// Of a record that was opened, what the load hasn't taken.
    plain: Range<usize>,
    /// Records, the last perhaps not whole.
    sealed: Range<usize>,
    /// How much of them the handshake has been offered.
    offered_bytes: usize,
}

impl Incoming {
    pub(super) fn new() -> Self {
        // Of memory that is zero the system makes as much as is touched.
        Self { bytes: vec![0; INCOMING_BYTES], plain: 0..0, sealed: 0..0, offered_bytes: 0 }
    }

    /// Where bytes from the socket go. Only when nothing plain is left.
    pub(super) fn vacant(&mut self) -> &mut [u8] {
        if self.sealed.is_empty() {
            self.sealed = 0..0;
        } else if self.bytes.len() - self.sealed.end < LEAST_VACANT_BYTES {
            let length = self.sealed.len();
            self.bytes.copy_within(self.sealed.clone(), 0);
            self.sealed = 0..length;
        }
        self.bytes.get_mut(self.sealed.end..).unwrap_or_default()
    }

    pub(super) fn record_filled(&mut self, bytes: usize) {
        self.sealed.end += bytes;
    }

    /// What the handshake may look at.
    pub(super) fn offered(&mut self) -> &mut [u8] {
        let start = self.sealed.start;
        self.bytes.get_mut(start..start + self.offered_bytes).unwrap_or_default()
    }

    /// The handshake is done with so much of it.
    pub(super) fn take_offered(&mut self, bytes: usize) {
        let bytes = bytes.min(self.offered_bytes);
        self.offered_bytes -= bytes;
        self.sealed.start += bytes;
    }

    /// Offers one more record, where it is here whole; whether it is.
    pub(super) fn offer_record(&mut self) -> Result<bool, Error> {
        let start = self.sealed.start + self.offered_bytes;
        let rest = self.bytes.get(start..self.sealed.end).unwrap_or_default();
        let whole = record_bytes(rest)?.filter(|length| *length <= rest.len());
        self.offered_bytes += whole.unwrap_or(0);
        let full = self.sealed.len() == self.bytes.len();
        if whole.is_none() && full {
            return Err(rustls::InvalidMessage::HandshakePayloadTooLarge.into());
        }
        Ok(whole.is_some())
    }

    /// Hands over the next record, where it is here whole.
    pub(super) fn take_record<T>(
        &mut self,
        open: impl FnOnce(&mut [u8]) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let rest = self.bytes.get_mut(self.sealed.clone()).unwrap_or_default();
        let Some(length) = record_bytes(rest)? else { return Ok(None) };
        let Some(record) = rest.get_mut(..length) else { return Ok(None) };
        self.sealed.start += length;
        // Where plain bytes of it would begin.
        self.plain = self.sealed.start - length..self.sealed.start - length;
        open(record).map(Some)
    }

    /// This part of the last record is plain.
    pub(super) fn set_plain(&mut self, place: Range<usize>) {
        let start = self.plain.start;
        self.plain = start + place.start..start + place.end;
    }

    pub(super) fn has_plain(&self) -> bool {
        !self.plain.is_empty()
    }

    /// The next plain bytes, at most so many.
    pub(super) fn take_plain(&mut self, most: usize) -> &[u8] {
        let start = self.plain.start;
        self.plain.start += self.plain.len().min(most);
        self.bytes.get(start..self.plain.start).unwrap_or_default()
    }
}

/// Records that the socket has not taken.
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    unsent: Range<usize>,
}

impl Outgoing {
    /// Room for so much data in as few records as it takes, and what may come before and after them.
    pub(super) fn new(data_bytes: usize) -> Self {
        let records = data_bytes.div_ceil(CONTENT_LIMIT_BYTES) + 4;
        Self { bytes: vec![0; data_bytes + records * OVERHEAD_BYTES], unsent: 0..0 }
    }

    pub(super) fn unsent(&self) -> &[u8] {
        self.bytes.get(self.unsent.clone()).unwrap_or_default()
    }

    pub(super) fn record_sent(&mut self, bytes: usize) {
        self.unsent.start += bytes;
        if self.unsent.is_empty() {
            self.unsent = 0..0;
        }
    }

    /// Where records are made.
    pub(super) fn vacant(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.unsent.end..).unwrap_or_default()
    }

    pub(super) fn record_queued(&mut self, bytes: usize) {
        self.unsent.end += bytes;
    }

    /// Adds what the handshake says, however long it is.
    pub(super) fn queue(&mut self, said: &[u8]) {
        let end = self.unsent.end + said.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        if let Some(place) = self.bytes.get_mut(self.unsent.end..end) {
            place.copy_from_slice(said);
        }
        self.unsent.end = end;
    }
}
