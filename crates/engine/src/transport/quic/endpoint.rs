//! One UDP socket and the connections over it, driven by the thread that owns them.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Dir, Event as ProtoEvent, Incoming, StreamEvent, StreamId,
    Transmit,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use socket2::Socket;

use super::cause::Cause;
use super::connection::{Connection, SharedConnection, Touched};
use super::packets::Packets;
use super::settings::{ClientSide, ServerSide, Settings};
use crate::control::random;
use crate::error::Error;

/// Trains that a turn takes in, and sends that it makes: bounded, so that acknowledgements leave
/// while packets come and the other way round.
const TRAINS_PER_TURN: usize = 8;
const SENDS_PER_TURN: usize = 16;
/// A server holds so many connections over one socket.
const MOST_CONNECTIONS: usize = 100_000;
/// The first byte of whatever is QUIC's is at least this (RFC 9000, section 17: the fixed bit).
const FIRST_OF_QUIC: u8 = 0x40;
/// What isn't QUIC's is kept until it is asked for, so many at most.
const MOST_FOREIGN: usize = 16;

/// A connection's place in its endpoint. It is taken again when the connection has closed and was
/// forgotten, some time after its [`Event::Closed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Link(pub(crate) usize);

/// What has happened to a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// A client has begun the handshake; streams may come before it is done.
    Accepted,
    /// The handshake is done.
    Established,
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
    /// The peer reads no more.
    Stopped(StreamId, u64),
    /// The connection has ended, whoever ended it; the last event that it has.
    Closed(Cause),
}

/// One UDP socket and the connections over it.
pub(crate) struct Endpoint {
    proto: quinn_proto::Endpoint,
    packets: Packets,
    accepts: bool,
    connections: Vec<Option<SharedConnection>>,
    open: usize,
    touched: Touched,
    queue: VecDeque<usize>,
    times: BinaryHeap<Reverse<(Instant, usize)>>,
    events: VecDeque<(Link, Event)>,
    foreign: VecDeque<BytesMut>,
    outgoing: Vec<u8>,
    /// What the socket had no room for.
    unsent: Option<(Transmit, Vec<u8>)>,
    /// Connections that were refused because there were too many.
    pub(crate) refused: u64,
    /// How often a packet is said to have found the peer's port closed. Anybody can say so; it means
    /// something only where nothing has been heard of the peer.
    pub(crate) refusals: u64,
}

