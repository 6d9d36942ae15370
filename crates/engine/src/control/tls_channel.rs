//! A control connection inside TLS.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustls::Connection;
use socket2::Socket;

use super::channel::{Channel, READ_BYTES, Reading};
use crate::socket::retry_steadily;

/// So much of what the other end said first is kept, to say what it is if it isn't ours.
const PREFACE_BYTES: usize = 64;

/// A control connection inside TLS.
pub(crate) struct TlsChannel {
    socket: Socket,
    session: Connection,
    preface: Vec<u8>,
    answered: bool,
}

impl TlsChannel {
    pub(crate) fn new(socket: Socket, mut session: Connection) -> Self {
        // A frame is queued as a whole, and a result of many flows is longer than rustls would
        // hold by itself; frames have a limit of their own.
        session.set_buffer_limit(None);
        retry_steadily(socket.as_fd());
        Self { socket, session, preface: Vec::new(), answered: false }
    }

    pub(crate) fn session(&self) -> &Connection {
        &self.session
    }

    /// What the other end said first, as it came.
    pub(crate) fn preface(&self) -> &[u8] {
        &self.preface
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Whether this end has said anything.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered
    }
}

impl Channel for TlsChannel {
    fn read(&mut self, into: &mut Vec<u8>) -> io::Result<Reading> {
        let (mut ended, mut taken) = (false, 0);
        while taken < READ_BYTES {
            let mut tap = Tap { socket: &self.socket, preface: &mut self.preface };
            match self.session.read_tls(&mut tap) {
                Ok(0) => ended = true,
                Ok(length) => taken += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Reading::Open);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let state = self
                .session
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let arrived = state.plaintext_bytes_to_read();
            if arrived > 0 {
                let start = into.len();
                into.resize(start + arrived, 0);
                self.session.reader().read_exact(&mut into[start..])?;
            }
            if ended || state.peer_has_closed() {
                return Ok(Reading::Ended);
            }
        }
        Ok(Reading::More)
    }

    fn queue(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.session.writer().write_all(bytes)
    }

    fn has_unwritten(&self) -> bool {
        self.session.wants_write()
    }

    fn end(&mut self) {
        self.session.send_close_notify();
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.answered = true;
            match self.session.write_tls(&mut &self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for TlsChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Keeps the first bytes that pass.
struct Tap<'a> {
    socket: &'a Socket,
    preface: &'a mut Vec<u8>,
}

impl Read for Tap<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = (&mut &*self.socket).read(into)?;
        let room = PREFACE_BYTES.saturating_sub(self.preface.len());
        self.preface.extend_from_slice(&into[..length.min(room)]);
        Ok(length)
    }
}
