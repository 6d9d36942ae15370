//! Datagrams of a connection (RFC 9221): what it takes to send, what has come, and the way of one
//! flow.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use linerate_measure::report::SocketFacts;
use linerate_measure::sample::QuicStatus;
use quinn_proto::SendDatagramError;
use socket2::Socket;

use super::cause::Cause;
use super::connection::{Connection, SharedConnection};
use super::stream::Facts;
use crate::transport::DatagramPath;

/// So long a connection has to find out that its path carries what is asked for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Datagrams that a flow looks at before others have their turn.
const MOST_AT_ONCE: usize = 1_024;
/// What a datagram that waits takes beside its bytes, at most.
const WAITING_BYTES: usize = 64;

/// What a connection has taken to send in datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DatagramsTaken {
    taken: u64,
    /// Those of them that it dropped, as far as was told.
    dropped: u64,
    /// What there is room for when none waits.
    room_bytes: usize,
}

impl Connection {
    /// The longest datagram that goes through as far as is known; `None`: the peer takes none.
    pub(super) fn longest_datagram(&mut self) -> Option<usize> {
        self.proto.datagrams().max_size()
    }

    /// Bytes of datagrams that it would take.
    fn datagram_room(&mut self) -> usize {
        let room = self.proto.datagrams().send_buffer_space();
        self.datagrams.room_bytes = self.datagrams.room_bytes.max(room);
        room
    }

    /// Takes one to send.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where there is no room now, and an event says when there is; `FileTooLarge`
    /// where no packet can hold it.
    fn send_datagram(&mut self, bytes: Bytes) -> io::Result<()> {
        if let Some(cause) = &self.lost {
            return Err(cause.error());
        }
        let length = bytes.len();
        match self.proto.datagrams().send(bytes, false) {
            Ok(()) => {
                self.datagrams.taken += 1;
                self.touch();
                Ok(())
            }
            Err(SendDatagramError::Blocked(_)) => Err(io::ErrorKind::WouldBlock.into()),
            Err(SendDatagramError::TooLarge) => Err(too_large(length, self.longest_datagram())),
            Err(SendDatagramError::UnsupportedByPeer | SendDatagramError::Disabled) => {
                Err(unsupported())
            }
        }
    }

    /// The next datagram that has come.
    pub(crate) fn poll_datagram(&mut self) -> Option<Bytes> {
        self.proto.datagrams().recv()
    }

    /// How many of those that it took it has dropped, each told once, when none waits any more.
    fn flush_datagrams(&mut self) -> Option<u64> {
        if self.lost.is_none() && self.datagram_room() < self.datagrams.room_bytes {
            return None;
        }
        let left = self.proto.stats().frame_tx.datagram;
        let DatagramsTaken { taken, dropped, .. } = self.datagrams;
        let more = taken.saturating_sub(left).saturating_sub(dropped);
        self.datagrams.dropped += more;
        Some(more)
    }
}

fn too_large(bytes: usize, most: Option<usize>) -> io::Error {
    let most = most.unwrap_or(0);
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!(
            "{most} bytes go in a QUIC packet here, not {bytes}: ask for shorter datagrams (--size), or set \
             --mtu if the path carries longer packets"
        ),
    )
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the peer's QUIC takes no datagrams")
}

/// Datagrams of one flow that have come and that it hasn't looked at.
pub(crate) type Arrivals = Rc<RefCell<VecDeque<Bytes>>>;

/// The way of one flow's datagrams: its connection's, of which others sort out what comes.
pub(crate) struct QuicDatagrams {
    connection: SharedConnection,
    arrivals: Arrivals,
    socket: Arc<Socket>,
    facts: Facts,
    outgoing: BytesMut,
    began: Instant,
    /// Whether the path was found to carry what is asked for.
    carried: bool,
}

impl QuicDatagrams {
    pub(crate) fn new(
        connection: SharedConnection,
        arrivals: Arrivals,
        socket: Arc<Socket>,
        facts: Facts,
    ) -> Self {
        let (outgoing, began, carried) = (BytesMut::new(), Instant::now(), false);
        Self { connection, arrivals, socket, facts, outgoing, began, carried }
    }

    /// Why nothing has come.
    fn silence(&self) -> io::Error {
        let connection = self.connection.borrow();
        connection.lost.as_ref().map_or_else(|| io::ErrorKind::WouldBlock.into(), Cause::error)
    }
}

impl DatagramPath for QuicDatagrams {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    /// A connection begins with packets that every path carries, and tries longer ones.
    fn carries(&mut self, bytes: usize) -> io::Result<bool> {
        let mut connection = self.connection.borrow_mut();
        if let Some(cause) = &connection.lost {
            return Err(cause.error());
        }
        match connection.longest_datagram() {
            None => Err(unsupported()),
            Some(most) if most >= bytes => {
                self.carried = true;
                Ok(true)
            }
            most if self.began.elapsed() >= PATIENCE => Err(too_large(bytes, most)),
            Some(_) => Ok(false),
        }
    }

    fn begin_sending(&mut self, _unit_bytes: usize, most: usize) -> usize {
        most
    }

    fn send(&mut self, batch: &[u8], unit_bytes: usize) -> io::Result<usize> {
        let mut connection = self.connection.borrow_mut();
        let room = connection.datagram_room() / (unit_bytes + WAITING_BYTES);
        // Where there is no room the connection must be asked, or it wouldn't say when there is.
        let length = (room.max(1) * unit_bytes).min(batch.len());
        self.outgoing.extend_from_slice(batch.get(..length).unwrap_or_default());
        let mut datagrams = self.outgoing.split().freeze();
        let mut taken = 0;
        while datagrams.len() >= unit_bytes {
            match connection.send_datagram(datagrams.split_to(unit_bytes)) {
                Ok(()) => taken += 1,
                Err(_) if taken > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    fn flush(&mut self) -> Option<u64> {
        self.connection.borrow_mut().flush_datagrams()
    }

    fn begin_receiving(&mut self) {}

    fn receive(
        &mut self,
        unit_bytes: usize,
        _buffer: &mut [u8],
        mut look: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut arrivals = self.arrivals.borrow_mut();
        if arrivals.is_empty() {
            return Err(self.silence());
        }
        let count = arrivals.len().min(MOST_AT_ONCE);
        for datagram in arrivals.drain(..count).filter(|one| one.len() == unit_bytes) {
            look(&datagram);
        }
        Ok(())
    }

    fn receive_one(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let datagram = self.arrivals.borrow_mut().pop_front().ok_or_else(|| self.silence())?;
        let length = datagram.len().min(into.len());
        into.iter_mut().zip(datagram.iter()).for_each(|(place, byte)| *place = *byte);
        Ok(length)
    }

    fn offload(&self) -> (bool, bool) {
        self.facts.offload
    }

    /// A path that carries shorter packets than before is outlived, the end of the connection isn't.
    fn outlives(&self, _error: &io::Error) -> bool {
        self.carried && self.connection.borrow().lost.is_none()
    }

    fn end_warm_up(&mut self) {}

    /// What the socket dropped were packets of whichever flow.
    fn drops(&self) -> Option<u64> {
        None
    }

    fn quic(&self) -> Option<QuicStatus> {
        Some(self.connection.borrow().status())
    }

    fn complete(&self, facts: SocketFacts) -> SocketFacts {
        self.facts.complete(&self.connection.borrow().agreed(), facts)
    }
}
