//! Connections that haven't said yet which test they are of.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_wire::iperf3::{COOKIE_BYTES, Cookie};
use socket2::Socket;

use crate::acceptor::Pending;
use crate::clock::{SECOND_NS, monotonic_ns};

/// How long a connection may take for its cookie.
const COOKIE_NS: u64 = 5 * SECOND_NS;
/// Connections that may be without one.
const MOST_HELLOS: usize = 512;

/// A connection that has said which test it is of.
pub(super) struct Known {
    pub(super) cookie: Cookie,
    pub(super) socket: Socket,
    pub(super) client: SocketAddr,
}

/// The first words of a connection, as far as they have come.
struct Hello {
    socket: Socket,
    client: SocketAddr,
    bytes: [u8; COOKIE_BYTES],
    length: usize,
    until_ns: u64,
}

/// Connections that haven't said yet which test they are of.
pub(super) struct Hellos(Pending<Hello>);

impl Hellos {
    pub(super) fn new() -> Self {
        Self(Pending::new(0))
    }

    pub(super) fn add(&mut self, socket: Socket, client: SocketAddr) {
        while self.0.len() >= MOST_HELLOS && self.push_out_one() {}
        let until_ns = monotonic_ns() + COOKIE_NS;
        self.0.add(client, Hello { socket, client, bytes: [0; COOKIE_BYTES], length: 0, until_ns });
    }

    /// Makes room; whether anybody was there.
    pub(super) fn push_out_one(&mut self) -> bool {
        self.0.first_to_go().and_then(|number| self.0.remove(number)).is_some()
    }

    /// What to poll.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|(_, hello)| hello.socket.as_fd())
    }

    /// Those whose cookie is complete; those that have gone or are too slow are closed.
    pub(super) fn take_known(&mut self) -> Vec<Known> {
        let now_ns = monotonic_ns();
        let numbers: Vec<usize> = self.0.iter().map(|(number, _)| number).collect();
        let mut known = Vec::new();
        for number in numbers {
            let said = match self.0.kept_mut(number) {
                Some(hello) if now_ns >= hello.until_ns => hello.read().ok().flatten(),
                Some(hello) => match hello.read() {
                    Ok(None) => continue,
                    other => other.ok().flatten(),
                },
                None => None,
            };
            if let (Some(Hello { socket, client, .. }), Some(cookie)) =
                (self.0.remove(number), said)
            {
                known.push(Known { cookie, socket, client });
            }
        }
        known
    }
}

impl Hello {
    /// Reads no byte behind the cookie: what follows belongs to the test.
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
