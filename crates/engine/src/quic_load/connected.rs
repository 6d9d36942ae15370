//! A connection with what its streams need, and how a stream of it carries a life.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use linerate_measure::step::LifeFault;
use socket2::Socket;

use crate::connections::{Awaited, LifeStream, fault};
use crate::transport::ByteStream;
use crate::transport::quic::{Facts, QuicStream, SharedConnection, StreamId, Way};

/// One connection, and what its streams need of its socket.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) connection: SharedConnection,
    pub(super) socket: Arc<Socket>,
    pub(super) facts: Facts,
}

impl Connected {
    /// One of its streams, which sends from the pattern.
    pub(super) fn stream(
        &self,
        id: StreamId,
        way: Way,
        pattern: &Bytes,
        is_bulk: bool,
    ) -> QuicStream {
        let (connection, socket) = (self.connection.clone(), Arc::clone(&self.socket));
        QuicStream::new(connection, (id, way), socket, pattern.clone(), self.facts, is_bulk)
    }
}

/// Several connections share a loop, which waits for all of them.
impl LifeStream for QuicStream {
    type Wait = ();

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ByteStream::send(self, bytes)
    }

    fn receive(&mut self, _: Awaited, into: &mut [u8], (): &mut ()) -> io::Result<usize> {
        ByteStream::receive(self, into)
    }

    /// The server ends the stream with the last bytes that it sends; what it closes is the connection.
    fn see_silence(&mut self, (): &mut ()) -> io::Result<()> {
        match ByteStream::receive(self, &mut [0])? {
            0 => self.await_close(),
            _ => Err(fault(LifeFault::Excess)),
        }
    }

    /// The stream's end goes along with its last bytes.
    fn end_sending(&mut self) -> io::Result<()> {
        self.finish_sending()
    }
}
