//! Connections that have not yet said what they are.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use linerate_wire::native::opening::{Arrival as Kind, OPENING_BYTES, Opening, sniff};
use rustix::net::{RecvFlags, recv};
use socket2::Socket;

use crate::clock::SECOND_NS;

/// A connection must say what it is within this time.
pub(super) const PATIENCE_NS: u64 = 3 * SECOND_NS;

/// A connection that has not yet said what it is.
pub(super) struct Arrival {
    pub(super) socket: Socket,
    pub(super) client: SocketAddr,
    pub(super) deadline_ns: u64,
}

/// What a connection turned out to be.
pub(super) enum Identified {
    /// It hasn't said enough.
    NotYet,
    /// A control conversation; nothing of it has been read.
    Control,
    /// A flow; its opening has been read, what follows has not.
    Data(Opening),
    /// Nothing of ours.
    Foreign(String),
}

impl Arrival {
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
            Some(Kind::Control) => Identified::Control,
            Some(Kind::Data) if length < OPENING_BYTES => Identified::NotYet,
            Some(Kind::Data) => self.read_opening(&mut first),
            Some(Kind::Foreign) | None => {
                Identified::Foreign("it speaks something else".to_owned())
            }
        }
    }

    fn read_opening(&self, first: &mut [u8; OPENING_BYTES]) -> Identified {
        match recv(self.socket.as_fd(), first.as_mut_slice(), RecvFlags::empty()) {
            Ok((OPENING_BYTES, _)) => match Opening::decode(first) {
                Ok(opening) => Identified::Data(opening),
                Err(error) => Identified::Foreign(error.to_string()),
            },
            _ => Identified::Foreign("its first words could not be read".to_owned()),
        }
    }
}
