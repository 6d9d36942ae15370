//! TCP whose bytes come from a file, or go into one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

use socket2::Socket;

use super::{Awake, ByteStream, Tcp};

/// A connected TCP socket that sends a file from its beginning to its end: of what is to be sent only the length
/// matters. A send of nothing says that the end has come.
pub(crate) struct FromFile {
    socket: Tcp,
    file: File,
    /// What was read and not sent.
    block: Vec<u8>,
    from: usize,
    /// What is read at once, at most.
    most_bytes: usize,
}

impl FromFile {
    pub(crate) fn new(socket: Arc<Socket>, file: File, most_bytes: usize) -> Self {
        Self { socket: Tcp(socket), file, block: Vec::new(), from: 0, most_bytes }
    }
}

impl ByteStream for FromFile {
    const SHORT_MEANS_EMPTY: bool = true;

    fn socket(&self) -> &Socket {
        self.socket.socket()
    }

    fn establish(&mut self) -> io::Result<()> {
        self.socket.establish()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.from >= self.block.len() {
            self.block.resize(bytes.len().min(self.most_bytes), 0);
            self.from = 0;
            let read = self.file.read(&mut self.block);
            // What wasn't read isn't sent.
            self.block.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        let unsent = self.block.get(self.from..).unwrap_or_default();
        if unsent.is_empty() {
            return Ok(0);
        }
        let sent = self.socket.send(unsent)?;
        self.from += sent;
        Ok(sent)
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
}

/// A connected TCP socket whose received bytes are written to a file.
pub(crate) struct IntoFile {
    socket: Awake,
    file: File,
}

impl IntoFile {
    pub(crate) fn new(socket: Arc<Socket>, file: File) -> Self {
        Self { socket: Awake::new(socket), file }
    }
}

impl ByteStream for IntoFile {
    const SHORT_MEANS_EMPTY: bool = Awake::SHORT_MEANS_EMPTY;

    fn socket(&self) -> &Socket {
        self.socket.socket()
    }

    fn establish(&mut self) -> io::Result<()> {
        self.socket.establish()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.socket.receive(into)?;
        self.file.write_all(into.get(..length).unwrap_or_default())?;
        Ok(length)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.socket.finish_sending()
    }
}
