//! Connections that haven't said yet what they are.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_wire::iperf3::{COOKIE_BYTES, Cookie};
use socket2::Socket;

use crate::clock::{SECOND_NS, monotonic_ns};

/// How long a connection may take for its cookie.
const COOKIE_NS: u64 = 5 * SECOND_NS;
/// Connections that may be without one; the oldest makes room.
const MOST_GUESTS: usize = 512;

struct Guest {
    socket: Socket,
    bytes: [u8; COOKIE_BYTES],
    length: usize,
    until_ns: u64,
}

/// Connections that haven't said yet what they are, oldest first.
#[derive(Default)]
pub(super) struct Guests(VecDeque<Guest>);

impl Guests {
    pub(super) fn add(&mut self, socket: Socket) {
        if self.0.len() >= MOST_GUESTS {
            self.0.pop_front();
        }
        let until_ns = monotonic_ns() + COOKIE_NS;
        self.0.push_back(Guest { socket, bytes: [0; COOKIE_BYTES], length: 0, until_ns });
    }

    /// What to poll.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|guest| guest.socket.as_fd())
    }

    /// Those whose cookie is complete; those that have gone or are too slow are closed.
    pub(super) fn take_known(&mut self) -> Vec<(Cookie, Socket)> {
        let now_ns = monotonic_ns();
        let mut known = Vec::new();
        for mut guest in std::mem::take(&mut self.0) {
            match guest.read() {
                Ok(Some(cookie)) => known.push((cookie, guest.socket)),
                Ok(None) if now_ns < guest.until_ns => self.0.push_back(guest),
                Ok(None) | Err(_) => {}
            }
        }
        known
    }
}

impl Guest {
    /// Reads no byte behind the cookie: what follows is for somebody else.
    fn read(&mut self) -> io::Result<Option<Cookie>> {
        loop {
            let rest = self.bytes.get_mut(self.length..).unwrap_or_default();
            match (&self.socket).read(rest) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.length += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.length >= COOKIE_BYTES {
                return Ok(Some(Cookie::of_wire(self.bytes)));
            }
        }
    }
}
