//! What can be done with the streams of a connection.

use std::io;

use bytes::Bytes;
use quinn_proto::{
    Dir, FinishError, ReadError, RecvStream, SendStream, StreamId, VarInt, WriteError,
};

use super::super::cause::Cause;
use super::super::delivery::Delivery;
use super::Connection;

/// What came of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamRead {
    /// So many bytes. There may be more now, or an event says when there is.
    Bytes(usize),
    /// So many bytes, which are the stream's last.
    Finished(usize),
    /// Nothing is there now; an event says when there is.
    Blocked,
    /// The peer has given the stream up, with this code; what came of it and was not read is gone (RFC 9000,
    /// section 19.4).
    Reset(u64),
    /// The stream can't be read any more: its end was told, this end has stopped it, or its connection is gone.
    Closed,
}

/// How a peer broke off one direction of a stream, and its application's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StreamAbort {
    /// It gave up sending (RFC 9000, section 19.4).
    #[error("QUIC: the peer reset the stream with code {0}")]
    Reset(u64),
    /// It wants to receive no more (section 19.5).
    #[error("QUIC: the peer stopped the stream with code {0}")]
    Stopped(u64),
}

impl StreamAbort {
    fn stopped(code: VarInt) -> io::Error {
        Self::Stopped(code.into_inner()).into()
    }

    /// The code.
    pub(crate) fn code(self) -> u64 {
        let (Self::Reset(code) | Self::Stopped(code)) = self;
        code
    }
}

impl From<StreamAbort> for io::Error {
    fn from(abort: StreamAbort) -> Self {
        Self::new(io::ErrorKind::ConnectionReset, abort)
    }
}

impl Connection {
    /// Opens a stream, where the peer allows another.
    pub(crate) fn open_stream(&mut self, dir: Dir) -> Option<StreamId> {
        self.proto.streams().open(dir)
    }

    /// Takes a stream that the peer has opened.
    pub(crate) fn accept_stream(&mut self, dir: Dir) -> Option<StreamId> {
        self.proto.streams().accept(dir)
    }

    /// Sends the beginning of `bytes`; says how many.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where there is no room now, and an event says when there is.
    pub(crate) fn send(&mut self, id: StreamId, bytes: &[u8]) -> io::Result<usize> {
        let closed = WriteError::ClosedStream;
        let sent = sender(&mut self.proto, id).ok_or(closed).and_then(|mut to| to.write(bytes));
        self.sent(sent)
    }

    /// Sends bytes that are shared, not copied; says how many.
    ///
    /// # Errors
    ///
    /// As [`Connection::send`].
    pub(crate) fn send_shared(&mut self, id: StreamId, bytes: Bytes) -> io::Result<usize> {
        let mut chunks = [bytes];
        let sent = write_chunks(&mut self.proto, id, &mut chunks);
        self.sent(sent)
    }

    /// Likewise; what was not taken is left.
    ///
    /// # Errors
    ///
    /// As [`Connection::send`].
    pub(crate) fn send_part(&mut self, id: StreamId, piece: &mut Bytes) -> io::Result<usize> {
        let sent = write_chunks(&mut self.proto, id, std::slice::from_mut(piece));
        self.sent(sent)
    }

    /// Sends as [`Connection::send_shared`], and watches how much of the stream is delivered.
    ///
    /// # Errors
    ///
    /// As [`Connection::send`].
    pub(crate) fn send_watched(&mut self, id: StreamId, bytes: Bytes) -> io::Result<usize> {
        let delivery = self.deliveries.entry(id).or_default();
        let mut chunks = [delivery.piece(bytes)];
        let sent = write_chunks(&mut self.proto, id, &mut chunks);
        // What wasn't taken goes before it is said how much was.
        drop(chunks);
        delivery.record_taken(*sent.as_ref().unwrap_or(&0));
        self.sent(sent)
    }

    /// Bytes of a stream that the peer has acknowledged, where that is watched: no more than they are.
    pub(crate) fn delivered_bytes(&mut self, id: StreamId) -> Option<u64> {
        self.deliveries.get_mut(&id).map(Delivery::bytes)
    }

    /// How much of a stream was delivered isn't needed any more.
    pub(crate) fn forget_delivery(&mut self, id: StreamId) {
        self.deliveries.remove(&id);
    }

