//! TCP whose receiver stays awake while much comes.

use std::io;
use std::sync::Arc;

use socket2::Socket;

use super::lookout::BulkLookout;
use super::{ByteStream, Tcp};

/// A connected TCP socket that is received from in bulk.
pub(crate) struct Awake {
    tcp: Tcp,
    /// Absent until the first receive, when it's known how the socket waits.
    lookout: Option<Option<BulkLookout>>,
}

impl Awake {
    pub(crate) fn new(socket: Arc<Socket>) -> Self {
        Self { tcp: Tcp(socket), lookout: None }
    }
}

impl ByteStream for Awake {
    const SHORT_MEANS_EMPTY: bool = Tcp::SHORT_MEANS_EMPTY;

    fn socket(&self) -> &Socket {
        self.tcp.socket()
    }

    fn establish(&mut self) -> io::Result<()> {
        self.tcp.establish()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.lookout.get_or_insert_with(|| BulkLookout::of_stream(&self.tcp.0)) {
            Some(lookout) => lookout.receive(&self.tcp.0, into),
            None => self.tcp.receive(into),
        }
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.tcp.finish_sending()
    }
}
