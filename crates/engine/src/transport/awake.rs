//! TCP whose receiver stays awake while much comes, and lets little gather.

use std::io;
use std::sync::Arc;

use socket2::Socket;

use super::{ByteStream, Tcp};
use crate::waiting::{BulkWait, Rests};

/// A connected TCP socket that is received from in bulk.
pub(crate) struct Awake {
    tcp: Tcp,
    /// Absent until the first receive, when it's known how the socket waits.
    wait: Option<Option<BulkWait>>,
    /// Absent where it never rests.
    rests: Option<Rests>,
}

impl Awake {
    pub(crate) fn new(socket: Arc<Socket>) -> Self {
        Self { tcp: Tcp(socket), wait: None, rests: Some(Rests::new()) }
    }

    /// One whose receives are timed, call by call: a rest would count as theirs.
    pub(crate) fn without_rests(socket: Arc<Socket>) -> Self {
        Self { rests: None, ..Self::new(socket) }
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
        let wait = self.wait.get_or_insert_with(|| BulkWait::of_stream(&self.tcp.0));
        let Some(wait) = wait else { return self.tcp.receive(into) };
        let Some(rests) = &mut self.rests else { return wait.receive(&self.tcp.0, into) };
        if !wait.is_in_bulk() {
            rests.rest();
        }
        let length = wait.receive(&self.tcp.0, into)?;
        rests.record_received(length);
        Ok(length)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.tcp.finish_sending()
    }
}
