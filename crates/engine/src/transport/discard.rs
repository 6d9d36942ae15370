//! TCP whose receiver lets the kernel drop the bytes.

use std::io;
use std::os::fd::AsFd;

use socket2::Socket;

use super::{ByteStream, Tcp};
use crate::socket::discard;

/// Bytes dropped at once: more than a socket holds, unless its buffer is very large.
const MOST_BYTES: usize = 16 << 20;

/// A connected TCP socket of which nothing is read: the buffer of a receive stays as it is.
pub(crate) struct Discarding(pub(crate) Tcp);

impl ByteStream for Discarding {
    const SHORT_MEANS_EMPTY: bool = true;

    fn socket(&self) -> &Socket {
        self.0.socket()
    }

    fn establish(&mut self) -> io::Result<()> {
        self.0.establish()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    #[inline]
    fn receive(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        discard(self.0.0.as_fd(), MOST_BYTES)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.0.finish_sending()
    }
}
