//! TLS 1.3 over TCP, all of it rustls's but the bytes of the socket, which are moved here.
//!
//! Encrypted bytes are taken from the socket many records at a time and fed to rustls from memory;
//! what rustls has to send leaves with one gathering call for all its records.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::Handshake;
use linerate_measure::report::SocketFacts;
use rustix::net::RecvFlags;
use rustls::{Connection, HandshakeKind};
use socket2::Socket;

use crate::control::cipher_of;
use crate::transport::ByteStream;

/// Encrypted bytes taken from the socket at once.
const INCOMING_BYTES: usize = 128 << 10;
/// Plaintext that rustls may hold for sending.
const OUTGOING_BYTES: usize = 256 << 10;

/// A TLS session on a connected TCP socket.
pub(crate) struct Tls {
    socket: Arc<Socket>,
    session: Connection,
    incoming: Vec<u8>,
    /// The part of `incoming` that rustls hasn't taken yet.
    unread: std::ops::Range<usize>,
    closing: bool,
}

impl Tls {
    pub(crate) fn new(socket: Arc<Socket>, mut session: Connection) -> Self {
        session.set_buffer_limit(Some(OUTGOING_BYTES));
        Self { socket, session, incoming: vec![0; INCOMING_BYTES], unread: 0..0, closing: false }
    }

    /// Whether there is something to send that the socket has not taken.
    pub(crate) fn wants_write(&self) -> bool {
        self.session.wants_write()
    }

    /// Whether the peer has yet to say its last word of the handshake.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Takes the beginning of `bytes` to go with the first messages, where the server has promised to take
    /// that; says how many.
    pub(crate) fn send_early(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.session {
            Connection::Client(client) => {
                client.early_data().map_or(Ok(0), |mut early| early.write(bytes))
            }
            Connection::Server(_) => Ok(0),
        }
    }

    /// How the keys were agreed on; before they are, full.
    pub(crate) fn handshake(&self) -> Handshake {
        let early = match &self.session {
            Connection::Client(client) => client.is_early_data_accepted(),
            Connection::Server(_) => false,
        };
        match self.session.handshake_kind() {
            Some(HandshakeKind::Resumed) if early => Handshake::Early,
            Some(HandshakeKind::Resumed) => Handshake::Resumed,
            _ => Handshake::Full,
        }
    }

    /// Waits until the server has given a ticket.
    pub(crate) fn take_ticket(&mut self) -> io::Result<()> {
        while let Connection::Client(client) = &self.session
            && client.tls13_tickets_received() == 0
        {
            self.take_records()?;
        }
        Ok(())
    }

    /// Reads what the client has sent before the handshake was done; `None`: nothing of that is here.
    fn receive_early(&mut self, into: &mut [u8]) -> Option<usize> {
        let Connection::Server(server) = &mut self.session else { return None };
        let length = server.early_data()?.read(into).ok()?;
        (length > 0).then_some(length)
    }

    /// Whether the peer is served before its last word of the handshake.
    fn takes_early(&mut self) -> bool {
        match &mut self.session {
            Connection::Server(server) => server.early_data().is_some(),
            Connection::Client(_) => false,
        }
    }

    fn send_records(&mut self) -> io::Result<()> {
        let mut socket = GatheringSocket(&self.socket);
        while self.session.wants_write() {
            self.session.write_tls(&mut socket)?;
        }
        Ok(())
    }

    /// Hands encrypted bytes to rustls, from the socket when there are none left.
    fn take_records(&mut self) -> io::Result<()> {
        if self.unread.is_empty() {
            let (length, _) = rustix::net::recv(
                self.socket.as_fd(),
                self.incoming.as_mut_slice(),
                RecvFlags::empty(),
            )?;
            if length == 0 {
                // No session ends without a word of its own (RFC 8446, section 6.1), and one
                // that hasn't begun would wait for ever.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.unread = 0..length;
        }
        let mut bytes = &self.incoming[self.unread.clone()];
        self.unread.start += self.session.read_tls(&mut bytes)?;
        self.session
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(())
    }
}

impl ByteStream for Tls {
    /// Records come one by one, and more may wait in the socket.
    const SHORT_MEANS_EMPTY: bool = false;

    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn establish(&mut self) -> io::Result<()> {
        while self.session.is_handshaking() && !self.takes_early() {
            self.send_records()?;
            if self.session.is_handshaking() {
                self.take_records()?;
            }
        }
        self.send_records()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send_records()?;
        let taken = self.session.writer().write(bytes)?;
        self.flush()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.send_records() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Also sends what is left of an earlier send: otherwise a caller that waits for the answer would
    /// wait for ever.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.session.wants_write() {
            self.flush()?;
        }
        loop {
            if let Some(length) = self.receive_early(into) {
                return Ok(length);
            }
            match self.session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.take_records()?,
                other => return other,
            }
            // The end of a handshake brings tickets for the peer.
            if self.session.wants_write() {
                self.flush()?;
            }
        }
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        if !self.closing {
            self.session.send_close_notify();
            self.closing = true;
        }
        self.send_records()?;
        self.socket.shutdown(Shutdown::Write)
    }

    fn complete(&self, facts: SocketFacts) -> SocketFacts {
        let suite = self.session.negotiated_cipher_suite();
        let cipher = suite.and_then(|suite| cipher_of(suite.suite()));
        SocketFacts { cipher: cipher.map(|cipher| cipher.name().to_owned()), ..facts }
    }
}

/// A socket that takes many pieces with one call.
struct GatheringSocket<'a>(&'a Socket);

impl Write for GatheringSocket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.send_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
