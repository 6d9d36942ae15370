//! TCP whose sender lends its memory to the kernel.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::SendFlags;
use socket2::Socket;

use super::{ByteStream, Tcp};
use crate::socket::{enable_lending, take_returned};

/// Sends that may be unreturned before the socket is asked which are: each holds kernel memory.
const MOST_UNASKED: u64 = 16;

/// What became of memory that was lent to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lent {
    /// Sends that lent their memory.
    pub(crate) sends: u64,
    /// Those of them that the kernel said it was done with.
    pub(crate) returned: u64,
    /// Those of these whose bytes it copied after all.
    pub(crate) copied: u64,
}

/// A connected TCP socket whose sends lend their memory (MSG_ZEROCOPY). It must not be changed or
/// used for anything else for as long as the kernel may send from it, which is longer than the
/// connection: see [`Pattern::lasting`](crate::pattern::Pattern::lasting).
///
/// The socket must not block: a wait for returned memory is a wait for its readiness.
pub(crate) struct ZeroCopy {
    socket: Tcp,
    lent: Lent,
}

impl ZeroCopy {
    pub(crate) fn new(socket: Arc<Socket>) -> Self {
        Self { socket: Tcp(socket), lent: Lent::default() }
    }

    /// Hears which sends the kernel is done with, as far as it says; whether it said anything.
    fn take_back(&mut self, words: u32) -> bool {
        let returned_before = self.lent.returned;
        for _ in 0..words {
            let Ok(returned) = take_returned(self.socket.0.as_fd()) else { break };
            self.lent.returned += returned.sends;
            self.lent.copied += if returned.copied { returned.sends } else { 0 };
        }
        self.lent.returned > returned_before
    }

    fn unreturned(&self) -> u64 {
        self.lent.sends.saturating_sub(self.lent.returned)
    }
}

impl ByteStream for ZeroCopy {
    const SHORT_MEANS_EMPTY: bool = true;

    fn socket(&self) -> &Socket {
        self.socket.socket()
    }

    fn establish(&mut self) -> io::Result<()> {
        enable_lending(self.socket.0.as_fd()).map_err(|error| {
            io::Error::other(format!("this kernel has no zero copy (SO_ZEROCOPY): {error}"))
        })
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unreturned() >= MOST_UNASKED {
            self.take_back(1);
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as _);
        loop {
            match rustix::net::send(self.socket.0.as_fd(), bytes, flags) {
                Ok(sent) => {
                    self.lent.sends += 1;
                    return Ok(sent);
                }
                // As much is lent as may be (net.core.optmem_max, RLIMIT_MEMLOCK).
                Err(Errno::NOBUFS) if self.take_back(u32::MAX) => {}
                Err(Errno::NOBUFS) if self.unreturned() > 0 => {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                // Nothing of this flow's is to come back: the limit is too low for a send, or others of the
                // user's, whose it is, have taken it. A copy goes out, and counts as one.
                Err(Errno::NOBUFS) => {
                    let sent = self.socket.send(bytes)?;
                    self.lent.sends += 1;
                    self.lent.returned += 1;
                    self.lent.copied += 1;
                    return Ok(sent);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.receive(into)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.socket.finish_sending()
    }

    fn lent(&mut self) -> Option<Lent> {
        self.take_back(u32::MAX);
        Some(self.lent)
    }
}
