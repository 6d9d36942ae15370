//! One of the client's connections that come and go: the handshake, and the stream that its life goes over.

use std::io;

use bytes::Bytes;
use linerate_measure::Handshake;

use super::connected::Connected;
use super::{DONE, FAILED};
use crate::clock::monotonic_ns;
use crate::connections::{Awaited, Carrier, LifeStream, Milestones, Part, Progress};
use crate::flow::Local;
use crate::tally::Tally;
use crate::transport::quic::{Dir, Link, QuicStream, StreamId, Way};

/// A connection to the server.
pub(super) struct QuicCarrier {
    pub(super) link: Link,
    connected: Connected,
    pattern: Bytes,
    stream: Option<(StreamId, QuicStream)>,
    /// How many of the first bytes were sent.
    sent: usize,
    /// Whether they were sent before the handshake was done.
    early: bool,
    /// Whether the server has yet to acknowledge what the life ends with.
    awaits_delivery: bool,
}

impl QuicCarrier {
    pub(super) fn new(link: Link, connected: Connected, pattern: Bytes) -> Self {
        Self {
            link,
            connected,
            pattern,
            stream: None,
            sent: 0,
            early: false,
            awaits_delivery: false,
        }
    }

    fn open_stream(&mut self) -> io::Result<()> {
        let id = self.connected.connection.borrow_mut().open_stream(Dir::Bi);
        let id = id.ok_or_else(|| io::Error::other("the server allows no stream"))?;
        let stream = self.connected.stream(id, Way::Both, &self.pattern, false);
        (self.stream, self.sent) = (Some((id, stream)), 0);
        Ok(())
    }

    fn stream(&mut self) -> io::Result<&mut QuicStream> {
        let stream = self.stream.as_mut().map(|(_, stream)| stream);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Sends the first bytes, as far as they haven't been; returns how far the life has come then.
    fn send_first(&mut self, part: &Part, tally: &Tally) -> io::Result<Progress> {
        let sent_before = self.sent;
        while let Some(rest) = part.first_bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let sent = LifeStream::send(self.stream()?, rest)?;
            tally.record_sent(part.payload(self.sent + sent) - part.payload(self.sent));
            self.sent += sent;
        }
        let progress = part.script.begin(part.payload(self.sent), 0);
        if self.sent > sent_before && part.script.has_sent_all(&progress) {
            self.stream()?.end_sending()?;
        }
        Ok(progress)
    }
}

impl LifeStream for QuicCarrier {
    type Wait = ();

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LifeStream::send(self.stream()?, bytes)
    }

    fn receive(&mut self, awaited: Awaited, into: &mut [u8], wait: &mut ()) -> io::Result<usize> {
        LifeStream::receive(self.stream()?, awaited, into, wait)
    }

    fn see_silence(&mut self, wait: &mut ()) -> io::Result<()> {
        self.stream()?.see_silence(wait)
    }

    fn end_sending(&mut self) -> io::Result<()> {
        self.stream()?.end_sending()
    }
}

impl Carrier for QuicCarrier {
    /// The carrier knows that itself.
    type Opening = ();

    /// There is no second event for what is left to do.
    const OPERATIONS_PER_TURN: u32 = u32::MAX;

    fn open(
        &mut self,
        (): &mut (),
        part: &Part,
        times: &mut Milestones,
        tally: &Tally,
        _: &Local,
    ) -> io::Result<Option<Progress>> {
        if times.established_ns == 0 {
            if self.stream.is_none() && self.connected.connection.borrow().can_send_early() {
                // The server has promised to take what goes with the first packets.
                self.early = true;
                self.open_stream()?;
                self.send_first(part, tally)?;
            }
            self.connected.connection.borrow().establish()?;
            times.established_ns = monotonic_ns();
            self.awaits_delivery = part.script.ends_by_sending();
            // What was said early and not taken is forgotten, and said again.
            if !(self.early && self.connected.connection.borrow().early_was_taken()) {
                self.open_stream()?;
            }
        }
        self.send_first(part, tally).map(Some)
    }

    fn wants_write(&self) -> bool {
        self.awaits_delivery
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some((id, _)) = &self.stream {
            self.connected.connection.borrow_mut().await_delivery(*id)?;
        }
        self.awaits_delivery = false;
        Ok(())
    }

    fn take_ticket(&mut self) -> io::Result<()> {
        let connection = self.connected.connection.borrow();
        match connection.is_confirmed() {
            true => Ok(()),
            false => connection.establish().and(Err(io::ErrorKind::WouldBlock.into())),
        }
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        // The stream's end went along with its last bytes.
        Ok(())
    }

    fn handshake(&self) -> Option<Handshake> {
        let connection = self.connected.connection.borrow();
        Some(match (self.early && connection.early_was_taken(), connection.agreed().resumed) {
            (true, _) => Handshake::Early,
            (false, true) => Handshake::Resumed,
            (false, false) => Handshake::Full,
        })
    }

    fn close(self) {
        self.connected.connection.borrow_mut().close(DONE, b"");
    }

    fn reset(self) {
        self.close();
    }

    fn fail(self) {
        self.connected.connection.borrow_mut().close(FAILED, b"");
    }
}
