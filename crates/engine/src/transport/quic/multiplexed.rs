//! An endpoint as a [`Multiplexer`]: streams by number, bytes counted where they are. Its connections share a
//! socket, or have one each, and so a port.

mod allowance;
mod piece;
mod turn;
mod waits;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use linerate_wire::perf::answer::Start;
use quinn_proto::{Dir, StreamId};
use rustls::pki_types::ServerName;

use super::connection::{Connection, StreamRead};
use super::endpoint::{Endpoint, Event, LAST_WORDS, Port, QUIET, UNSAID_LIMIT};
use super::lent::{lend, part_of};
use super::settings::{CONNECTION_WINDOW_BYTES, ClientSide};
use super::stream_id;
use crate::transport::multiplexer::{
    Destination, Ending, Link, LinkEvent, Multiplexer, QuicStatistics, Sending, Statistics,
    StreamWaits,
};

use allowance::{Allowance, Grant};
use piece::{is_brief, send_piece};
use turn::{Apart, Opening};
use waits::Watch;

/// How long a connection may take to stand.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of a stream that are looked at before others get their turn.
const READ_AT_ONCE_BYTES: usize = 1 << 20;

/// Connections of a client or of a server.
pub(crate) struct MultiplexedEndpoint<'a> {
    endpoint: Endpoint,
    client: Option<Rc<ClientSide>>,
    /// Where each connection has a socket of its own.
    apart: Option<Apart<'a>>,
    /// By the slots of connections.
    slots: Vec<MultiplexedSlot>,
    allowance: Allowance,
    /// Connections that don't stand yet, with their time.
    opening: VecDeque<(Instant, Link)>,
    events: VecDeque<(Link, LinkEvent)>,
    /// What senders send from, so that it needn't be copied.
    block: Bytes,
    /// How long to try again and again before sleeping.
    busy: Duration,
    /// What streams wait for, if anybody wants to know.
    watch: Option<Watch>,
}

/// What is known of the connection at a place of the endpoint.
#[derive(Clone, Copy, Default)]
struct MultiplexedSlot {
    generation: u32,
    /// Whether it has not ended as far as the user knows.
    known: bool,
    established: bool,
    /// What its peer may.
    grant: Grant,
}

impl<'a> MultiplexedEndpoint<'a> {
    /// An endpoint that connects, or one that accepts; `streams`: how many its peers may open at first.
    pub(crate) fn new(endpoint: Endpoint, client: Option<Rc<ClientSide>>, streams: u32) -> Self {
        Self {
            endpoint: endpoint.looking(),
            client,
            apart: None,
            slots: Vec::new(),
            allowance: Allowance::new(CONNECTION_WINDOW_BYTES, streams, None),
            opening: VecDeque::new(),
            events: VecDeque::new(),
            block: Bytes::new(),
            busy: Duration::ZERO,
            watch: None,
        }
    }

    /// One whose connections each have a socket of their own.
    pub(crate) fn apart(mut self, open: Opening<'a>, repeats: bool) -> Self {
        self.apart = Some(Apart::new(open, repeats));
        self
    }

    /// One that tries again and again for so long before it sleeps.
    pub(crate) fn spinning(mut self, busy: Duration) -> Self {
        self.busy = busy;
        self
    }

