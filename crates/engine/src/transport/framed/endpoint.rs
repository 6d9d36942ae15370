//! The connections of one thread, in a poll set.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::SocketOptions;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;
use rustls::{ClientConfig, ServerConfig};
use socket2::Socket;

use super::connection::{Connection, READ_WAIT, Turn};
use super::look::Look;
use super::session::FramedTls;
use crate::acceptor::{Accepted, Pending, accept};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::socket::{Binding, connect_stream, dial_stream};
use crate::transport::multiplexer::{Destination, Link, LinkEvent, Multiplexer, Sending};
use crate::waiting::{record_look, record_yield};

/// Marks the listener among the events.
const LISTENER: u64 = u64::MAX;
/// Readiness taken at once.
const READY_AT_ONCE: usize = 256;
/// Connections accepted before others get their turn.
const ACCEPTED_AT_ONCE: usize = 64;
/// Connections of one thread; further ones are closed at once.
const CONNECTION_LIMIT: usize = 4096;
/// Connections of one thread that don't stand yet; when there are more, those that most resemble each
/// other make room.
const PENDING_LIMIT: usize = 2048;

/// Both ends' keys, and the listener of a server.
pub(crate) struct FramedEndpoint {
    poll: OwnedFd,
    client: Option<Arc<ClientConfig>>,
    server: Option<(Arc<ServerConfig>, Arc<Socket>)>,
    slots: Vec<FramedSlot>,
    vacant: Vec<u32>,
    /// The places of accepted connections that don't stand yet.
    pending: Pending<u32>,
    /// Connections that have something to send.
    unsent: Vec<Link>,
    /// Readiness as it was taken, kept for its memory.
    ready: Vec<epoll::Event>,
    events: VecDeque<(Link, LinkEvent)>,
    next_look_ns: u64,
    listening: bool,
    look: Look,
    /// Whether the last wait didn't ask the poll set.
    skipped: bool,
    /// The place of the connection that was readable last.
    last_read: Option<u32>,
}

#[derive(Default)]
struct FramedSlot {
    generation: u32,
    connection: Option<Connection>,
}

impl FramedEndpoint {
    pub(crate) fn client(config: Arc<ClientConfig>, busy: Duration) -> io::Result<Self> {
        Self::new(Some(config), None, busy)
    }

    /// A server's end; several threads may have the same listener.
    pub(crate) fn server(
        config: Arc<ServerConfig>,
        listener: Arc<Socket>,
        busy: Duration,
    ) -> io::Result<Self> {
        let mut endpoint = Self::new(None, Some((config, listener)), busy)?;
        endpoint.listen(true);
        Ok(endpoint)
    }

    /// Watches the listener, or lets it be for a while.
    fn listen(&mut self, wanted: bool) {
        let Some((_, listener)) = self.server.as_ref().filter(|_| self.listening != wanted) else {
            return;
        };
        // One thread is woken for a connection, not all.
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        let done = if wanted {
            epoll::add(&self.poll, listener.as_fd(), EventData::new_u64(LISTENER), flags)
        } else {
            epoll::delete(&self.poll, listener.as_fd())
        };
        // Where it fails it is tried again at the next look at the clock.
        self.listening = if done.is_ok() { wanted } else { self.listening };
    }

    fn new(
        client: Option<Arc<ClientConfig>>,
        server: Option<(Arc<ServerConfig>, Arc<Socket>)>,
        busy: Duration,
    ) -> io::Result<Self> {
        Ok(Self {
            poll: epoll::create(CreateFlags::CLOEXEC)?,
            client,
            server,
            slots: Vec::new(),
            vacant: Vec::new(),
            pending: Pending::new(0),
            unsent: Vec::new(),
            ready: Vec::with_capacity(READY_AT_ONCE),
            events: VecDeque::new(),
            next_look_ns: 0,
            listening: false,
            look: Look::new(busy),
            skipped: false,
            last_read: None,
        })
    }

    fn add(&mut self, mut connection: Connection) -> io::Result<Link> {
        let index = self.vacant.pop().unwrap_or(self.slots.len() as u32);
        if index as usize == self.slots.len() {
            self.slots.push(FramedSlot::default());
        }
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let link = Link { index, generation: slot.generation };
        let data = EventData::new_u64(u64::from(index));
        connection.watched = connection.interest();
        if let Err(error) = epoll::add(&self.poll, connection.socket(), data, connection.watched) {
            self.vacant.push(index);
            return Err(error.into());
        }
        slot.connection = Some(connection);
        Ok(link)
    }

