//! The turns of an endpoint, and the sockets that are opened for its connections.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;

use super::super::endpoint::{Port, insist};
use super::MultiplexedEndpoint;
use crate::socket::is_short_of_descriptors;
use crate::transport::multiplexer::{Link, Sending};

/// Opens the socket of another connection.
pub(super) type Opening<'a> = Box<dyn Fn() -> io::Result<Arc<Socket>> + 'a>;

/// Sockets that connections don't share.
pub(super) struct Apart<'a> {
    open: Opening<'a>,
    /// Whether connections are followed by others: their sockets are opened ahead, while servers think.
    repeats: bool,
    /// The next connection's, opened while there was nothing else to do.
    spare: Option<Port>,
    /// How many sockets had closed when there was none to be had.
    lacks_spare_at: Option<u64>,
}

impl<'a> Apart<'a> {
    pub(super) fn new(open: Opening<'a>, repeats: bool) -> Self {
        Self { open, repeats, spare: None, lacks_spare_at: None }
    }

    /// No connection follows.
    pub(super) fn end(&mut self) {
        (self.repeats, self.spare) = (false, None);
    }
}

impl MultiplexedEndpoint<'_> {
    /// Packets out, and what is done once a turn.
    pub(super) fn send_out(&mut self) -> io::Result<()> {
        self.look_at_refused();
        self.endpoint.send_out()?;
        self.look_at_opening();
        self.look_at_waits();
        Ok(())
    }

    /// Whether there is something to do without waiting.
    pub(super) fn has_work(&self) -> bool {
        !self.events.is_empty() || self.endpoint.is_busy()
    }

    /// Tries again and again, until something is there to do or the time for that is over.
    pub(super) fn spin(&mut self, at_most: Duration) -> io::Result<bool> {
        let has_work = |this: &Self| this.has_work() || this.endpoint.is_blocked();
        let spin = if has_work(self) { Duration::ZERO } else { self.busy.min(at_most) };
        insist(spin, || {
            self.endpoint.take_in()?;
            Ok(has_work(self))
        })
    }

    /// Opens the next connection's socket, if there will be one and there is a descriptor to spare.
    pub(super) fn open_ahead(&mut self) {
        let closed = self.endpoint.closed_sockets();
        let Some(apart) = self.apart.as_ref().filter(|apart| apart.repeats) else { return };
        if apart.spare.is_some()
            || apart.lacks_spare_at == Some(closed)
            || self.endpoint.sockets() == 0
        {
            return;
        }
        let spare = self.open(apart).ok();
        if let Some(apart) = &mut self.apart {
            apart.lacks_spare_at = spare.is_none().then_some(closed);
            apart.spare = spare;
        }
    }

    fn open(&self, apart: &Apart<'_>) -> io::Result<Port> {
        self.endpoint.prepare((apart.open)()?).map_err(io::Error::other)
    }

    /// A socket for a connection that begins, if must be in place of one whose connection has ended.
    pub(super) fn own_port(&mut self) -> Option<io::Result<Port>> {
        if let Some(spare) = self.apart.as_mut()?.spare.take() {
            return Some(Ok(spare));
        }
        let opened = self.open(self.apart.as_ref()?);
        match opened {
            Err(error) if is_short_of_descriptors(&error) && self.endpoint.give_up_ended() => {
                Some(self.open(self.apart.as_ref()?))
            }
            opened => Some(opened),
        }
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
}
