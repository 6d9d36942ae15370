//! UDP sockets and the QUIC connections over them, driven by the thread that owns them.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{ConnectionHandle, Dir, StreamId};
use socket2::Socket;

mod blueprint;
mod bounds;
mod half_open;
mod look;
mod port;
mod receiving;
mod routes;
mod sending;
mod slots;
mod stay;
mod undecided;
mod waiting;

use super::cause::Cause;
use super::connection::{Connection, Location, SharedConnection, Touched};
use super::settings::{ClientSide, ServerSide, Settings};
use crate::error::Error;
pub(crate) use crate::transport::multiplexer::Link;
use blueprint::Blueprint;
use half_open::HalfOpen;
pub(super) use look::insist;
pub(crate) use port::Port;
use port::Ports;
use slots::LinkSlots;
use stay::LATE;
pub(super) use stay::{LAST_WORDS, QUIET, UNSAID_LIMIT};
use undecided::Undecided;
use waiting::{EXACT, Waiting};

/// What has happened to a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// A client at this address wants a connection, and offers these application protocols, where its user
    /// decides: it is to be accepted or refused.
    Incoming(SocketAddr, Vec<Vec<u8>>),
    /// A client has begun the handshake; streams may come before it is done.
    Accepted,
    /// The handshake is done.
    Established,
    /// Before it was, a packet is said to have found the peer's port closed. Anybody can say so.
    Refused,
    /// The peer has opened streams of this sort.
    StreamsOpened(Dir),
    /// The peer allows more streams of this sort.
    StreamsAvailable(Dir),
    /// There is something to read: bytes, the end, or a reset.
    Readable(StreamId),
    /// There is room to send, where there was none.
    Writable(StreamId),
    /// The peer has acknowledged all, the end included.
    Delivered(StreamId),
    /// The peer reads no more, and has given this code for it.
    Stopped(StreamId, u64),
    /// Datagrams have come.
    Datagrams,
    /// There is room for datagrams, where there was none.
    DatagramsWritable,
    /// The connection has ended, from either end; its last event.
    Closed(Cause),
}

/// UDP sockets and the connections over them: one socket that all connections share, or several, or one for each
/// connection. Its thread gives it turns: packets in, timers, packets out, never more of either than leaves others
/// their part.
pub(crate) struct Endpoint {
    blueprint: Blueprint,
    accepts: Option<ServerSide>,
    ports: Ports,
    slots: LinkSlots,
    half_open: HalfOpen,
    /// Connections that are given something to do between turns, and those that have something to say.
    touched: Touched,
    queue: VecDeque<u32>,
    times: BinaryHeap<Reverse<(Instant, u32)>>,
    events: VecDeque<(Link, Event)>,
    /// What isn't QUIC's, with the socket that it came to, where somebody asks for it.
    foreign: Option<VecDeque<(u32, BytesMut)>>,
    /// Whether the packets in each datagram are counted.
    counts: bool,
    outgoing: Vec<u8>,
    waiting: Waiting,
    /// Connections that were refused because there were too many over a socket.
    pub(crate) refused: u64,
}

impl Endpoint {
    /// One that accepts connections, if it's a server's. It has no socket yet.
    ///
    /// # Errors
    ///
    /// Where the settings are out of bounds, or this machine has no randomness.
    pub(crate) fn new(settings: &Settings, accepts: Option<&ServerSide>) -> Result<Self, Error> {
        Ok(Self {
            blueprint: Blueprint::new(settings.clone())?,
            accepts: accepts.cloned(),
            ports: Ports::default(),
            slots: LinkSlots::default(),
            half_open: HalfOpen::new(settings.half_open_connections, settings.handshake),
            touched: Rc::new(RefCell::new(Vec::new())),
            queue: VecDeque::new(),
            times: BinaryHeap::new(),
            events: VecDeque::new(),
            foreign: None,
            counts: false,
            outgoing: Vec::new(),
            waiting: Waiting::default(),
            refused: 0,
        })
    }

    /// One with a socket.
    ///
    /// # Errors
    ///
    /// Where the socket can't be set up, or as [`Endpoint::new`].
    pub(crate) fn over(
        socket: Arc<Socket>,
        settings: &Settings,
        accepts: Option<&ServerSide>,
    ) -> Result<Self, Error> {
        let mut endpoint = Self::new(settings, accepts)?;
        endpoint.add(socket)?;
        Ok(endpoint)
    }

    /// One whose connections are told how many packets came for them, if their session counts, too.
    pub(crate) fn counting(mut self, counts: bool) -> Self {
        self.counts = counts;
        self
    }

