//! The halves of an endpoint's turn, and what there is to wait for, for whoever has several.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use socket2::Socket;

use super::super::endpoint::{Intake, Outlet, insist};
use super::{MultiplexedEndpoint, failure};
use crate::transport::multiplexer::{Link, Sending};

impl MultiplexedEndpoint {
    /// Packets out, and connections given up that should stand by now.
    pub(super) fn send_out(&mut self) -> io::Result<()> {
        self.send_out_within(&mut Outlet::default())
    }

    /// The same, as far as the turn of several endpoints has room.
    pub(in super::super) fn send_out_within(&mut self, outlet: &mut Outlet) -> io::Result<()> {
        self.look_at_refused();
        self.endpoint.send_out_within(outlet)?;
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
    pub(super) fn take_in(&mut self) -> io::Result<()> {
        self.endpoint.take_in().map(|_more| ())
    }

    /// The same, as far as the turn of several endpoints has room.
    pub(in super::super) fn take_in_within(&mut self, intake: &mut Intake) -> io::Result<()> {
        self.endpoint.take_in_within(intake).map(|_more| ())
    }

    /// Timers alone.
    pub(in super::super) fn look_at_times(&mut self, now: Instant) {
        self.endpoint.look_at_times(now);
    }

    /// Its socket doesn't carry its connection any further; the user is told, unless it had ended.
    pub(in super::super) fn fail(&mut self, link: Link, error: &io::Error) {
        self.end(link, failure(error.kind()));
    }

    /// Whether there is something to do without waiting.
    pub(in super::super) fn is_busy(&self) -> bool {
        !self.events.is_empty() || self.endpoint.is_busy()
    }

    /// Whether its socket had no room for what was to be sent.
    pub(in super::super) fn is_blocked(&self) -> bool {
        self.endpoint.poll_flags().contains(PollFlags::OUT)
    }

    /// When a timer is due, or a connection is given up.
    pub(in super::super) fn next_time(&self) -> Option<Instant> {
        let opening = self.opening.front().map(|(limit, _)| *limit);
        self.endpoint.next_time().into_iter().chain(opening).min()
    }

    /// Whether nothing is left to be said or heard over its socket.
    pub(in super::super) fn is_over(&self) -> bool {
        self.endpoint.is_over()
    }

    /// Whether something is still to be sent.
    pub(in super::super) fn has_unsaid(&self) -> bool {
        self.endpoint.has_unsaid()
    }

    pub(in super::super) fn socket(&self) -> &Socket {
        self.endpoint.socket()
    }

    /// Tries again and again, until something is there to do or the time for that is over.
    pub(super) fn spin(&mut self, at_most: Duration) -> io::Result<()> {
        let has_work = |this: &Self| this.is_busy() || this.is_blocked();
        let spin = if has_work(self) { Duration::ZERO } else { self.busy.min(at_most) };
        insist(spin, || {
            self.take_in()?;
            Ok(has_work(self))
        })
        .map(|_came| ())
    }
}

impl AsFd for MultiplexedEndpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.endpoint.as_fd()
    }
}
