//! A control connection's bytes: a socket that doesn't block, and TLS.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustls::Connection;
use socket2::Socket;

use crate::clock::MILLISECOND_NS;
use crate::socket::{retry_steadily, tcp_is_retransmitting, tcp_status};

/// So much of what the other end said first is kept, to say what it is if it isn't ours.
const PREFACE_BYTES: usize = 64;
/// Bytes taken at once, so that a peer which says much doesn't keep others waiting.
const READ_BYTES: usize = 64 << 10;

/// How often it is looked whether the path is dark.
const LOOK_NS: u64 = 250 * MILLISECOND_NS;

/// A control connection.
pub(crate) struct Link {
    socket: Socket,
    session: Connection,
    preface: Vec<u8>,
    answered: bool,
    /// When it is next looked whether the path is dark.
    next_look_ns: u64,
}

/// What reading came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The other end may say more.
    Open,
    /// More has arrived than was taken at once.
    More,
    /// It has closed the connection.
    Ended,
}

impl Link {
    pub(crate) fn new(socket: Socket, mut session: Connection) -> Self {
        // A frame is queued as a whole, and a result of many flows is longer than rustls would
        // hold by itself; frames have a limit of their own.
        session.set_buffer_limit(None);
        retry_steadily(socket.as_fd());
        Self { socket, session, preface: Vec::new(), answered: false, next_look_ns: 0 }
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

    pub(crate) fn wants_write(&self) -> bool {
        self.session.wants_write()
    }

    /// Moves what has arrived into `plaintext`.
    pub(crate) fn read(&mut self, plaintext: &mut Vec<u8>) -> io::Result<Reading> {
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
                let start = plaintext.len();
                plaintext.resize(start + arrived, 0);
                self.session.reader().read_exact(&mut plaintext[start..])?;
            }
            if ended || state.peer_has_closed() {
                return Ok(Reading::Ended);
            }
        }
        Ok(Reading::More)
    }

    /// Queues `bytes` for the other end.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.session.writer().write_all(bytes)
    }

    /// Says that nothing more will be written.
    pub(crate) fn close(&mut self) {
        self.session.send_close_notify();
    }

    /// The connection's smoothed round-trip time, as the kernel knows it; 0: unknown.
    pub(crate) fn rtt_ns(&self) -> u64 {
        tcp_status(self.socket.as_fd()).map_or(0, |tcp| u64::from(tcp.rtt_us) * 1000)
    }

    /// Looks now and then whether the other end's machine acknowledges what was sent; says whether it didn't at such a
    /// look: it is gone, or the path is dark.
    pub(crate) fn is_found_dark(&mut self, now_ns: u64) -> bool {
        if now_ns < self.next_look_ns {
            return false;
        }
        self.next_look_ns = now_ns + LOOK_NS;
        tcp_is_retransmitting(self.socket.as_fd())
    }

    /// Writes what is queued, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
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

impl AsFd for Link {
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
