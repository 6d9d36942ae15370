//! TCP whose receiver stays awake while much comes, and lets little gather.

use std::io;
use std::sync::Arc;

use socket2::Socket;

use super::lookout::BulkLookout;
use super::moderation::Moderation;
use super::{ByteStream, Tcp};

/// A connected TCP socket that is received from in bulk.
pub(crate) struct Awake {
    tcp: Tcp,
    /// Absent until the first receive, when it's known how the socket waits.
    lookout: Option<Option<BulkLookout>>,
    /// Absent where it never rests.
    moderation: Option<Moderation>,
}

impl Awake {
    pub(crate) fn new(socket: Arc<Socket>) -> Self {
        Self { tcp: Tcp(socket), lookout: None, moderation: Some(Moderation::new()) }
    }

    /// One whose receives are timed, call by call: a rest would count as theirs.
    pub(crate) fn without_rests(socket: Arc<Socket>) -> Self {
        Self { moderation: None, ..Self::new(socket) }
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
        let lookout = self.lookout.get_or_insert_with(|| BulkLookout::of_stream(&self.tcp.0));
        let Some(lookout) = lookout else { return self.tcp.receive(into) };
        let Some(moderation) = &mut self.moderation else {
            return lookout.receive(&self.tcp.0, into);
        };
        if !lookout.is_in_bulk() {
            moderation.rest();
        }
        let length = lookout.receive(&self.tcp.0, into)?;
        moderation.record_received(length);
        Ok(length)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.tcp.finish_sending()
    }
}
