//! Memory that the connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::probe::memory_bytes;

/// What the connections of a server may keep together beyond what each begins with: so much, and no more than a
/// quarter of the machine's memory.
const MOST_BYTES: u64 = 4 << 30;

/// Memory for the connections of a server beyond what each begins with. Its threads share it; it is touched only
/// when a connection grows, and when one that grew is forgotten.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    left_bytes: Arc<AtomicU64>,
}

impl Stock {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { left_bytes: Arc::new(AtomicU64::new(bytes)) }
    }

    /// What the connections of a server share on this machine.
    pub(crate) fn of_machine() -> Self {
        Self::new(MOST_BYTES.min(memory_bytes() / 4))
    }

    /// Takes so much, where that is at most a quarter of what is left: no connection gets the last of it alone.
    fn take(&self, bytes: u64) -> bool {
        let taken = |left: u64| (bytes <= left / 4).then(|| left - bytes);
        self.left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }

    /// What is left of it.
    #[cfg(test)]
    pub(super) fn left_bytes(&self) -> u64 {
        self.left_bytes.load(Ordering::Relaxed)
    }

    /// There is so much more of it, or again.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.left_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What so much of a window may keep: packets whole of which two fifths count (`Assembler::insert` of
/// quinn-proto).
pub(super) fn kept_bytes(window_bytes: u32) -> u64 {
    u64::from(window_bytes) * 5 / 2
}

/// What a connection has of a stock, which has it back when the connection is forgotten: until then its memory
/// is used.
pub(super) struct Share {
    stock: Stock,
    bytes: u64,
}

impl Share {
    pub(super) fn none_of(stock: Stock) -> Self {
        Self { stock, bytes: 0 }
    }

    /// Takes so much more; whether there was enough.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let taken = self.stock.take(bytes);
        self.bytes += if taken { bytes } else { 0 };
        taken
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.stock.give_back(self.bytes);
    }
}
