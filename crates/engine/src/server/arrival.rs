//! Connections that have not yet said what they are.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use linerate_wire::native::opening::{Arrival as Kind, OPENING_BYTES, Opening, sniff};
use rustix::net::{RecvFlags, recv};
use socket2::Socket;

use crate::clock::{SECOND_NS, monotonic_ns};

/// A connection must say what it is within this time.
const FIRST_BYTES_NS: u64 = 3 * SECOND_NS;

const RECORD_HEADER_BYTES: u64 = 5;
/// A record that claims more is wrong, which TLS itself is to say.
const LONGEST_RECORD_BYTES: u64 = RECORD_HEADER_BYTES + (1 << 14);

/// A connection that has not yet said what it is.
pub(super) struct Arrival {
    pub(super) socket: Socket,
    pub(super) client: SocketAddr,
    pub(super) deadline_ns: u64,
    /// Whether all of its first bytes have come, and it waits for its turn.
    pub(super) has_spoken: bool,
}

/// What a connection turned out to be.
pub(super) enum Identified {
    /// It hasn't said enough.
    NotYet,
    /// A control conversation, whose first TLS record has arrived; nothing of it has been read.
    Control,
    /// A flow; its opening has been read, what follows has not.
    Data(Opening),
    /// Nothing of ours.
    Foreign(String),
}

impl Arrival {
    pub(super) fn new(socket: Socket, client: SocketAddr) -> Self {
        let deadline_ns = monotonic_ns() + FIRST_BYTES_NS;
        Self { socket, client, deadline_ns, has_spoken: false }
    }

    /// Looks at what the connection has said so far.
    pub(super) fn identify(&self) -> Identified {
        let mut first = [0_u8; OPENING_BYTES];
        let length = match recv(self.socket.as_fd(), first.as_mut_slice(), RecvFlags::PEEK) {
            Ok((0, _)) => return Identified::Foreign("it closed without a word".to_owned()),
            Ok((length, _)) => length,
            Err(error) if io::Error::from(error).kind() == io::ErrorKind::WouldBlock => {
                return Identified::NotYet;
            }
            Err(error) => return Identified::Foreign(error.to_string()),
        };
        match sniff(&first[..length]) {
            Some(Kind::Control) if self.has_first_record(&first[..length]) => Identified::Control,
            Some(Kind::Control) => Identified::NotYet,
            Some(Kind::Data) if length < OPENING_BYTES => Identified::NotYet,
            Some(Kind::Data) => self.read_opening(&mut first),
            Some(Kind::Foreign) | None => {
                Identified::Foreign("it speaks something else".to_owned())
            }
        }
    }

    /// Whether the first record is there (RFC 8446 section 5.1: its length stands in bytes 3 and
    /// 4). Part of one costs its sender nothing, and so nothing is begun for it here.
    fn has_first_record(&self, first: &[u8]) -> bool {
        let [_, _, _, high, low, ..] = *first else { return false };
        let record_bytes = RECORD_HEADER_BYTES + u64::from(u16::from_be_bytes([high, low]));
        let arrived_bytes = rustix::io::ioctl_fionread(self.socket.as_fd()).unwrap_or(u64::MAX);
        arrived_bytes >= record_bytes.min(LONGEST_RECORD_BYTES)
    }

    fn read_opening(&self, first: &mut [u8; OPENING_BYTES]) -> Identified {
        match recv(self.socket.as_fd(), first.as_mut_slice(), RecvFlags::empty()) {
            Ok((OPENING_BYTES, _)) => match Opening::decode(first) {
                Ok(opening) => Identified::Data(opening),
                Err(error) => Identified::Foreign(error.to_string()),
            },
            _ => Identified::Foreign("its first bytes could not be read".to_owned()),
        }
    }
}