#[allow(dead_code, reason = "loops of loads and dialects each use the half that they need")]
impl Endpoint {
    /// # Errors
    ///
    /// Where the socket can't be set up, or the settings are out of bounds.
    pub(crate) fn new(
        socket: Arc<Socket>,
        settings: &Settings,
        accepts: Option<&ServerSide>,
    ) -> Result<Self, Error> {
        let config = Arc::new(settings.endpoint(random()?)?);
        let server = accepts.map(ServerSide::config);
        let packets = Packets::new(socket, settings.offload, settings.ecn, settings.dscp)
            .map_err(|error| Error::Host(format!("can't set up a UDP socket for QUIC: {error}")))?;
        Ok(Self {
            proto: quinn_proto::Endpoint::new(config, server, true, Some(random()?)),
            packets,
            accepts: accepts.is_some(),
            connections: Vec::new(),
            open: 0,
            touched: Rc::new(RefCell::new(Vec::new())),
            queue: VecDeque::new(),
            times: BinaryHeap::new(),
            events: VecDeque::new(),
            foreign: VecDeque::new(),
            outgoing: Vec::new(),
            unsent: None,
            refused: 0,
            refusals: 0,
        })
    }

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        &self.packets.socket
    }

    /// Whether trains are sent, and received.
    pub(crate) fn offload(&self) -> (bool, bool) {
        (self.packets.most_segments() > 1, self.packets.receives_trains)
    }

    /// Begins a connection.
    ///
    /// # Errors
    ///
    /// Where the address or the name can't be connected to.
    pub(crate) fn connect(
        &mut self,
        to: SocketAddr,
        server_name: &str,
        client: &ClientSide,
    ) -> io::Result<Link> {
        let made = self.proto.connect(Instant::now(), client.config(), to, server_name);
        let (handle, proto) =
            made.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.insert(handle, proto);
        Ok(Link(handle.0))
    }

    /// A connection, until it is forgotten.
    pub(crate) fn connection(&self, link: Link) -> Option<&SharedConnection> {
        self.connections.get(link.0)?.as_ref()
    }

    /// Connections that aren't forgotten yet.
    pub(crate) fn open_connections(&self) -> usize {
        self.open
    }

    /// The next thing that has happened.
    pub(crate) fn poll_event(&mut self) -> Option<(Link, Event)> {
        self.events.pop_front()
    }

    /// The next datagram that isn't QUIC's: its first byte says so (RFC 9443).
    pub(crate) fn poll_foreign(&mut self) -> Option<BytesMut> {
        self.foreign.pop_front()
    }

    /// Packets in, timers, packets out; says whether there is more to do at once.
    ///
    /// # Errors
    ///
    /// What the socket says, where it isn't of the path.
    pub(crate) fn turn(&mut self) -> io::Result<bool> {
        let more_in = self.take_in()?;
        let more_out = self.send_out()?;
        Ok(more_in || more_out || !self.events.is_empty())
    }

    /// The first half of a turn: packets in, timers, and the events that come of them; says whether
    /// there may be more packets.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::turn`].
    pub(crate) fn take_in(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        let more = self.receive(now)?;
        self.handle_times(now);
        self.queue.extend(self.touched.borrow_mut().drain(..));
        for at in 0..self.queue.len() {
            let Some(index) = self.queue.get(at).copied() else { break };
            if let Some(Some(connection)) = self.connections.get(index).cloned() {
                self.collect(index, &mut connection.borrow_mut());
            }
        }
        Ok(more)
    }

    /// The other half: packets out; says whether there are more.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::turn`].
    pub(crate) fn send_out(&mut self) -> io::Result<bool> {
        self.send(Instant::now())
    }

    /// Whether a turn is of use now.
    pub(crate) fn is_busy(&self) -> bool {
        let unblocked = self.unsent.is_none();
        let touched = !self.touched.borrow().is_empty() || !self.queue.is_empty();
        !self.events.is_empty() || (unblocked && touched)
    }

    /// What its socket is to be polled for.
    pub(crate) fn poll_flags(&self) -> PollFlags {
        let blocked = if self.unsent.is_some() { PollFlags::OUT } else { PollFlags::empty() };
        PollFlags::IN | blocked
    }

    /// Waits for the socket, for a timer, or for one of `others`, no longer than this.
    pub(crate) fn wait(&self, at_most: Duration, others: &[BorrowedFd<'_>]) {
        if self.is_busy() {
            return;
        }
        let mut wait = at_most;
        if let Some(due) = self.next_time() {
            wait = wait.min(due.saturating_duration_since(Instant::now()));
        }
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(1 + others.len());
        polled.push(PollFd::new(&*self.packets.socket, self.poll_flags()));
        polled.extend(others.iter().map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)));
        let timeout =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        // Interrupted by a signal: as if the time were over.
        let _interrupted = poll(&mut polled, Some(&timeout));
    }

    /// When a timer is due.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.times.peek().map(|Reverse((due, _))| *due)
    }

    /// Closes every connection, with an application's code.
    pub(crate) fn close_all(&mut self, code: u32) {
        for connection in self.connections.iter().flatten() {
            connection.borrow_mut().close(code, b"");
        }
    }

    /// Sends what is there to be sent, so that the last words get out, no longer than this.
    pub(crate) fn flush(&mut self, at_most: Duration) {
        let end = Instant::now() + at_most;
        while Instant::now() < end {
            match self.send(Instant::now()) {
                Ok(true) => {}
                Ok(false) if self.unsent.is_some() => {
                    self.wait(Duration::from_millis(1), &[]);
                }
                _ => return,
            }
        }
    }

    fn insert(&mut self, handle: ConnectionHandle, proto: quinn_proto::Connection) {
        let mut connection = Connection::new(proto, handle, Rc::clone(&self.touched));
        connection.touch();
        if self.connections.len() <= handle.0 {
            self.connections.resize_with(handle.0 + 1, || None);
        }
        if let Some(place) = self.connections.get_mut(handle.0) {
            *place = Some(Rc::new(RefCell::new(connection)));
            self.open += 1;
        }
    }

    fn receive(&mut self, now: Instant) -> io::Result<bool> {
        for _ in 0..TRAINS_PER_TURN {
            let mut train = match self.packets.receive() {
                Ok(Some(train)) => train,
                Ok(None) => return Ok(false),
                // An earlier packet found the peer's port closed, or so somebody says.
                Err(error) if is_of_the_path(&error) => {
                    self.refusals += u64::from(error.kind() == io::ErrorKind::ConnectionRefused);
                    continue;
                }
                Err(error) => return Err(error),
            };
            // One packet alone is, as a rule, all there is; the next wait tells if not.
            let is_alone = train.bytes.len() <= train.segment_bytes;
            while !train.bytes.is_empty() {
                let length = train.segment_bytes.min(train.bytes.len());
                let datagram = train.bytes.split_to(length);
                if datagram.first().is_some_and(|first| *first < FIRST_OF_QUIC) {
                    if self.foreign.len() < MOST_FOREIGN {
                        self.foreign.push_back(datagram);
                    }
                    continue;
                }
                self.outgoing.clear();
                let event = self.proto.handle(
                    now,
                    train.from,
                    train.to,
                    train.ecn,
                    datagram,
                    &mut self.outgoing,
                );
                self.handle_datagram(now, event);
            }
            if is_alone {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn handle_datagram(&mut self, now: Instant, event: Option<DatagramEvent>) {
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(Some(connection)) = self.connections.get(handle.0) {
                    let mut connection = connection.borrow_mut();
                    connection.proto.handle_event(event);
                    connection.touch();
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(transmit)) => self.respond(&transmit),
            None => {}
        }
    }

    fn accept(&mut self, now: Instant, incoming: Incoming) {
        self.outgoing.clear();
        if !self.accepts || self.open >= MOST_CONNECTIONS {
            self.refused += 1;
            let refusal = self.proto.refuse(incoming, &mut self.outgoing);
            return self.respond(&refusal);
        }
        match self.proto.accept(incoming, now, &mut self.outgoing, None) {
            Ok((handle, proto)) => {
                self.insert(handle, proto);
                self.events.push_back((Link(handle.0), Event::Accepted));
            }
            Err(error) => {
                if let Some(response) = error.response {
                    self.respond(&response);
                }
            }
        }
    }

    /// Answers a datagram that belongs to no connection. Whoever doesn't get the answer asks again.
    fn respond(&mut self, transmit: &Transmit) {
        let _asked_again = self.packets.send(transmit, &self.outgoing);
    }

    fn handle_times(&mut self, now: Instant) {
        while let Some(Reverse((due, index))) = self.times.peek().copied() {
            if due > now {
                return;
            }
            self.times.pop();
            let Some(Some(connection)) = self.connections.get(index) else { continue };
            let mut connection = connection.borrow_mut();
            if connection.due != Some(due) {
                continue;
            }
            connection.due = None;
            match connection.proto.poll_timeout() {
                Some(real) if real > now => {
                    connection.due = Some(real);
                    drop(connection);
                    self.times.push(Reverse((real, index)));
                }
                Some(_) => {
                    connection.proto.handle_timeout(now);
                    connection.touch();
                }
                None => {}
            }
        }
    }

    /// Serves the connections that have something to say, each in its turn; says whether any has
    /// more.
    fn send(&mut self, now: Instant) -> io::Result<bool> {
        self.queue.extend(self.touched.borrow_mut().drain(..));
        if let Some((transmit, bytes)) = self.unsent.take()
            && !self.transmit(transmit, bytes)?
        {
            return Ok(false);
        }
        let mut sends = SENDS_PER_TURN;
        while let Some(index) = self.queue.pop_front() {
            if sends == 0 {
                self.queue.push_front(index);
                return Ok(true);
            }
            let Some(Some(connection)) = self.connections.get(index).cloned() else { continue };
            sends -= 1;
            if self.serve(index, &connection, now)? {
                self.queue.push_back(index);
            }
            if self.unsent.is_some() {
                return Ok(false);
            }
        }
        Ok(!self.touched.borrow().is_empty())
    }

    /// One send of one connection, and whatever it has to tell; says whether it has more.
    fn serve(
        &mut self,
        index: usize,
        connection: &SharedConnection,
        now: Instant,
    ) -> io::Result<bool> {
        let mut connection = connection.borrow_mut();
        let connection = &mut *connection;
        let mut bytes = std::mem::take(&mut self.outgoing);
        bytes.clear();
        let most = self.packets.most_segments();
        if let Some(transmit) = connection.proto.poll_transmit(now, most, &mut bytes) {
            self.transmit(transmit, bytes)?;
            return Ok(true);
        }
        self.outgoing = bytes;
        connection.untouch();
        let due = connection.proto.poll_timeout();
        if let Some(due) = due
            && connection.due.is_none_or(|entry| due < entry)
        {
            connection.due = Some(due);
            self.times.push(Reverse((due, index)));
        }
        self.collect(index, connection);
        if connection.proto.is_drained() {
            self.forget(index);
        }
        Ok(false)
    }

    /// Sends; says whether the socket had room.
    fn transmit(&mut self, transmit: Transmit, bytes: Vec<u8>) -> io::Result<bool> {
        match self.packets.send(&transmit, &bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.unsent = Some((transmit, bytes));
                return Ok(false);
            }
            // What a path doesn't take at once, it has lost: a probe that is too long, a full queue,
            // a filter. QUIC finds out by itself.
            Err(error) if !is_of_the_path(&error) => return Err(error),
            _ => self.outgoing = bytes,
        }
        Ok(true)
    }

    fn collect(&mut self, index: usize, connection: &mut Connection) {
        while let Some(event) = connection.proto.poll_endpoint_events() {
            if let Some(event) = self.proto.handle_event(connection.handle, event) {
                connection.proto.handle_event(event);
            }
        }
        while let Some(event) = connection.proto.poll() {
            let event = match event {
                ProtoEvent::Connected => Event::Established,
                ProtoEvent::ConnectionLost { reason } => {
                    let cause = Cause::of(&reason);
                    connection.lost = Some(cause.clone());
                    Event::Closed(cause)
                }
                ProtoEvent::Stream(event) => match event {
                    StreamEvent::Opened { dir } => Event::StreamsOpened(dir),
                    StreamEvent::Available { dir } => Event::StreamsAvailable(dir),
                    StreamEvent::Readable { id } => Event::Readable(id),
                    StreamEvent::Writable { id } => Event::Writable(id),
                    StreamEvent::Finished { id } => Event::Delivered(id),
                    StreamEvent::Stopped { id, error_code } => {
                        Event::Stopped(id, error_code.into_inner())
                    }
                },
                ProtoEvent::HandshakeDataReady
                | ProtoEvent::DatagramReceived
                | ProtoEvent::DatagramsUnblocked => continue,
            };
            self.events.push_back((Link(index), event));
        }
    }

    fn forget(&mut self, index: usize) {
        if let Some(place) = self.connections.get_mut(index)
            && place.take().is_some()
        {
            self.open -= 1;
        }
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.socket.as_fd()
    }
}

fn is_of_the_path(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EMSGSIZE
                | libc::ENOBUFS
                | libc::EPERM
                | libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ENETDOWN
        )
    )
}
