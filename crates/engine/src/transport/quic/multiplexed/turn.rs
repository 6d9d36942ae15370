//! The halves of an endpoint's turn, and what there is to wait for, for whoever has several.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::MultiplexedEndpoint;
use crate::transport::multiplexer::{Link, Sending};

impl MultiplexedEndpoint {
    /// Packets out, and connections given up that should stand by now.
    pub(in super::super) fn send_out(&mut self) -> io::Result<()> {
        self.look_at_refused();
        self.endpoint.send_out()?;
        self.look_at_opening();
        self.look_at_waits();
        Ok(())
    }

    /// Counts what streams have waited for, and looks what they wait for now.
    fn look_at_waits(&mut self) {
        let Some(mut watch) = self.watch.take() else { return };
        watch.record_turn(Instant::now(), |link| {
            self.with(link, |connection| (connection.held(), connection.limits_told()))
        });
        self.watch = Some(watch);
    }

    /// So much of what was to be sent on a stream was taken.
    pub(super) fn note_sent(
        &mut self,
        link: Link,
        stream: u64,
        sending: &Sending<'_>,
        taken: Option<usize>,
    ) {
        let Some(mut watch) = self.watch.take() else { return };
        let whole = taken == Some(sending.bytes.len());
        let told = self.with(link, |connection| connection.limits_told());
        watch.record_sent(link, stream, whole && sending.finishes, told.filter(|_| !whole));
        self.watch = Some(watch);
    }

    /// Packets in, and timers.
    pub(in super::super) fn take_in(&mut self) -> io::Result<()> {
        self.endpoint.take_in().map(|_more| ())
    }

    /// Whether there is something to do without waiting.
    pub(in super::super) fn is_busy(&self) -> bool {
        !self.events.is_empty() || self.endpoint.is_busy()
    }

    /// Whether its socket had no room for what was to be sent.
    pub(in super::super) fn is_blocked(&self) -> bool {
        self.endpoint.poll_flags().contains(PollFlags::OUT)
    }

    /// When a timer is due.
    pub(in super::super) fn next_time(&self) -> Option<Instant> {
        self.endpoint.next_time()
    }

    /// Whether all of its connections are gone and forgotten.
    pub(in super::super) fn is_idle(&self) -> bool {
        self.endpoint.open_connections() == 0
    }

    /// Tries again and again, until something is there to do or the time for that is over.
    pub(super) fn spin(&mut self, at_most: Duration) -> io::Result<()> {
        let end = Instant::now() + self.busy.min(at_most);
        while !self.is_busy() && !self.is_blocked() && Instant::now() < end {
            self.take_in()?;
        }
        Ok(())
    }
}

impl AsFd for MultiplexedEndpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.endpoint.as_fd()
    }
}
