//! An endpoint as a [`Multiplexer`]: streams by number, bytes counted where they are.

mod allowance;
mod piece;
mod turn;
mod waits;

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use linerate_wire::perf::answer::Start;
use quinn_proto::{Dir, StreamId, VarInt};
use rustls::pki_types::ServerName;

use super::connection::{Connection, StreamRead};
use super::endpoint::{Endpoint, Event, Link as Place};
use super::lent::{lend, part_of};
use super::settings::{CONNECTION_WINDOW_BYTES, ClientSide};
use crate::transport::multiplexer::{
    Destination, Ending, Link, LinkEvent, Multiplexer, QuicStatistics, Sending, Statistics,
    StreamWaits,
};

use allowance::{Allowance, Grant};
use piece::{is_brief, send_piece};
use waits::Watch;

/// How long a connection may take to stand.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of a stream that are looked at before others get their turn.
const READ_AT_ONCE_BYTES: usize = 1 << 20;
/// How long the last words may take to leave.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(200);
/// Then a socket stays until nothing has come for so long: where a port is closed while a server still
/// sends, some servers end.
pub(super) const QUIET: Duration = Duration::from_millis(20);

/// Connections over one UDP socket, of a client or of a server.
pub(crate) struct MultiplexedEndpoint {
    endpoint: Endpoint,
    client: Option<Rc<ClientSide>>,
    slots: Vec<Slot>,
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
struct Slot {
    generation: u32,
    /// Whether it has not ended as far as the user knows.
    known: bool,
    established: bool,
    /// What its peer may.
    grant: Grant,
}

impl MultiplexedEndpoint {
    /// An endpoint that connects, or one that accepts; `streams`: how many its peers may open at first.
    pub(crate) fn new(endpoint: Endpoint, client: Option<Rc<ClientSide>>, streams: u32) -> Self {
        Self {
            endpoint,
            client,
            slots: Vec::new(),
            allowance: Allowance::new(CONNECTION_WINDOW_BYTES, streams, None),
            opening: VecDeque::new(),
            events: VecDeque::new(),
            block: Bytes::new(),
            busy: Duration::ZERO,
            watch: None,
        }
    }

    /// One that tries again and again for so long before it sleeps.
    pub(crate) fn spinning(mut self, busy: Duration) -> Self {
        self.busy = busy;
        self
    }

    /// A new connection stands or goes up at this place.
    fn begin(&mut self, place: Place) -> Link {
        if self.slots.len() <= place.0 {
            self.slots.resize(place.0 + 1, Slot::default());
        }
        let index = u32::try_from(place.0).unwrap_or(u32::MAX);
        let Some(slot) = self.slots.get_mut(place.0) else { return Link { index, generation: 0 } };
        let generation = slot.generation.wrapping_add(1);
        let grant = self.allowance.first();
        *slot = Slot { generation, known: true, established: false, grant };
        Link { index, generation }
    }

    fn slot(&mut self, link: Link) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(link.index as usize)?;
        (slot.known && slot.generation == link.generation).then_some(slot)
    }

    /// The connection at this place, as the user knows it.
    fn link(&self, place: Place) -> Option<Link> {
        let slot = self.slots.get(place.0).filter(|slot| slot.known)?;
        Some(Link { index: u32::try_from(place.0).ok()?, generation: slot.generation })
    }

    fn with<T>(&mut self, link: Link, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.slot(link)?;
        let connection = self.endpoint.connection(Place(link.index as usize))?;
        Some(act(&mut connection.borrow_mut()))
    }

    /// The user is told that it has ended, once.
    fn end(&mut self, link: Link, failure: Option<&'static str>) {
        // What a connection that never stood says of its path are assumptions.
        let stood = self.slot(link).is_some_and(|slot| slot.established);
        let marked = self.endpoint.marks_packets();
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

    fn translate(&mut self, place: Place, event: Event) {
        if event == Event::Accepted {
            self.begin(place);
            return;
        }
        let Some(link) = self.link(place) else { return };
        match event {
            // Those of the dialects that go over streams carry nothing else.
            Event::Accepted | Event::Datagrams | Event::DatagramsWritable => {}
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

    /// Ends connections that should stand by now, and those whose server isn't there.
    fn look_at_opening(&mut self) {
        let refused = std::mem::take(&mut self.endpoint.refusals) > 0;
        while let Some((limit, link)) = self.opening.front().copied() {
            match self.slot(link) {
                Some(slot) if !slot.established => {
                    if Instant::now() < limit && !refused {
                        return;
                    }
                    self.with(link, |connection| connection.close(0, b""));
                    self.end(link, Some(if refused { "refused" } else { "timed out" }));
                }
                _ => {}
            }
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

fn stream_id(number: u64) -> Option<StreamId> {
    VarInt::from_u64(number).ok().map(StreamId::from)
}

impl Multiplexer for MultiplexedEndpoint {
    fn connect(&mut self, to: &Destination) -> io::Result<Link> {
        let Some(client) = &self.client else { return Err(io::ErrorKind::Unsupported.into()) };
        // A name that is an address is asked for with no word; nor is one that TLS can't say, as those
        // whose last part is a number (RFC 6066, section 3).
        let address = to.remote.ip().to_string();
        let can_be_said = ServerName::try_from(to.server_name.as_str()).is_ok();
        let name = if can_be_said { &to.server_name } else { &address };
        let place = self.endpoint.connect(to.remote, name, client)?;
        let link = self.begin(place);
        self.opening.push_back((Instant::now() + HANDSHAKE_LIMIT, link));
        Ok(link)
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.send_out()?;
        self.spin(at_most)?;
        if self.events.is_empty() {
            self.endpoint.wait(at_most);
        }
        self.take_in()
    }

    fn poll_event(&mut self) -> Option<(Link, LinkEvent)> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let (place, event) = self.endpoint.poll_event()?;
            self.translate(place, event);
        }
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
        let slot = self.slots.get(link.index as usize);
        slot.filter(|slot| slot.generation == link.generation)?;
        self.endpoint.connection(Place(link.index as usize))?.borrow_mut().delivered_bytes(id)
    }

    fn lends(&self) -> bool {
        true
    }

    fn lend(&mut self, block: &Arc<Vec<u8>>) {
        self.block = lend(Arc::clone(block));
    }

    fn flush(&mut self) {
        self.endpoint.flush(LAST_WORDS);
        self.endpoint.linger(QUIET, LAST_WORDS);
    }
}
