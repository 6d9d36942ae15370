//! TCP: the socket itself.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::ByteStream;

/// A connected TCP socket.
pub(crate) struct Tcp(pub(crate) Arc<Socket>);

impl ByteStream for Tcp {
    const SHORT_MEANS_EMPTY: bool = true;

    fn socket(&self) -> &Socket {
        &self.0
    }

    fn establish(&mut self) -> io::Result<()> {
        Ok(())
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0.as_fd(), bytes, SendFlags::NOSIGNAL)?)
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (length, _) = rustix::net::recv(self.0.as_fd(), into, RecvFlags::empty())?;
        Ok(length)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)
    }
}
