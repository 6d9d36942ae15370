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

pub use client::{ClientEvent, Lost, Report, run_client};
pub use counts::{Counts, Interval};
pub use plan::{ClientPlan, QuicPlan, ServerPlan};
pub use server::{Server, ServerEvent};

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

/// Events that may wait to be told. More are dropped, and counted.
const EVENTS_WAITING: usize = 16_384;
/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// Tells what happens, as far as there is room.
struct Teller<T> {
    sender: SyncSender<T>,
    /// Events that there was no room for, and that must not be dropped.
    kept: VecDeque<T>,
    dropped: u64,
}

impl<T> Teller<T> {
    fn new(sender: SyncSender<T>) -> Self {
        Self { sender, kept: VecDeque::new(), dropped: 0 }
    }

    /// Tells an event if there is room; whether there was.
    fn tell(&mut self, event: T) -> bool {
        self.catch_up();
        // Fails otherwise only when the program is ending.
        let is_full = matches!(self.sender.try_send(event), Err(TrySendError::Full(_)));
        self.dropped += u64::from(is_full);
        !is_full
    }

    /// An event is dropped, as nothing was told of what it belongs to.
    fn drop_untold(&mut self) {
        self.dropped += 1;
    }

    /// Tells an event now, or when there is room. The caller bounds how many such events there are.
    fn tell_in_any_case(&mut self, event: T) {
        self.kept.push_back(event);
        self.catch_up();
    }

    /// Tells what there was no room for.
    fn catch_up(&mut self) {
        while let Some(event) = self.kept.pop_front() {
            if let Err(TrySendError::Full(event)) = self.sender.try_send(event) {
                return self.kept.push_front(event);
            }
        }
    }

    /// Tells how many events were dropped, if any were and there is room.
    fn tell_dropped(&mut self, event: impl FnOnce(u64) -> T) {
        self.catch_up();
        if self.dropped > 0 && self.sender.try_send(event(self.dropped)).is_ok() {
            self.dropped = 0;
        }
    }

    /// What is still to be told.
    fn into_rest(self, event: impl FnOnce(u64) -> T) -> Vec<T> {
        let dropped = (self.dropped > 0).then(|| event(self.dropped));
        self.kept.into_iter().chain(dropped).collect()
    }
}

#[cfg(test)]
mod tests;
