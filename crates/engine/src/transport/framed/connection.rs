//! One connection: its socket, its session, and how far it has come.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::Socket;

use super::session::{Fault, FramedTls, Incoming};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::socket::TcpCounts;
use crate::socket::{tcp_bytes, tcp_counts, tcp_retransmissions, tcp_status};
use crate::transport::multiplexer::{Ending, LinkEvent, Sending, Statistics};
use crate::waiting::Peer;

/// A read that brings so much is followed by another at once, up to so many before others get their
/// turn.
const MUCH_BYTES: usize = 32 << 10;
const READS_AT_ONCE: usize = 4;
/// How long a connection may take to stand.
const HANDSHAKE_LIMIT_NS: u64 = 10 * SECOND_NS;
/// How long nothing may move on a connection that stands: with nothing to send, and while the other end
/// takes nothing.
const IDLE_LIMIT_NS: u64 = 30 * SECOND_NS;
const STALLED_LIMIT_NS: u64 = 10 * SECOND_NS;
/// How long the last bytes may take to leave.
const CLOSING_LIMIT_NS: u64 = SECOND_NS;

/// How long a read that waits does so at most.
pub(super) const READ_WAIT: Duration = Duration::from_millis(20);

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    On,
    Over,
}

pub(super) struct Connection {
    socket: Socket,
    session: FramedTls,
    server: bool,
    /// What the poll set watches its socket for.
    pub(super) watched: EventFlags,
    /// The kernel has not said yet that the other end answered.
    connecting: bool,
    /// A send was refused: the room that comes is told.
    starved: bool,
    /// Whether its endpoint knows that there is something to send.
    unsent_noted: bool,
    /// Its number, while it is one that its endpoint has accepted and that doesn't stand yet.
    pub(super) pending: Option<usize>,
    /// Nothing more is wanted of it.
    closing: bool,
    failure: Option<Fault>,
    /// A server reads no requests while their answers would have no room. A client always reads, so
    /// that the two never wait for each other.
    clogged: bool,
    /// When it is over if nothing moves.
    deadline_ns: u64,
    established: bool,
    /// Whether the last turn brought much.
    bulky: bool,
    /// Whether something has come since the last look at the clock.
    received_since_look: bool,
    /// Whether its socket's reads may wait, and whether the next one does.
    may_wait: bool,
    waits: bool,
    /// How often its socket's handshake had to be said again.
    syn_retransmissions: Option<u64>,
}

impl Connection {
    pub(super) fn dialed(socket: Socket, session: FramedTls) -> Self {
        Self::new(socket, session, false)
    }

    pub(super) fn accepted(socket: Socket, session: FramedTls) -> Self {
        Self::new(socket, session, true)
    }

    fn new(socket: Socket, session: FramedTls, server: bool) -> Self {
        let syn_retransmissions = server.then(|| tcp_retransmissions(socket.as_fd())).flatten();
        Self {
            syn_retransmissions,
            socket,
            session,
            server,
            watched: EventFlags::empty(),
            connecting: !server,
            starved: false,
            unsent_noted: false,
            pending: None,
            closing: false,
            failure: None,
            clogged: false,
            deadline_ns: monotonic_ns() + HANDSHAKE_LIMIT_NS,
            established: false,
            bulky: false,
            received_since_look: false,
            may_wait: false,
            waits: false,
        }
    }