    /// A new connection stands or goes up.
    fn begin(&mut self, link: Link) {
        let index = link.index as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, MultiplexedSlot::default());
        }
        if let Some(slot) = self.slots.get_mut(index) {
            let (generation, grant) = (link.generation, self.allowance.first());
            *slot = MultiplexedSlot { generation, known: true, established: false, grant };
        }
    }

    fn slot(&mut self, link: Link) -> Option<&mut MultiplexedSlot> {
        let slot = self.slots.get_mut(link.index as usize)?;
        (slot.known && slot.generation == link.generation).then_some(slot)
    }

    fn with<T>(&mut self, link: Link, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.slot(link)?;
        let connection = self.endpoint.connection(link)?;
        Some(act(&mut connection.borrow_mut()))
    }

    /// The user is told that it has ended, once.
    fn end(&mut self, link: Link, failure: Option<&'static str>) {
        // What a connection that never stood says of its path are assumptions.
        let stood = self.slot(link).is_some_and(|slot| slot.established);
        let marked = self.endpoint.socket_of(link).is_some_and(Port::marks_packets);
        let statistics = self
            .with(link, |connection| connection.statistics())
            .filter(|_| stood)
            .map_or(Statistics::Unknown, |statistics| {
                let ecn_capable = statistics.ecn_capable.map(|marks| marks && marked);
                Statistics::Quic(QuicStatistics { ecn_capable, ..statistics })
            });
        let Some(slot) = self.slot(link) else { return };
        slot.known = false;
        let ending = Ending { established: slot.established, failure, statistics };
        self.events.push_back((link, LinkEvent::Ended { ending: Box::new(ending) }));
    }

    fn translate(&mut self, link: Link, event: Event) {
        if event == Event::Accepted {
            return self.begin(link);
        }
        if self.slot(link).is_none() {
            return;
        }
        match event {
            // Those of the dialects that go over streams carry nothing else, and take every client.
            Event::Accepted | Event::Incoming(..) | Event::Datagrams | Event::DatagramsWritable => {
            }
            Event::Refused => self.give_up(link, "refused"),
            Event::Established => {
                if let Some(slot) = self.slot(link) {
                    slot.established = true;
                }
                self.events.push_back((link, LinkEvent::Established));
            }
            Event::StreamsOpened(dir) => self.accept_streams(link, dir),
            Event::StreamsAvailable(_) => {
                self.events.push_back((link, LinkEvent::Writable { stream: None }));
            }
            Event::Readable(id) => self.read(link, id),
            Event::Writable(id) => {
                self.with(link, |connection| connection.fit_send_window());
                let stream = u64::from(id);
                if let Some(watch) = &mut self.watch {
                    watch.record_writable(link, stream);
                }
                let stream = Some(stream);
                self.events.push_back((link, LinkEvent::Writable { stream }));
            }
            Event::Delivered(id) => {
                self.with(link, |connection| connection.forget_delivery(id));
                let stream = u64::from(id);
                self.events.push_back((link, LinkEvent::Delivered { stream, bytes: u64::MAX }));
            }
            Event::Stopped(id, code) => {
                let stopped = LinkEvent::Stopped { stream: u64::from(id), code };
                self.events.push_back((link, stopped));
            }
            Event::Closed(cause) => self.end(link, failure(cause.kind)),
        }
    }

    fn accept_streams(&mut self, link: Link, dir: Dir) {
        while let Some(Some(id)) = self.with(link, |connection| connection.accept_stream(dir)) {
            if dir == Dir::Bi {
                self.grow_streams(link);
            }
            self.read(link, id);
        }
    }

    /// Counts what has come of a stream.
    fn read(&mut self, link: Link, id: StreamId) {
        let (stream, one_way) = (u64::from(id), id.dir() == Dir::Uni);
        loop {
            let mut start = Start::default();
            let mut look = |piece: &[u8]| start.extend(piece);
            let read =
                self.with(link, |connection| connection.read(id, READ_AT_ONCE_BYTES, &mut look));
            let (bytes, finished) = match read {
                Some(StreamRead::Bytes(bytes)) => (bytes, false),
                Some(StreamRead::Finished(bytes)) => (bytes, true),
                Some(StreamRead::Reset(code)) => {
                    let event = LinkEvent::Reset { stream, code: Some(code) };
                    return self.events.push_back((link, event));
                }
                // The end of a connection is told elsewhere.
                Some(StreamRead::Blocked | StreamRead::Closed) | None => return,
            };
            self.grow_window(link, bytes);
            let event = LinkEvent::Received { stream, one_way, start, bytes, finished };
            self.events.push_back((link, event));
            if finished || bytes < READ_AT_ONCE_BYTES {
                return;
            }
        }
    }

    /// Ends a connection that doesn't stand.
    fn give_up(&mut self, link: Link, failure: &'static str) {
        if self.slot(link).is_some_and(|slot| !slot.established) {
            self.with(link, |connection| connection.close(0, b""));
            self.end(link, Some(failure));
        }
    }

    /// Ends connections that should stand by now.
    fn look_at_opening(&mut self) {
        while let Some((limit, link)) = self.opening.front().copied() {
            let is_opening = self.slot(link).is_some_and(|slot| !slot.established);
            if is_opening && Instant::now() < limit {
                return;
            }
            self.give_up(link, "timed out");
            self.opening.pop_front();
        }
    }
}

/// The word that a failure is counted by; none for an end that is as it should be.
fn failure(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::UnexpectedEof => None,
        io::ErrorKind::ConnectionRefused => Some("refused"),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Some("reset"),
        io::ErrorKind::TimedOut => Some("timed out"),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some("unreachable"),
        io::ErrorKind::InvalidData => Some("tls"),
        io::ErrorKind::Unsupported => Some("version"),
        _ => Some("other"),
    }
}

