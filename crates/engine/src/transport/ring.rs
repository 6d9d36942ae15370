//! TCP that sends from buffers of its own, one after the other.

use std::io;
use std::sync::Arc;

use socket2::Socket;

use super::{ByteStream, Tcp};
use crate::buffers::{Buffers, Dirt};

/// All buffers together have at most so many bytes, or there is one.
const MOST_BYTES: usize = 4 << 20;

/// A connected TCP socket with a ring of send buffers: of what is to be sent only the length
/// matters.
pub(crate) struct Ring {
    socket: Tcp,
    buffers: Vec<u8>,
    unit_bytes: usize,
    /// Where the buffer of the next send begins.
    next: usize,
    dirt: Dirt,
}

impl Ring {
    /// A ring of `width` buffers of `unit_bytes`.
    pub(crate) fn new(
        socket: Arc<Socket>,
        buffers: &Buffers,
        unit_bytes: usize,
        width: usize,
    ) -> Self {
        let width = width.min(MOST_BYTES / unit_bytes.max(1)).max(1);
        Self {
            socket: Tcp(socket),
            buffers: buffers.filled(unit_bytes, width),
            unit_bytes,
            next: 0,
            dirt: buffers.dirt,
        }
    }
}

impl ByteStream for Ring {
    const SHORT_MEANS_EMPTY: bool = true;

    fn socket(&self) -> &Socket {
        self.socket.socket()
    }

    fn establish(&mut self) -> io::Result<()> {
        self.socket.establish()
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(self.unit_bytes);
        let buffer = self.buffers.get_mut(self.next..self.next + length).unwrap_or_default();
        self.dirt.before_send(buffer);
        let sent = self.socket.send(buffer)?;
        self.next += self.unit_bytes;
        if self.next >= self.buffers.len() {
            self.next = 0;
        }
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.dirt.before_receive(into);
        self.socket.receive(into)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.socket.finish_sending()
    }
}
