//! A stream of a connection, as any other stream of bytes.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::Bytes;
use linerate_measure::report::SocketFacts;
use linerate_measure::sample::QuicStatus;
use quinn_proto::StreamId;
use socket2::Socket;

use super::connection::SharedConnection;
use super::lent::part_of;
use super::session::Agreed;
use super::settings::Congestion;
use crate::control::cipher_of;
use crate::pattern::Pattern;
use crate::socket::socket_drops;
use crate::transport::ByteStream;

/// Which way a stream goes, as this end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Both,
    Out,
    /// In, and which stream has asked for it: that one says that all was received.
    In(Option<StreamId>),
}

/// One stream of a connection that stands.
pub(crate) struct QuicStream {
    connection: SharedConnection,
    id: StreamId,
    way: Way,
    socket: Arc<Socket>,
    pattern: Bytes,
    facts: Facts,
    has_received_all: bool,
    /// Whether it sends in bulk, so that how much of that was acknowledged is of interest.
    is_bulk: bool,
}

/// What the kernel doesn't know of a stream's socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) congestion: Congestion,
    /// Whether trains of packets are sent, and received.
    pub(crate) offload: (bool, bool),
}

impl Facts {
    pub(super) fn complete(self, agreed: &Agreed, facts: SocketFacts) -> SocketFacts {
        let cipher = agreed.suite.and_then(|suite| cipher_of(suite.into()));
        let (gso, gro) = self.offload;
        let congestion = Some(self.congestion.name().to_owned());
        SocketFacts {
            congestion,
            gso: Some(gso),
            gro: Some(gro),
            cipher: cipher.map(|cipher| cipher.name().to_owned()),
            ..facts
        }
    }
}

impl QuicStream {
    /// `pattern` is what senders send from: see [`shared_pattern`].
    pub(crate) fn new(
        connection: SharedConnection,
        (id, way): (StreamId, Way),
        socket: Arc<Socket>,
        pattern: Bytes,
        facts: Facts,
        is_bulk: bool,
    ) -> Self {
        Self { connection, id, way, socket, pattern, facts, has_received_all: false, is_bulk }
    }

    /// Fails with `WouldBlock` until the connection has ended, and then with the reason.
    pub(crate) fn await_close(&self) -> io::Result<()> {
        self.connection.borrow().establish().and(Err(io::ErrorKind::WouldBlock.into()))
    }

    fn receive_each(&mut self, most: usize, look: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        if self.has_received_all {
            return Ok(0);
        }
        if self.way == Way::Out {
            // Nothing comes back: the peer is done when it has acknowledged all.
            return self.connection.borrow_mut().await_delivery(self.id).map(|()| 0);
        }
        let (bytes, finished) = self.connection.borrow_mut().receive(self.id, most, look)?;
        self.has_received_all = finished;
        Ok(bytes)
    }
}

/// A pattern as memory that packets are made from without copying it first.
pub(crate) fn shared_pattern(pattern: &Arc<Pattern>) -> Bytes {
    struct Owner(Arc<Pattern>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            self.0.all()
        }
    }
    Bytes::from_owner(Owner(Arc::clone(pattern)))
}

impl ByteStream for QuicStream {
    const SHORT_MEANS_EMPTY: bool = true;

    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn establish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut connection = self.connection.borrow_mut();
        match part_of(&self.pattern, bytes) {
            Some(bytes) if self.is_bulk => connection.send_watched(self.id, bytes),
            Some(bytes) => connection.send_shared(self.id, bytes),
            None => connection.send(self.id, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        let most = into.len();
        self.receive_each(most, &mut |piece| {
            if let Some(place) = into.get_mut(done..done + piece.len()) {
                place.copy_from_slice(piece);
            }
            done += piece.len();
        })
    }

    fn receive_in_place(
        &mut self,
        into: &mut [u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> io::Result<usize> {
        self.receive_each(into.len(), look)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        let id = match self.way {
            Way::Both | Way::Out => self.id,
            Way::In(Some(asking)) => asking,
            Way::In(None) => return Ok(()),
        };
        self.connection.borrow_mut().finish(id)
    }

    fn quic(&self) -> Option<QuicStatus> {
        let mut connection = self.connection.borrow_mut();
        let acked_bytes = connection.delivered_bytes(self.id);
        let socket_drops = socket_drops(self.socket.as_fd());
        Some(QuicStatus { acked_bytes, socket_drops, ..connection.status() })
    }

    fn complete(&self, facts: SocketFacts) -> SocketFacts {
        self.facts.complete(&self.connection.borrow().agreed(), facts)
    }
}
