//! The qperf dialect: its client and its server over QUIC.
//!
//! [`run_client`] does what a [`ClientPlan`] says and returns what came out; a [`Server`] serves any number of
//! connections. Each has one thread, which owns an [`Endpoint`](crate::transport::quic::Endpoint), and tells what
//! happens over a bounded channel: output without a reader delays no packet. How it is printed is the
//! program's.

mod binding;
mod client;
mod counts;
mod files;
mod plan;
mod server;

pub use client::{ClientEvent, Report, run_client};
pub use counts::{Counts, Interval};
pub use plan::{ClientPlan, QuicPlan, ServerPlan};
pub use server::{Server, ServerEvent};

use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

/// Events that may wait to be told. More are dropped, and counted.
const EVENTS_WAITING: usize = 16_384;
/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a stream that are read before others get their turn.
const READ_AT_ONCE_BYTES: usize = 1 << 20;

/// Tells what happens, as far as there is room.
struct Teller<T> {
    sender: SyncSender<T>,
    dropped: u64,
}

impl<T> Teller<T> {
    fn new(sender: SyncSender<T>) -> Self {
        Self { sender, dropped: 0 }
    }

    fn tell(&mut self, event: T) {
        // Fails only when the program is ending.
        if let Err(TrySendError::Full(_)) = self.sender.try_send(event) {
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests;
