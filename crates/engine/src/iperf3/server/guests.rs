//! Connections that haven't said yet what they are.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_wire::iperf3::{COOKIE_BYTES, Cookie};
use socket2::Socket;

use super::peer_of;
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::pending::{Acquaintance, Origin, Strangers};

/// How long a connection may take for its cookie.
const COOKIE_NS: u64 = 5 * SECOND_NS;
/// Connections that may be without one; when there are more, one of those that came in the largest
/// number from one place goes.
const MOST_GUESTS: usize = 512;

struct Guest {
    socket: Socket,
    bytes: [u8; COOKIE_BYTES],
    length: usize,
    until_ns: u64,
}

/// Connections that haven't said yet what they are, by their numbers, oldest first.
#[derive(Default)]
pub(super) struct Guests {
    guests: BTreeMap<usize, Guest>,
    strangers: Strangers,
    next: usize,
}

impl Guests {
    pub(super) fn add(&mut self, socket: Socket) {
        let Some(client) = peer_of(&socket) else { return };
        while self.guests.len() >= MOST_GUESTS && self.push_out_one() {}
        let until_ns = monotonic_ns() + COOKIE_NS;
        let guest = Guest { socket, bytes: [0; COOKIE_BYTES], length: 0, until_ns };
        self.strangers.place(self.next, Origin::of(client), Acquaintance::Silent);
        self.guests.insert(self.next, guest);
        self.next += 1;
    }

    /// Makes room; whether anybody was there.
    pub(super) fn push_out_one(&mut self) -> bool {
        let Some(guest) = self.strangers.first_to_go() else { return false };
        self.strangers.remove(guest);
        self.guests.remove(&guest).is_some()
    }

    /// What to poll.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.guests.values().map(|guest| guest.socket.as_fd())
    }

    /// Those whose cookie is complete; those that have gone or are too slow are closed.
    pub(super) fn take_known(&mut self) -> Vec<(Cookie, Socket)> {
        let now_ns = monotonic_ns();
        let mut known = Vec::new();
        for (number, mut guest) in std::mem::take(&mut self.guests) {
            match guest.read() {
                Ok(None) if now_ns < guest.until_ns => {
                    self.guests.insert(number, guest);
                    continue;
                }
                Ok(Some(cookie)) => known.push((cookie, guest.socket)),
                Ok(None) | Err(_) => {}
            }
            self.strangers.remove(number);
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