impl Multiplexer for MultiplexedEndpoint<'_> {
    fn connect(&mut self, to: &Destination) -> io::Result<Link> {
        let Some(client) = self.client.clone() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // A name that is an address is asked for with no word; nor is one that TLS can't say, as those
        // whose last part is a number (RFC 6066, section 3).
        let address = to.remote.ip().to_string();
        let can_be_said = ServerName::try_from(to.server_name.as_str()).is_ok();
        let name = if can_be_said { &to.server_name } else { &address };
        let link = match self.own_port() {
            Some(port) => self.endpoint.connect_apart(port?, to.remote, name, &client)?,
            None => self.endpoint.connect(0, to.remote, name, &client)?,
        };
        self.begin(link);
        self.opening.push_back((Instant::now() + HANDSHAKE_LIMIT, link));
        Ok(link)
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.send_out()?;
        if !self.has_work() {
            self.endpoint.close_ended();
            self.open_ahead();
        }
        if self.spin(at_most)? {
            return Ok(());
        }
        if self.events.is_empty() {
            self.endpoint.wait(at_most, None)?;
        }
        self.endpoint.take_in().map(|_more| ())
    }

    fn poll_event(&mut self) -> Option<(Link, LinkEvent)> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let (link, event) = self.endpoint.poll_event()?;
            self.translate(link, event);
        }
    }

    fn remote(&mut self, link: Link) -> Option<SocketAddr> {
        self.with(link, |connection| connection.proto.remote_address())
    }

    fn open_stream(&mut self, link: Link) -> Option<u64> {
        let opened = self.with(link, |connection| connection.open_stream(Dir::Bi))?;
        let stream = opened.map(u64::from);
        if let Some(watch) = &mut self.watch {
            watch.record_opening(link, stream, Instant::now());
        }
        stream
    }

    fn open_one_way(&mut self, link: Link) -> Option<u64> {
        self.with(link, |connection| connection.open_stream(Dir::Uni))?.map(u64::from)
    }

    fn send(&mut self, link: Link, stream: u64, sending: Sending<'_>) -> Option<usize> {
        let id = stream_id(stream)?;
        let lent = part_of(&self.block, sending.bytes);
        // Of its answers no server asks what became of them.
        let is_watched = self.client.is_some() && !is_brief(&sending);
        let taken = self.with(link, |connection| {
            let taken = send_piece(connection, id, sending.bytes, lent.as_ref(), is_watched)?;
            if sending.finishes && taken == sending.bytes.len() {
                // Fails only where the peer has stopped the stream, which is told by itself.
                let _stopped = connection.finish(id);
            }
            Some(taken)
        })?;
        self.note_sent(link, stream, &sending, taken);
        taken
    }

    fn stop(&mut self, link: Link, stream: u64, code: u64) {
        if let Some(id) = stream_id(stream) {
            self.with(link, |connection| connection.stop_sending(id, code));
        }
    }

    fn reset(&mut self, link: Link, stream: u64, code: u64) {
        if let Some(id) = stream_id(stream) {
            self.with(link, |connection| {
                connection.reset(id, code);
                connection.forget_delivery(id);
            });
        }
    }

    fn abort(&mut self, link: Link, stream: u64, code: u64) {
        if let Some(id) = stream_id(stream) {
            self.with(link, |connection| {
                connection.reset(id, code);
                connection.stop_sending(id, code);
                connection.forget_delivery(id);
            });
        }
    }

    fn close(&mut self, link: Link) {
        self.with(link, |connection| connection.close(0, b""));
        self.end(link, None);
    }

    fn watch_waits(&mut self) {
        self.watch = Some(Watch::default());
    }

    fn take_waits(&mut self, link: Link, stream: u64) -> Option<StreamWaits> {
        self.watch.as_mut()?.take(link, stream, Instant::now())
    }

    fn delivered_bytes(&mut self, link: Link, stream: u64) -> Option<u64> {
        let id = stream_id(stream)?;
        // It may have ended, and is asked once more for that.
        self.endpoint.connection(link)?.borrow_mut().delivered_bytes(id)
    }

    fn tells_deliveries_late(&self) -> bool {
        true
    }

    fn received_acks(&mut self, link: Link) -> Option<u64> {
        self.with(link, |connection| connection.received_acks())
    }

    fn lends(&self) -> bool {
        true
    }

    fn lend(&mut self, block: &Arc<Vec<u8>>) {
        self.block = lend(Arc::clone(block));
    }

    fn flush(&mut self) {
        let Some(apart) = &mut self.apart else {
            self.endpoint.flush(LAST_WORDS);
            return self.endpoint.linger(QUIET, LAST_WORDS);
        };
        apart.end();
        let end = Instant::now() + UNSAID_LIMIT;
        while self.endpoint.sockets() > 0 && Instant::now() < end && self.wait(QUIET).is_ok() {
            while self.poll_event().is_some() {}
        }
    }
}

#[cfg(test)]
mod tests;
