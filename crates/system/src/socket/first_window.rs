//! The window that a listener's connections begin with.

use std::io;
use std::os::fd::AsFd;

use socket2::{Domain, Socket, Type};

use super::option::unlock_buffers;

/// What handshakes offer at least: a control connection's first message fits.
const LEAST_BYTES: u32 = 4 << 10;

/// The receive buffer of a listener: the handshakes of its connections offer what that takes.
///
/// A connection whose buffer shrinks after the handshake has offered more than it takes. Its peer has laid out
/// segments for that; they don't fit, and leave one by one when the persist timer cuts them (RFC
/// 9293, section 3.8.6.1).
pub struct FirstWindow {
    /// What the kernel gives connections by itself, as one asks for it; `None` where it could not be had back.
    usual_bytes: Option<usize>,
    bytes: Option<u32>,
    /// Whether it ever was another than the kernel's choice.
    was_set: bool,
}

impl FirstWindow {
    /// Of a listener that has the kernel's choice.
    pub fn of(listener: &Socket) -> io::Result<Self> {
        // The kernel doubles what it is asked for, and gives no more than net.core.rmem_max (SO_RCVBUF, socket(7)).
        let granted_bytes = listener.recv_buffer_size()?;
        let trial = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        trial.set_recv_buffer_size(granted_bytes / 2)?;
        let can_be_had = trial.recv_buffer_size()? == granted_bytes;
        let usual_bytes = can_be_had.then_some(granted_bytes / 2);
        Ok(Self { usual_bytes, bytes: None, was_set: false })
    }

    /// What connections begin with from now on; `None`: the kernel's choice. It stays that where it
    /// could not be had back (before Linux 5.14, over MPTCP, and where it is more than one may ask for).
    pub fn set(&mut self, listener: &Socket, bytes: Option<u32>) {
        let bytes = bytes.map(|bytes| bytes.max(LEAST_BYTES));
        let Some(usual_bytes) = self.usual_bytes.filter(|_| bytes != self.bytes) else { return };
        if unlock_buffers(listener.as_fd()).is_err() {
            return;
        }
        let set = match bytes {
            Some(bytes) => listener.set_recv_buffer_size(bytes as usize),
            None => let_the_kernel_choose(listener, usual_bytes),
        };
        if set.is_ok() {
            self.bytes = bytes;
            self.was_set = true;
        }
    }

    /// Gives a connection that may have begun with another test's window the buffer that it would have had. The
    /// scale of its window stays as agreed.
    pub fn restore(&self, accepted: &Socket) {
        if let Some(usual_bytes) = self.usual_bytes.filter(|_| self.was_set) {
            let _slower_at_worst = let_the_kernel_choose(accepted, usual_bytes);
        }
    }

    /// What connections may begin with of which each wants its own: what all want, or the kernel's choice. Too large
    /// a first window costs a test throughput; one too small would cost the others theirs.
    pub fn agreed(mut wanted: impl Iterator<Item = Option<u32>>) -> Option<u32> {
        let first = wanted.next()??;
        wanted.all(|bytes| bytes == Some(first)).then_some(first)
    }
}

fn let_the_kernel_choose(socket: &Socket, usual_bytes: usize) -> io::Result<()> {
    socket.set_recv_buffer_size(usual_bytes)?;
    unlock_buffers(socket.as_fd())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_begin_with_what_is_set_and_later_ones_as_usual() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Socket::from(listener);
        let mut first_window = FirstWindow::of(&listener).unwrap();
        let received = || {
            let _peer = TcpStream::connect(address).unwrap();
            listener.accept().unwrap().0.recv_buffer_size().unwrap()
        };
        let usual_bytes = received();
        for (bytes, expected) in
            [(Some(8_192), 16_384), (Some(1), 8_192), (Some(16_384), 32_768), (None, usual_bytes)]
        {
            first_window.set(&listener, bytes);
            assert_eq!(received(), expected);
        }
    }

    #[test]
    fn they_agree_where_all_want_the_same() {
        let agreed = |wanted: &[Option<u32>]| FirstWindow::agreed(wanted.iter().copied());
        assert_eq!(agreed(&[]), None);
        assert_eq!(agreed(&[Some(1)]), Some(1));
        assert_eq!(agreed(&[Some(1), Some(1)]), Some(1));
        assert_eq!(agreed(&[Some(1), Some(2)]), None);
        assert_eq!(agreed(&[Some(1), None]), None);
        assert_eq!(agreed(&[None, Some(1)]), None);
    }
}