    fn connection(&mut self, link: Link) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(link.index as usize)?;
        (slot.generation == link.generation).then_some(slot.connection.as_mut()).flatten()
    }

    fn accept(&mut self) {
        let Some((config, listener)) = self.server.clone() else { return };
        for _ in 0..ACCEPTED_AT_ONCE {
            let (socket, client) = match accept(&listener) {
                Ok(Accepted::Client(socket, client)) => (socket, client),
                Ok(Accepted::Gone) => continue,
                Ok(Accepted::Short(_)) if self.push_out_one() => continue,
                Ok(Accepted::Short(_)) => return self.listen(false),
                // Another thread may have taken it.
                Ok(Accepted::Empty) | Err(_) => return,
            };
            let full = self.slots.len() - self.vacant.len() >= CONNECTION_LIMIT;
            let needs_room = full || self.pending.len() >= PENDING_LIMIT;
            if !(needs_room && self.push_out_one()) && full {
                continue;
            }
            let _without = socket.set_tcp_nodelay(true);
            let Ok(session) = FramedTls::server(&config) else { continue };
            // Refused by the poll set for want of memory: the socket closes, the peer sees it.
            let Ok(link) = self.add(Connection::accepted(socket, session)) else { continue };
            let number = self.pending.add(client, link.index);
            if let Some(connection) = self.connection(link) {
                connection.pending = Some(number);
            }
        }
    }

    /// A connection that doesn't stand yet makes room; whether there was one.
    fn push_out_one(&mut self) -> bool {
        let Some(number) = self.pending.first_to_go() else { return false };
        let Some(index) = self.pending.kept(number).copied() else { return false };
        let slot = self.slots.get_mut(index as usize);
        if let Some(connection) = slot.and_then(|slot| slot.connection.as_mut()) {
            connection.give_up("displaced");
        }
        self.turn(index, false, false);
        true
    }

    /// Lets a connection move its bytes, and takes it away when it is over.
    fn turn(&mut self, index: u32, readable: bool, writable: bool) {
        let Self { slots, events, poll, pending, look, last_read, .. } = self;
        let Some(slot) = slots.get_mut(index as usize) else { return };
        let link = Link { index, generation: slot.generation };
        let Some(connection) = &mut slot.connection else { return };
        let turn =
            connection.turn(readable, writable, &mut |event| events.push_back((link, event)));
        if readable {
            look.record(connection.is_bulky());
            *last_read = Some(index);
        }
        let is_known = turn == Turn::Over || connection.is_established();
        if let Some(number) = connection.pending.take_if(|_| is_known) {
            pending.remove(number);
        }
        if turn == Turn::Over {
            let ending = Box::new(connection.ending());
            let _gone = epoll::delete(&*poll, connection.socket());
            slot.connection = None;
            slot.generation = slot.generation.wrapping_add(1);
            self.vacant.push(index);
            events.push_back((link, LinkEvent::Ended { ending }));
            return;
        }
        let interest = connection.interest();
        if interest != connection.watched {
            connection.watched = interest;
            let data = EventData::new_u64(u64::from(index));
            // What fails here is found out by the clock.
            let _unchanged = epoll::modify(&*poll, connection.socket(), data, interest);
        }
    }

    fn flush(&mut self) {
        let mut unsent = std::mem::take(&mut self.unsent);
        for link in unsent.drain(..) {
            if self.connection(link).is_some_and(Connection::take_unsent_note) {
                self.turn(link.index, false, true);
            }
        }
        self.unsent = unsent;
    }

    /// Ends connections that have been silent for too long.
    fn look_for_silence(&mut self) {
        let now_ns = monotonic_ns();
        if now_ns < self.next_look_ns {
            return;
        }
        self.next_look_ns = now_ns + SECOND_NS / 2;
        self.listen(true);
        for index in 0..self.slots.len() {
            let slot = self.slots.get_mut(index);
            let connection = slot.and_then(|slot| slot.connection.as_mut());
            if connection.is_some_and(|connection| connection.handle_time(now_ns)) {
                self.turn(index as u32, false, false);
            }
        }
    }

    /// Before it sleeps where it doesn't spin: looks whether something comes at once.
    fn look_for_little(&mut self, at_most: Duration) {
        let last = self.last_read.and_then(|index| self.slots.get(index as usize));
        let last = last.and_then(|slot| slot.connection.as_ref());
        let peer = last.map(|connection| || connection.peer());
        self.look.look(&self.poll, at_most, peer);
    }

    /// A client's only connection waits in its own read, which saves the question of the poll set; whether it did.
    fn wait_in_read(&mut self) -> bool {
        if self.server.is_some() || self.slots.len() != 1 + self.vacant.len() {
            return false;
        }
        let Some(index) = self.last_read else { return false };
        let slot = self.slots.get_mut(index as usize);
        let Some(connection) = slot.and_then(|slot| slot.connection.as_mut()) else { return false };
        let waits = connection.wait_in_read();
        if waits {
            self.turn(index, true, false);
        }
        waits
    }

    /// Remembers that a connection has something to send.
    fn mark(&mut self, link: Link) {
        if self.connection(link).is_some_and(Connection::note_unsent) {
            self.unsent.push(link);
        }
    }
}