    /// One whose user asks for the datagrams that aren't QUIC's: else they are dropped.
    pub(crate) fn keeping_foreign(mut self) -> Self {
        self.foreign = Some(VecDeque::new());
        self
    }

    /// One whose user decides which clients are accepted, and when: [`Event::Incoming`].
    pub(crate) fn asking(mut self) -> Self {
        self.half_open.undecided = Some(Undecided::default());
        self
    }

    /// One whose own connections, of an endpoint that accepts others, are told this of their routes.
    pub(crate) fn connecting(mut self, settings: Settings) -> Self {
        self.blueprint.outgoing = Some(settings);
        self
    }

    /// One that asks again for a moment before it sleeps where much comes.
    pub(crate) fn looking(mut self) -> Self {
        self.waiting.looks = true;
        self
    }

    /// Has it use another socket, which any number of connections share; its number.
    ///
    /// # Errors
    ///
    /// Where the socket can't be set up.
    pub(crate) fn add(&mut self, socket: Arc<Socket>) -> Result<u32, Error> {
        let port = self.prepare(socket)?;
        let failed = |error| Error::Host(format!("can't wait for a UDP socket: {error}"));
        self.add_port(port).map_err(failed)
    }

    /// Sets a socket up for one connection alone.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::add`].
    pub(crate) fn prepare(&self, socket: Arc<Socket>) -> Result<Port, Error> {
        self.blueprint.port(socket, self.accepts.as_ref())
    }

    /// Sets a socket up for one connection alone of an endpoint that accepts others; nobody is accepted over it.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::add`].
    pub(crate) fn prepare_outgoing(&self, socket: Arc<Socket>) -> Result<Port, Error> {
        self.blueprint.port(socket, None)
    }

    /// Begins a connection over the socket of this number.
    ///
    /// # Errors
    ///
    /// Where the address or the name can't be connected to.
    pub(crate) fn connect(
        &mut self,
        number: u32,
        to: SocketAddr,
        server_name: &str,
        client: &ClientSide,
    ) -> io::Result<Link> {
        let port = self.ports.at_mut(number).ok_or(io::ErrorKind::Other)?;
        let (config, log) = client.config(to, port.route.as_ref())?;
        let made = port.proto.connect(Instant::now(), config, to, server_name);
        let (handle, proto) =
            made.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let local = port.packets.socket.local_addr().ok().and_then(|local| local.as_socket());
        let link = self.slots.reserve();
        self.insert(link, number, handle, proto);
        if let (Some(log), Some(connection)) = (log, self.connection(link)) {
            log.record_start(local, to);
            connection.borrow_mut().log = Some(log);
        }
        Ok(link)
    }

    /// Begins a connection over a socket of its own, which closes some time after the connection.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::connect`], or where the socket can't be waited for.
    pub(crate) fn connect_apart(
        &mut self,
        port: Port,
        to: SocketAddr,
        server_name: &str,
        client: &ClientSide,
    ) -> io::Result<Link> {
        let number = self.add_port(port)?;
        let made = self.connect(number, to, server_name, client);
        match made {
            Ok(link) => self.ports.set_own(number, link),
            Err(_) => self.remove_port(number),
        }
        made
    }

    /// A connection, until it is forgotten.
    pub(crate) fn connection(&self, link: Link) -> Option<&SharedConnection> {
        self.slots.get(link)
    }

    /// The socket of a connection.
    pub(crate) fn socket_of(&self, link: Link) -> Option<&Port> {
        let number = self.connection(link)?.borrow().location.port;
        self.ports.get(number)
    }

    /// The socket of this number.
    pub(crate) fn socket(&self, number: u32) -> Option<&Arc<Socket>> {
        self.ports.get(number).map(Port::socket)
    }

    /// How many sockets there are.
    pub(crate) fn sockets(&self) -> usize {
        self.ports.open()
    }

    /// How many sockets of single connections have closed.
    pub(crate) fn closed_sockets(&self) -> u64 {
        self.ports.closed
    }

    /// Connections that aren't forgotten yet.
    pub(crate) fn open_connections(&self) -> usize {
        self.slots.open()
    }

    /// The next thing that has happened.
    pub(crate) fn poll_event(&mut self) -> Option<(Link, Event)> {
        self.events.pop_front()
    }

    /// The next datagram that isn't QUIC's, as its first byte says (RFC 9443), and the number of the socket that it
    /// came to.
    pub(crate) fn poll_foreign(&mut self) -> Option<(u32, BytesMut)> {
        self.foreign.as_mut()?.pop_front()
    }