    fn sent(&mut self, sent: Result<usize, WriteError>) -> io::Result<usize> {
        match sent {
            Ok(bytes) => {
                self.touch();
                Ok(bytes)
            }
            Err(_) if self.lost.is_some() => Err(self.closed()),
            Err(WriteError::Blocked) => Err(io::ErrorKind::WouldBlock.into()),
            Err(WriteError::Stopped(code)) => Err(StreamAbort::stopped(code)),
            Err(WriteError::ClosedStream) => Err(self.closed()),
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&mut self, id: StreamId) -> io::Result<()> {
        self.touch();
        let closed = FinishError::ClosedStream;
        let finished = sender(&mut self.proto, id).ok_or(closed).and_then(|mut to| to.finish());
        finished.map_err(|error| match error {
            FinishError::Stopped(code) if self.lost.is_none() => StreamAbort::stopped(code),
            _ => self.closed(),
        })
    }

    /// Whether the peer has acknowledged all of a stream that was finished, or has closed in order, which
    /// says the same.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where it hasn't, and an event says when; whatever ended the connection.
    pub(crate) fn await_delivery(&mut self, id: StreamId) -> io::Result<()> {
        let Some(stream) = sender(&mut self.proto, id) else { return Ok(()) };
        match (stream.stopped(), &self.lost) {
            (Err(_), _) => Ok(()),
            (Ok(Some(code)), _) => Err(StreamAbort::stopped(code)),
            (Ok(None), None) => Err(io::ErrorKind::WouldBlock.into()),
            (Ok(None), Some(cause)) if cause.code == Some(0) => Ok(()),
            (Ok(None), Some(cause)) => Err(cause.error()),
        }
    }

    /// Gives up sending, on a stream that sends.
    pub(crate) fn reset(&mut self, id: StreamId, code: u64) {
        if let Some(delivery) = self.deliveries.get_mut(&id) {
            delivery.end();
        }
        if let Some(mut stream) = sender(&mut self.proto, id) {
            // Fails only where nothing was left to give up.
            let _over_anyway = stream.reset(varint(code));
            self.note_limits();
            self.waited.release();
            self.touch();
        }
    }

    /// Tells the peer that nothing more will be read, on a stream that receives.
    pub(crate) fn stop_sending(&mut self, id: StreamId, code: u64) {
        if let Some(mut stream) = receiver(&mut self.proto, id) {
            let _over_anyway = stream.stop(varint(code));
            self.touch();
        }
    }

    /// Looks at up to `most` bytes that have come, piece by piece in their order, where they are. Only what
    /// was read makes room: the peer may send no more than the window beyond that.
    pub(crate) fn read(
        &mut self,
        id: StreamId,
        most: usize,
        look: &mut dyn FnMut(&[u8]),
    ) -> StreamRead {
        let mut left = most;
        self.read_pieces(id, most, &mut |piece| {
            look(&piece);
            left -= piece.len();
            left
        })
    }

    /// Takes bytes that have come, piece by piece in their order, not copied: the first of up to `most` bytes, and
    /// each other of up to as many as `take` says then. 0: no more.
    pub(crate) fn read_pieces(
        &mut self,
        id: StreamId,
        most: usize,
        take: &mut dyn FnMut(Bytes) -> usize,
    ) -> StreamRead {
        let Some(mut stream) = receiver(&mut self.proto, id) else { return StreamRead::Closed };
        let Ok(mut chunks) = stream.read(true) else { return StreamRead::Closed };
        let (mut bytes, mut most) = (0, most);
        let read = loop {
            if most == 0 {
                break StreamRead::Bytes(bytes);
            }
            match chunks.next(most) {
                Ok(Some(chunk)) => {
                    bytes += chunk.bytes.len();
                    most = take(chunk.bytes);
                }
                Ok(None) => break StreamRead::Finished(bytes),
                // A stream that was reset has nothing else to be read.
                Err(ReadError::Reset(code)) => break StreamRead::Reset(code.into_inner()),
                Err(ReadError::Blocked) if bytes > 0 => break StreamRead::Bytes(bytes),
                Err(ReadError::Blocked) if self.lost.is_some() => break StreamRead::Closed,
                Err(ReadError::Blocked) => break StreamRead::Blocked,
            }
        };
        if chunks.finalize().should_transmit() {
            self.touch();
        }
        read
    }

    /// The same as a socket's user has it: how many bytes, and whether the peer has sent its last and all was
    /// read.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where nothing is there now; whatever ended the stream ([`StreamAbort`]) or the connection
    /// ([`Cause`]).
    pub(crate) fn receive(
        &mut self,
        id: StreamId,
        most: usize,
        look: &mut dyn FnMut(&[u8]),
    ) -> io::Result<(usize, bool)> {
        match self.read(id, most, look) {
            StreamRead::Bytes(bytes) => Ok((bytes, false)),
            StreamRead::Finished(bytes) => Ok((bytes, true)),
            StreamRead::Blocked => Err(io::ErrorKind::WouldBlock.into()),
            StreamRead::Reset(code) => Err(StreamAbort::Reset(code).into()),
            StreamRead::Closed => Err(self.closed()),
        }
    }

    /// Why nothing can be done with a stream any more.
    fn closed(&self) -> io::Error {
        let cause = self.lost.as_ref();
        cause.map_or_else(|| io::ErrorKind::NotConnected.into(), Cause::error)
    }
}

/// The sending half of a stream that has one. The crate panics at others, and which streams there are is up
/// to the peer.
fn sender(proto: &mut quinn_proto::Connection, id: StreamId) -> Option<SendStream<'_>> {
    (id.dir() == Dir::Bi || id.initiator() == proto.side()).then(|| proto.send_stream(id))
}

/// Likewise, the receiving half.
fn receiver(proto: &mut quinn_proto::Connection, id: StreamId) -> Option<RecvStream<'_>> {
    (id.dir() == Dir::Bi || id.initiator() != proto.side()).then(|| proto.recv_stream(id))
}

fn write_chunks(
    proto: &mut quinn_proto::Connection,
    id: StreamId,
    chunks: &mut [Bytes],
) -> Result<usize, WriteError> {
    let mut stream = sender(proto, id).ok_or(WriteError::ClosedStream)?;
    stream.write_chunks(chunks).map(|sent| sent.bytes)
}

/// A code as it goes on the wire, which has numbers below 2^62 alone (RFC 9000, section 16).
fn varint(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}
