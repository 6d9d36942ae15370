//! A control connection in the clear.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::Socket;

use super::channel::{Channel, READ_BYTES, Reading};

/// What one segment carries at most: with IPv6's and TCP's headers it fits a link of the least MTU, 1,280 bytes
/// (RFC 8200, section 5). A path that drops larger packets without a word then costs no test its results. The
/// connection's own MSS can't be lowered for that: peers take their datagrams' default length from it.
const SEGMENT_BYTES: usize = 1_200;

/// A control connection in the clear.
pub(crate) struct TcpChannel {
    socket: Socket,
    unwritten: Vec<u8>,
    /// The TCP_USER_TIMEOUT with which the kernel is left alone with what was written.
    last_timeout: Option<Duration>,
}

impl TcpChannel {
    pub(crate) fn new(socket: Socket, last_timeout: Option<Duration>) -> Self {
        Self { socket, unwritten: Vec::new(), last_timeout }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The TCP_USER_TIMEOUT with which the connection ends.
    pub(crate) fn last_timeout(&self) -> Option<Duration> {
        self.last_timeout
    }
}

impl Channel for TcpChannel {
    fn read(&mut self, into: &mut Vec<u8>) -> io::Result<Reading> {
        let start = into.len();
        into.resize(start + READ_BYTES, 0);
        let received = loop {
            match recv(&self.socket, &mut into[start..], RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                other => break other.map(|(length, _)| length),
            }
        };
        into.truncate(start + received.unwrap_or(0));
        match received {
            Ok(0) => Ok(Reading::Ended),
            Ok(READ_BYTES) => Ok(Reading::More),
            Ok(_) | Err(Errno::AGAIN) => Ok(Reading::Open),
            Err(error) => Err(error.into()),
        }
    }

    fn queue(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unwritten.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        let flushed = loop {
            let rest = self.unwritten.get(written..).unwrap_or_default();
            if rest.is_empty() {
                break Ok(());
            }
            let segment = rest.get(..SEGMENT_BYTES).unwrap_or(rest);
            // The end of a record: the kernel puts nothing more into this segment, nor when it is sent again.
            match send(&self.socket, segment, SendFlags::EOR | SendFlags::NOSIGNAL) {
                Ok(length) => written += length,
                Err(Errno::AGAIN) => break Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => break Err(error.into()),
            }
        };
        self.unwritten.drain(..written);
        flushed
    }

    fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    fn end(&mut self) {
        // Fails where the connection is gone.
        let _gone = self.socket.shutdown(std::net::Shutdown::Write);
    }
}

impl Drop for TcpChannel {
    /// The kernel would keep what is left of a connection with a long time-out, and send it again, for all of that
    /// time: peers that vanish on purpose could fill its room for such.
    fn drop(&mut self) {
        if self.last_timeout.is_some() {
            // Fails where the connection is gone.
            let _gone = self.socket.set_tcp_user_timeout(self.last_timeout);
        }
    }
}

impl AsFd for TcpChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