    /// Packets in, timers, packets out; says whether there is more to do at once.
    ///
    /// # Errors
    ///
    /// What a socket says that connections share, where it isn't of the path.
    pub(crate) fn turn(&mut self) -> io::Result<bool> {
        let more_in = self.take_in()?;
        let more_out = self.send_out()?;
        Ok(more_in || more_out || !self.events.is_empty())
    }

    /// Whether a turn is of use now.
    pub(crate) fn is_busy(&self) -> bool {
        !self.events.is_empty() || !self.queue.is_empty() || !self.touched.borrow().is_empty()
    }

    /// Whether a socket had no room for what was to be sent.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.ports.blocked.is_empty()
    }

    /// Whether much came in the last turn.
    #[cfg(test)]
    pub(super) fn is_in_bulk(&self) -> bool {
        self.waiting.look.is_in_bulk()
    }

    /// Closes every connection, with an application's code.
    pub(crate) fn close_all(&mut self, code: u32) {
        for connection in self.slots.all() {
            connection.borrow_mut().close(code, b"");
        }
    }

    /// Sends what is there to be sent, so that the last words get out, no longer than this.
    pub(crate) fn flush(&mut self, at_most: Duration) {
        let end = Instant::now() + at_most;
        while Instant::now() < end {
            match self.send_out() {
                Ok(true) => {}
                Ok(false) if self.is_blocked() => {
                    let _slept = self.wait(Duration::from_millis(1), None);
                }
                _ => return,
            }
        }
    }

    /// Hears what still comes, until nothing has come for `quiet`, no longer than `at_most`.
    pub(crate) fn linger(&mut self, quiet: Duration, at_most: Duration) {
        let end = Instant::now() + at_most;
        while self.open_connections() > 0 && Instant::now() < end {
            if !self.receives_within(quiet) || self.turn().is_err() {
                return;
            }
        }
    }

    /// Waits for packets, for a timer, or for what else is given, no longer than this; says whether that was it.
    ///
    /// # Errors
    ///
    /// What the poll set says.
    pub(crate) fn wait(
        &mut self,
        at_most: Duration,
        also: Option<BorrowedFd<'_>>,
    ) -> io::Result<bool> {
        if self.is_busy() {
            return Ok(false);
        }
        let (wait, is_exact) = self.idle(at_most);
        self.waiting.ask(&self.ports, wait, is_exact, also)
    }

    /// Whether a packet comes within this time, whatever timers say.
    fn receives_within(&mut self, time: Duration) -> bool {
        self.waiting.ask(&self.ports, time, true, None).is_ok() && !self.waiting.unread.is_empty()
    }

    /// How long nothing needs to be done, and whether that is to end in time.
    fn idle(&self, at_most: Duration) -> (Duration, bool) {
        let now = Instant::now();
        let left = |due: Instant| due.saturating_duration_since(now);
        let stay = self.ports.stays.front().map(|(ends, _)| left(*ends + LATE));
        let wait = stay.map_or(at_most, |stay| at_most.min(stay));
        match self.next_time().map(left) {
            Some(due) if due < wait => (due, !due.is_zero() && due < EXACT),
            _ => (wait, false),
        }
    }

    fn add_port(&mut self, port: Port) -> io::Result<u32> {
        let number = self.ports.next();
        self.waiting.enlist(&mut self.ports, number, &port)?;
        self.ports.add(port);
        Ok(number)
    }

    /// Closes a socket, which takes it out of the poll set, too (epoll(7)).
    pub(super) fn remove_port(&mut self, number: u32) {
        self.ports.remove(number);
        self.waiting.alone.take_if(|alone| *alone == number);
    }

    /// A connection begins over this socket, in the place that is reserved for it.
    fn insert(
        &mut self,
        link: Link,
        number: u32,
        handle: ConnectionHandle,
        proto: quinn_proto::Connection,
    ) {
        let location = Location { port: number, handle, place: link.index };
        let mut connection = Connection::new(proto, location, Rc::clone(&self.touched));
        connection.touch();
        self.slots.take(link, Rc::new(RefCell::new(connection)));
        if let Some(port) = self.ports.at_mut(number) {
            port.set_place(handle, Some(link.index));
            port.connections += 1;
        }
    }

    /// A connection is over. The machine knows of it, so its number may be another connection's.
    fn forget(&mut self, index: u32, connection: &Connection) {
        self.slots.forget(index);
        let Some(port) = self.ports.at_mut(connection.location.port) else { return };
        port.connections -= 1;
        if port.place(connection.location.handle) == Some(index) {
            port.set_place(connection.location.handle, None);
        }
    }
}

#[cfg(test)]
mod tests;
