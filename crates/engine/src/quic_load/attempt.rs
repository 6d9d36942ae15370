//! One of the client's connections that come and go: handshake, one request, one response.

use std::io;

use linerate_measure::Handshake;

use super::dialer::NO_PAYLOAD_BYTES;
use crate::clock::monotonic_ns;
use crate::tally::Tally;
use crate::transport::quic::{Dir, Event, SharedConnection, StreamAbort, StreamId};

/// What every connection of a load says, and hears.
pub(super) struct Script {
    /// The opening and the request.
    pub(super) first_bytes: Vec<u8>,
    pub(super) response_bytes: usize,
}

/// One connection.
pub(super) struct Attempt {
    connection: SharedConnection,
    pub(super) due_ns: u64,
    pub(super) began_ns: u64,
    pub(super) warm_up: bool,
    pub(super) established_ns: u64,
    pub(super) first_byte_ns: u64,
    /// When the response was whole; 0: not yet.
    pub(super) answered_ns: u64,
    /// Whether its request left before the handshake was done.
    early: bool,
    stream: Option<StreamId>,
    sent: usize,
    received: usize,
}

impl Attempt {
    pub(super) fn new(
        connection: SharedConnection,
        due_ns: u64,
        began_ns: u64,
        warm_up: bool,
    ) -> Self {
        Self {
            connection,
            due_ns,
            began_ns,
            warm_up,
            established_ns: 0,
            first_byte_ns: 0,
            answered_ns: 0,
            early: false,
            stream: None,
            sent: 0,
            received: 0,
        }
    }

    /// Sends the request with the first packets, where the server has promised to take that.
    pub(super) fn begin_early(&mut self, script: &Script, tally: &Tally) -> io::Result<()> {
        if !self.connection.borrow().can_send_early() {
            return Ok(());
        }
        self.early = true;
        self.stream = self.connection.borrow_mut().open_stream(Dir::Bi);
        self.send(script, tally)
    }

    /// Whether it has given what others need that resume it.
    pub(super) fn has_ticket(&self) -> bool {
        self.connection.borrow().is_confirmed()
    }

    /// How it agreed on its keys, once it has.
    pub(super) fn handshake(&self) -> Handshake {
        let connection = self.connection.borrow();
        match (self.early && connection.early_was_taken(), connection.agreed().resumed) {
            (true, _) => Handshake::Early,
            (false, true) => Handshake::Resumed,
            (false, false) => Handshake::Full,
        }
    }

    /// Something has happened to it; says whether the response is whole.
    pub(super) fn handle(
        &mut self,
        event: &Event,
        script: &Script,
        tally: &Tally,
    ) -> io::Result<bool> {
        match event {
            Event::Established => {
                self.established_ns = monotonic_ns();
                if self.early && self.connection.borrow().early_was_taken() {
                    return Ok(false);
                }
                // What was said early and not taken is forgotten, and said again.
                self.sent = 0;
                self.stream = self.connection.borrow_mut().open_stream(Dir::Bi);
                if self.stream.is_none() {
                    return Err(io::Error::other("the server allows no stream"));
                }
                self.send(script, tally)?;
            }
            Event::Writable(_) => self.send(script, tally)?,
            Event::Readable(id) => return self.receive(*id, script, tally),
            Event::Stopped(_, code) => return Err(StreamAbort::Stopped(*code).into()),
            _ => {}
        }
        Ok(false)
    }

    fn send(&mut self, script: &Script, tally: &Tally) -> io::Result<()> {
        let Some(id) = self.stream else { return Ok(()) };
        let mut connection = self.connection.borrow_mut();
        while let Some(rest) = script.first_bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let sent = match connection.send(id, rest) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                sent => sent?,
            };
            let payload = |bytes: usize| bytes.saturating_sub(NO_PAYLOAD_BYTES);
            tally.record_sent(payload(self.sent + sent) - payload(self.sent));
            self.sent += sent;
            if self.sent == script.first_bytes.len() {
                connection.finish(id)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, id: StreamId, script: &Script, tally: &Tally) -> io::Result<bool> {
        if self.answered_ns > 0 {
            return Ok(false);
        }
        let read = self.connection.borrow_mut().receive(id, usize::MAX, &mut |_| {});
        let (bytes, finished) = match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            read => read?,
        };
        if self.received == 0 && bytes > 0 {
            self.first_byte_ns = monotonic_ns();
        }
        if bytes > 0 {
            tally.record_received(bytes);
        }
        self.received += bytes;
        if finished && self.received < script.response_bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let is_whole = self.received >= script.response_bytes;
        if is_whole {
            self.answered_ns = monotonic_ns();
        }
        Ok(is_whole)
    }

    pub(super) fn close(&self, code: u32) {
        self.connection.borrow_mut().close(code, b"");
    }
}