    /// The other end's address.
    pub(super) fn remote(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()?.as_socket()
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn session(&mut self) -> &mut FramedTls {
        &mut self.session
    }

    /// Whether it stands.
    pub(super) fn is_established(&self) -> bool {
        self.established
    }

    /// Whether its last turn brought much: more will come soon.
    pub(super) fn is_bulky(&self) -> bool {
        self.bulky
    }

    /// Where what it receives comes from.
    pub(super) fn peer(&self) -> Peer {
        Peer::of(&self.socket)
    }

    /// Has the next read wait for what comes; whether it will. It must be all that the connection waits for.
    pub(super) fn wait_in_read(&mut self) -> bool {
        if !self.established || self.watched != EventFlags::IN || self.interest() != self.watched {
            return false;
        }
        if !self.may_wait {
            let timed = self.socket.set_read_timeout(Some(READ_WAIT));
            self.may_wait = timed.and_then(|()| self.socket.set_nonblocking(false)).is_ok();
        }
        self.waits = self.may_wait;
        self.waits
    }

    /// What its socket should be watched for.
    pub(super) fn interest(&self) -> EventFlags {
        let mut interest = EventFlags::empty();
        interest.set(EventFlags::IN, !self.connecting && !self.clogged && !self.closing);
        interest.set(EventFlags::OUT, self.connecting || self.blocked());
        interest
    }

    fn blocked(&self) -> bool {
        !self.unsent_noted && self.session.has_unsent()
    }

    /// Notes that there is something to send; whether that is news.
    pub(super) fn note_unsent(&mut self) -> bool {
        !std::mem::replace(&mut self.unsent_noted, true)
    }

    /// Whether there was something to send that hasn't been tried yet.
    pub(super) fn take_unsent_note(&mut self) -> bool {
        std::mem::take(&mut self.unsent_noted)
    }

    pub(super) fn send(&mut self, stream: u64, sending: Sending<'_>) -> Option<usize> {
        if self.closing {
            return None;
        }
        let sent = self.session.send(stream, sending);
        let taken = self.noted(sent).flatten();
        self.starved |= taken.is_none();
        taken
    }

    pub(super) fn abort(&mut self, stream: u64) {
        if !self.closing {
            let aborted = self.session.abort(stream);
            self.noted(aborted);
        }
    }

    /// Bytes that the kernel has taken and the other end hasn't acknowledged.
    pub(super) fn unacknowledged_bytes(&mut self) -> u64 {
        let acked = tcp_bytes(self.socket.as_fd()).map(|(acked_bytes, _)| acked_bytes);
        let left_bytes = self.session.outbox().left_bytes();
        acked.map_or(0, |acked_bytes| left_bytes.saturating_sub(acked_bytes))
    }

    /// It is over, for this reason.
    pub(super) fn give_up(&mut self, why: Fault) {
        self.failure.get_or_insert(why);
    }

    pub(super) fn close(&mut self) {
        if !self.closing {
            self.closing = true;
            self.deadline_ns = monotonic_ns() + CLOSING_LIMIT_NS;
        }
    }

    /// Looks at the clock; says whether it is over.
    pub(super) fn handle_time(&mut self, now_ns: u64) -> bool {
        if !std::mem::take(&mut self.received_since_look) {
            self.session.rest();
        }
        let stands = self.established && !self.closing;
        let early_ns =
            if stands && self.session.has_unsent() { IDLE_LIMIT_NS - STALLED_LIMIT_NS } else { 0 };
        let over = now_ns.saturating_add(early_ns) >= self.deadline_ns;
        if over && !self.closing {
            self.failure.get_or_insert("timed out");
        }
        over
    }

    /// How it ended.
    pub(super) fn ending(&self) -> Ending {
        let statistics = tcp_status(self.socket()).map_or(Statistics::Unknown, |status| {
            let syn_retransmissions = self.syn_retransmissions;
            let counts = TcpCounts { syn_retransmissions, ..tcp_counts(self.socket()) };
            Statistics::Tcp(status, counts)
        });
        let (established, failure) = (self.established, self.failure);
        Ending { established, failure, statistics }
    }

    /// Moves bytes as far as the socket lets it, and tells what came of them.
    pub(super) fn turn(
        &mut self,
        readable: bool,
        writable: bool,
        tell: &mut dyn FnMut(LinkEvent),
    ) -> Turn {
        if self.connecting && writable {
            match self.socket.take_error() {
                Ok(None) => {
                    self.connecting = false;
                    self.syn_retransmissions = tcp_retransmissions(self.socket());
                }
                Ok(Some(error)) | Err(error) => self.failure = Some(cause(&error)),
            }
        }
        self.bulky = false;
        if readable && !self.connecting && self.failure.is_none() && !self.clogged {
            for _ in 0..READS_AT_ONCE {
                let received = self.receive(tell);
                if self.noted(received).is_none_or(|bytes| bytes < MUCH_BYTES) {
                    break;
                }
                self.bulky = true;
            }
        }
        if !self.connecting && self.failure.is_none() {
            let sent = self.flush(tell);
            self.noted(sent);
        }
        let now_over =
            self.closing && (!self.session.has_unsent() || monotonic_ns() >= self.deadline_ns);
        if self.failure.is_some() || now_over { Turn::Over } else { Turn::On }
    }

    /// Takes what one call brings; how much.
    fn receive(&mut self, tell: &mut dyn FnMut(LinkEvent)) -> Result<usize, Fault> {
        let flags =
            if std::mem::take(&mut self.waits) { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let bytes = match recv(self.socket.as_fd(), self.session.vacant(), flags) {
            Ok((bytes, _)) => bytes,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(0),
            Err(error) => return Err(cause(&error.into())),
        };
        if bytes == 0 {
            // The original has no word of goodbye: a connection that stands just ends.
            return if self.established {
                self.close();
                Ok(0)
            } else {
                Err("closed")
            };
        }
        self.session.record_filled(bytes);
        self.received_since_look = true;
        self.record_motion();
        while let Some(incoming) = self.session.poll_incoming()? {
            match incoming {
                Incoming::Handshake => {}
                Incoming::Established => {
                    self.established = true;
                    self.record_motion();
                    tell(LinkEvent::Established);
                }
                Incoming::Data { stream, start, bytes, finished } => {
                    tell(LinkEvent::Received { stream, one_way: false, start, bytes, finished });
                }
                Incoming::Abort { stream } => tell(LinkEvent::Reset { stream, code: None }),
            }
        }
        Ok(bytes)
    }

    /// Sends what there is.
    fn flush(&mut self, tell: &mut dyn FnMut(LinkEvent)) -> Result<(), Fault> {
        while self.session.has_unsent() {
            let unsent = self.session.outbox().unsent();
            match send(self.socket.as_fd(), unsent, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(bytes) => self.session.outbox().record_sent(bytes),
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => return Err(cause(&error.into())),
            }
            self.record_motion();
        }
        while let Some((stream, bytes)) = self.session.outbox().poll_left() {
            tell(LinkEvent::Delivered { stream, bytes });
        }
        let room = self.session.outbox().has_room();
        self.clogged = self.server && !room;
        if room && std::mem::take(&mut self.starved) {
            tell(LinkEvent::Writable { stream: None });
        }
        Ok(())
    }

    fn record_motion(&mut self) {
        if self.established && !self.closing {
            self.deadline_ns = monotonic_ns() + IDLE_LIMIT_NS;
        }
    }

    fn noted<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(fault) => {
                self.failure.get_or_insert(fault);
                None
            }
        }
    }
}

/// The word that a failure of the socket is counted by.
fn cause(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "reset",
        io::ErrorKind::TimedOut => "timed out",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
        _ => "other",
    }
}
