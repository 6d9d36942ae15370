//! A control connection as a stream of bytes that doesn't block.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags};
use rustix::time::Timespec;
use socket2::{Socket, TcpKeepalive};

use crate::clock::SECOND_NS;
use crate::socket::tcp_last_heard;

/// A peer that takes no message for so long is gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// The kernel is to leave it to a test whether its peer is gone: no test gets there.
const NEVER: Duration = Duration::from_secs(7 * 86_400);
/// Bytes read at once; no message is longer.
const READ_BYTES: usize = 2048;

/// A control connection.
pub(super) struct Control {
    socket: Socket,
    /// A peer whose machine is gone is noticed after so long, when no test is under way.
    silence: Duration,
}

/// What came.
pub(super) enum Came {
    /// Bytes.
    Bytes,
    /// Nothing for now.
    Nothing,
    /// The peer says nothing more.
    End,
}

impl Control {
    /// Prepares a connection. A peer whose machine is gone is noticed after `silence`, of some
    /// seconds.
    pub(super) fn new(socket: Socket, silence: Duration) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let second = Duration::from_secs(1);
        let alive = TcpKeepalive::new().with_time(second).with_interval(second);
        socket.set_tcp_keepalive(&alive)?;
        // Ends a connection whose probes aren't answered, too, in the place of their number.
        socket.set_tcp_user_timeout(Some(silence))?;
        Ok(Self { socket, silence })
    }

    /// Whether a silent peer is borne with: a test's load may hold up or drown all that it says.
    pub(super) fn set_patient(&self, patient: bool) {
        let silence = if patient { NEVER } else { self.silence };
        // Fails only where the connection is gone.
        let _gone = self.socket.set_tcp_user_timeout(Some(silence));
    }

    /// How long ago the peer's machine was last heard; not known: just now.
    pub(super) fn unheard(&self) -> Duration {
        tcp_last_heard(self.as_fd()).map_or(Duration::ZERO, |(ago, _)| ago)
    }

    /// Whether all that was written has come to the peer's machine, as far as is known.
    pub(super) fn is_acknowledged(&self) -> bool {
        tcp_last_heard(self.as_fd()).is_none_or(|(_, acknowledged)| acknowledged)
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Writes a whole message. It always fits an idle connection's buffer.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            match rustix::net::send(self.as_fd(), left, SendFlags::NOSIGNAL) {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => self.await_room()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn await_room(&self) -> io::Result<()> {
        let mut polled = [PollFd::new(&self.socket, PollFlags::OUT)];
        let timeout = timespec(PATIENCE.as_nanos() as u64);
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }

    /// Reads what has come, to the end of `into`.
    pub(super) fn read(&self, into: &mut Vec<u8>) -> io::Result<Came> {
        let mut buffer = [0; READ_BYTES];
        match rustix::net::recv(self.as_fd(), &mut buffer, RecvFlags::empty()) {
            Ok((0, _)) => Ok(Came::End),
            Ok((length, _)) => {
                into.extend_from_slice(buffer.get(..length).unwrap_or_default());
                Ok(Came::Bytes)
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(Came::Nothing),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Control {
    /// The kernel would keep what is left of a patient connection, and send it again, as long as it was patient:
    /// peers that vanish on purpose could fill its room for such.
    fn drop(&mut self) {
        self.set_patient(false);
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Waits until one of them is readable, or for so long.
pub(super) fn wait<'a>(sources: impl IntoIterator<Item = BorrowedFd<'a>>, wait_ns: u64) {
    let watched = |source| PollFd::from_borrowed_fd(source, PollFlags::IN);
    let mut polled: Vec<PollFd<'_>> = sources.into_iter().map(watched).collect();
    // Interrupted by a signal: as if the time were over.
    let _interrupted = poll(&mut polled, Some(&timespec(wait_ns)));
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as _ }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_is_left_of_a_patient_connection_has_no_patience() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = Socket::from(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let (left, silence) = (socket.try_clone().unwrap(), Duration::from_secs(5));
        let control = Control::new(socket, silence).unwrap();
        control.set_patient(true);
        assert_eq!(left.tcp_user_timeout().unwrap(), Some(NEVER));
        drop(control);
        assert_eq!(left.tcp_user_timeout().unwrap(), Some(silence));
    }
}
