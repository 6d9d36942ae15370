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
use quinn_proto::{ConnectionHandle, Dir, StreamId, Transmit, TransportConfig};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use socket2::Socket;

mod blueprint;
mod bounds;
mod half_open;
mod look;
mod routes;
mod turn;

use super::cause::Cause;
use super::connection::{Connection, SharedConnection, Touched};
use super::packets::Packets;
use super::settings::{ClientSide, ServerSide, Settings};
use crate::error::Error;
use crate::waiting::readiness;
pub(crate) use blueprint::Blueprint;
pub(super) use bounds::{Intake, Outlet};
use half_open::HalfOpen;
pub(super) use look::{Look, insist};
use routes::Routes;

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
    /// Datagrams have come.
    Datagrams,
    /// There is room for datagrams, where there was none.
    DatagramsWritable,
    /// The connection has ended, whoever ended it; the last event that it has.
    Closed(Cause),
}

/// One UDP socket and the connections over it.
pub(crate) struct Endpoint {
    proto: quinn_proto::Endpoint,
    packets: Packets,
    accepts: Option<ServerSide>,
    /// What its connections are told where the socket's route is known.
    route: Option<Arc<TransportConfig>>,
    /// Where the socket is a server's without a route, those of its peers.
    routes: Option<Routes>,
    most_connections: usize,
    connections: Vec<Option<SharedConnection>>,
    open: usize,
    half_open: HalfOpen,
    touched: Touched,
    queue: VecDeque<usize>,
    times: BinaryHeap<Reverse<(Instant, usize)>>,
    events: VecDeque<(Link, Event)>,
    foreign: VecDeque<BytesMut>,
    /// Whether somebody asks for those.
    keeps_foreign: bool,
    outgoing: Vec<u8>,
    /// What the socket had no room for, and whose it is.
    unsent: Option<(usize, Transmit, Vec<u8>)>,
    look: Look,
    /// Whether the packets in each datagram are counted.
    counts: bool,
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
        Blueprint::new(settings.clone())?.endpoint(socket, accepts)
    }

    /// One whose connections are told how many packets came for them, if their session counts, too.
    pub(crate) fn counting(mut self, counts: bool) -> Self {
        self.counts = counts;
        self
    }

    /// One whose user asks for the datagrams that aren't QUIC's: else they are dropped.
    pub(crate) fn keeping_foreign(mut self) -> Self {
        self.keeps_foreign = true;
        self
    }

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        &self.packets.socket
    }

    /// Whether trains are sent, and received.
    pub(crate) fn offload(&self) -> (bool, bool) {
        (self.packets.sends_trains(), self.packets.receives_trains)
    }

    /// Whether packets are marked as able to carry congestion marks.
    pub(crate) fn marks_packets(&self) -> bool {
        self.packets.ecn
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
        let (config, log) = client.config(to, self.route.as_ref())?;
        let made = self.proto.connect(Instant::now(), config, to, server_name);
        let (handle, proto) =
            made.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.insert(handle, proto);
        let link = Link(handle.0);
        if let (Some(log), Some(connection)) = (log, self.connection(link)) {
            let local = self.packets.socket.local_addr().ok().and_then(|local| local.as_socket());
            log.record_start(local, to);
            connection.borrow_mut().log = Some(log);
        }
        Ok(link)
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
        let mut intake = Intake::default();
        let more = self.take_in_within(&mut intake)?;
        self.look.record_turn(intake.bytes());
        Ok(more)
    }

    /// The same, as far as the turn of several endpoints has room.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::turn`].
    pub(super) fn take_in_within(&mut self, intake: &mut Intake) -> io::Result<bool> {
        let now = Instant::now();
        let more = self.receive(now, intake)?;
        self.look_at_times(now);
        Ok(more)
    }

    /// Timers, and the events that come of them and of what was taken in.
    pub(super) fn look_at_times(&mut self, now: Instant) {
        self.handle_times(now);
        self.queue.extend(self.touched.borrow_mut().drain(..));
        for at in 0..self.queue.len() {
            let Some(index) = self.queue.get(at).copied() else { break };
            if let Some(Some(connection)) = self.connections.get(index).cloned() {
                self.collect(index, &mut connection.borrow_mut());
            }
        }
    }

    /// The other half: packets out; says whether there are more.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::turn`].
    pub(crate) fn send_out(&mut self) -> io::Result<bool> {
        self.send(Instant::now(), &mut Outlet::default())
    }

    /// The same, as far as the turn of several endpoints has room.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::turn`].
    pub(super) fn send_out_within(&mut self, outlet: &mut Outlet) -> io::Result<bool> {
        self.send(Instant::now(), outlet)
    }

    /// Whether nothing is left to be said or heard: each connection is forgotten, or was closed by both ends.
    pub(super) fn is_over(&self) -> bool {
        let mut left = self.connections.iter().flatten();
        !self.has_unsaid() && left.all(|connection| connection.borrow().is_closed_by_peer())
    }

    /// Whether there is something that could be sent, were there room.
    pub(super) fn has_unsaid(&self) -> bool {
        self.unsent.is_some() || !self.touched.borrow().is_empty() || !self.queue.is_empty()
    }

    /// Whether a turn is of use now.
    pub(crate) fn is_busy(&self) -> bool {
        let unblocked = self.unsent.is_none();
        !self.events.is_empty() || (unblocked && self.has_unsaid())
    }

    /// What its socket is to be polled for.
    pub(crate) fn poll_flags(&self) -> PollFlags {
        let blocked = if self.unsent.is_some() { PollFlags::OUT } else { PollFlags::empty() };
        PollFlags::IN | blocked
    }

    /// Waits for the socket or for a timer, no longer than this and a look.
    pub(crate) fn wait(&mut self, at_most: Duration) {
        if self.is_busy() {
            return;
        }
        // No timer is late for a look.
        let may_look = self.wait_at_most(at_most) > Look::LONGEST && self.unsent.is_none();
        let socket = &self.packets.socket;
        if may_look && self.look.finds(socket, || readiness(socket)) {
            return;
        }
        let wait = self.wait_at_most(at_most);
        let mut polled = [PollFd::new(&*self.packets.socket, self.poll_flags())];
        // Interrupted by a signal: as if the time were over.
        let _interrupted = poll(&mut polled, Some(&timespec(wait)));
        let [polled] = polled;
        self.handle_readiness(polled.revents());
    }

    /// A wait has found its socket so: errors that no call has told would have every wait return at once.
    pub(crate) fn handle_readiness(&self, found: PollFlags) {
        if found.contains(PollFlags::ERR) {
            self.packets.forget_errors();
        }
    }

    /// Whether much came in the last turn.
    #[cfg(test)]
    pub(super) fn is_in_bulk(&self) -> bool {
        self.look.is_in_bulk()
    }

    fn wait_at_most(&self, at_most: Duration) -> Duration {
        let left = |due: Instant| due.saturating_duration_since(Instant::now());
        self.next_time().map_or(at_most, |due| at_most.min(left(due)))
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
            match self.send_out() {
                Ok(true) => {}
                Ok(false) if self.unsent.is_some() => {
                    self.wait(Duration::from_millis(1));
                }
                _ => return,
            }
        }
    }

    /// Hears what still comes, until nothing has come for `quiet`, no longer than `at_most`.
    pub(crate) fn linger(&mut self, quiet: Duration, at_most: Duration) {
        let end = Instant::now() + at_most;
        let quiet = Timespec { tv_sec: 0, tv_nsec: i64::from(quiet.subsec_nanos()) };
        while self.open > 0 && Instant::now() < end {
            let heard = {
                let mut polled = [PollFd::new(&*self.packets.socket, PollFlags::IN)];
                poll(&mut polled, Some(&quiet)).is_ok_and(|ready| ready > 0)
            };
            if !heard || self.turn().is_err() {
                return;
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
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.socket.as_fd()
    }
}

/// A wait as the kernel takes it.
pub(super) fn timespec(wait: Duration) -> Timespec {
    Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) }
}