impl Multiplexer for FramedEndpoint {
    fn connect(&mut self, to: &Destination) -> io::Result<Link> {
        let Some(config) = &self.client else { return Err(io::ErrorKind::Unsupported.into()) };
        let session = FramedTls::client(config).map_err(io::Error::other)?;
        let bind = to.local.filter(|local| !local.ip().is_unspecified());
        let binding = Binding { bind, device: None };
        let port = to.local.map(|local| local.port()).filter(|port| *port != 0);
        let options = SocketOptions::default();
        let socket = match port {
            None => connect_stream(to.remote, &binding, &options)?,
            Some(_) => dial_stream(to.remote, &binding, port, &options)?,
        };
        let _without = socket.set_tcp_nodelay(true);
        self.add(Connection::dialed(socket, session))
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.flush();
        self.look_for_silence();
        // What has left has told something: its user goes on with that first, once in a row.
        let skips = !self.events.is_empty() && !self.skipped;
        self.skipped = skips;
        if skips {
            return Ok(());
        }
        let spin = self.look.spin(at_most);
        if spin.is_none() && self.events.is_empty() {
            self.look_for_little(at_most);
            if at_most >= READ_WAIT && self.wait_in_read() {
                return Ok(());
            }
        }
        let mut ready = std::mem::take(&mut self.ready);
        let mut now_ns;
        let mut looks_since_ns = None;
        loop {
            now_ns = if spin.is_some() { monotonic_ns() } else { 0 };
            let spins = spin.as_ref().is_some_and(|spin| now_ns < spin.until_ns);
            let idle = match &spin {
                _ if spins || !self.events.is_empty() => Duration::ZERO,
                Some(spin) => Duration::from_nanos(spin.due_ns.saturating_sub(now_ns)),
                None => at_most,
            };
            let idle =
                Timespec { tv_sec: idle.as_secs() as i64, tv_nsec: idle.subsec_nanos().into() };
            match epoll::wait(&self.poll, spare_capacity(&mut ready), Some(&idle)) {
                // A signal: the caller looks whether it was one to stop.
                Err(rustix::io::Errno::INTR) => break,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            if !ready.is_empty() || !spins || !self.events.is_empty() {
                break;
            }
            looks_since_ns.get_or_insert(now_ns);
            if self.look.yields(now_ns) {
                rustix::thread::sched_yield();
                record_yield();
            }
        }
        if let Some(since_ns) = looks_since_ns {
            record_look(now_ns.saturating_sub(since_ns));
        }
        for event in ready.drain(..) {
            let flags = event.flags;
            match event.data.u64() {
                LISTENER => self.accept(),
                index => {
                    let broken = EventFlags::ERR | EventFlags::HUP;
                    let readable = flags.intersects(EventFlags::IN | broken);
                    let writable = flags.intersects(EventFlags::OUT | broken);
                    self.turn(u32::try_from(index).unwrap_or(u32::MAX), readable, writable);
                }
            }
        }
        self.ready = ready;
        Ok(())
    }

    fn poll_event(&mut self) -> Option<(Link, LinkEvent)> {
        self.events.pop_front()
    }

    fn remote(&mut self, link: Link) -> Option<SocketAddr> {
        self.connection(link)?.remote()
    }

    fn open_stream(&mut self, link: Link) -> Option<u64> {
        self.connection(link)?.session().open_stream()
    }

    fn open_one_way(&mut self, _link: Link) -> Option<u64> {
        None
    }

    fn send(&mut self, link: Link, stream: u64, sending: Sending<'_>) -> Option<usize> {
        let taken = self.connection(link)?.send(stream, sending);
        self.mark(link);
        taken
    }

    fn stop(&mut self, link: Link, stream: u64, code: u64) {
        self.abort(link, stream, code);
    }

    fn abort(&mut self, link: Link, stream: u64, _code: u64) {
        if let Some(connection) = self.connection(link) {
            connection.abort(stream);
        }
        self.mark(link);
    }

    fn unacknowledged_bytes(&mut self, link: Link) -> u64 {
        self.connection(link).map_or(0, Connection::unacknowledged_bytes)
    }

    fn close(&mut self, link: Link) {
        if let Some(connection) = self.connection(link) {
            connection.close();
        }
        self.mark(link);
    }
}
