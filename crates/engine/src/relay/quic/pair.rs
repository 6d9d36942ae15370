//! A client's connection and the one that carries it on, with what waits between them.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use linerate_wire::relay::{
    Action, Class, Close, CloseKind, End, Ended, Limits, Moved, Relay, Sink, Source,
};

use super::super::admission::Admitted;
use super::super::counts::Counts;
use super::super::{SentInterval, SentTotals};
use super::early::EarlyData;
use crate::clock::monotonic_ns;
use crate::transport::multiplexer::Link;
use crate::transport::quic::{
    ClientSide, Connection, Dir, SharedConnection, StreamAbort, StreamId, StreamRead, stream_id,
};

/// Streams that are told at once at most.
const MOST_OPENED: usize = 256;

/// One of the two connections.
#[derive(Default)]
struct Side {
    link: Option<Link>,
    connection: Option<SharedConnection>,
    is_established: bool,
    is_flushing: bool,
    /// The relay knows that it has ended, or never began.
    is_ended: bool,
    /// Its peer has refused what it was sent early, and now allows less.
    allows_less: bool,
    /// What it began with, if its session is kept.
    kept: Option<ClientSide>,
}

/// A client's connection and the one that carries it on.
pub(super) struct Pair {
    /// Its number among those of its thread.
    pub(super) number: u64,
    pub(super) client: SocketAddr,
    /// Whether the target chooses among several protocols that the client offers.
    pub(super) target_chooses: bool,
    began_ns: u64,
    relay: Relay,
    sides: [Side; 2],
    /// Pieces that one end gave and the other has not taken.
    waiting: HashMap<(End, u64), Bytes>,
    /// What may wait in QUIC's send buffer beside what is on its way.
    send_buffer_bytes: u64,
    counts: Arc<Counts>,
    told: ToldSoFar,
    /// What the target was sent before its handshake was done, while it isn't.
    early: Option<EarlyData>,
    _admitted: Admitted,
}

/// What was told of a pair, and what is to be told.
#[derive(Default)]
struct ToldSoFar {
    /// Streams that were opened and not told.
    opened: Vec<u64>,
    /// Bytes that were given to each end's connection.
    given_bytes: [u64; 2],
    /// When the last interval of each end ended, and the sums until then.
    sums: [(u64, SentInterval); 2],
}

fn one_way(dir: Dir) -> bool {
    dir == Dir::Uni
}

fn dir(class: Class) -> Dir {
    if class.one_way { Dir::Uni } else { Dir::Bi }
}

impl Pair {
    pub(super) fn new(
        client: SocketAddr,
        limits: Limits,
        send_buffer_bytes: u64,
        counts: Arc<Counts>,
        admitted: Admitted,
    ) -> Self {
        Self {
            number: 0,
            client,
            target_chooses: false,
            began_ns: monotonic_ns(),
            told: ToldSoFar::default(),
            early: None,
            relay: Relay::new(limits),
            sides: Default::default(),
            waiting: HashMap::new(),
            send_buffer_bytes,
            counts,
            _admitted: admitted,
        }
    }

    fn side(&self, end: End) -> &Side {
        let [client, target] = &self.sides;
        match end {
            End::Client => client,
            End::Target => target,
        }
    }

    fn side_mut(&mut self, end: End) -> &mut Side {
        let [client, target] = &mut self.sides;
        match end {
            End::Client => client,
            End::Target => target,
        }
    }

    /// The connection of this end has this link, and may not have begun.
    pub(super) fn set_link(&mut self, end: End, link: Link) {
        self.side_mut(end).link = Some(link);
    }

    pub(super) fn link(&self, end: End) -> Option<Link> {
        self.side(end).link
    }

    /// The connection of this end begins its handshake.
    pub(super) fn set_connection(&mut self, end: End, connection: SharedConnection) {
        if end == End::Target && connection.borrow().can_send_early() {
            self.early = Some(EarlyData::default());
        }
        self.side_mut(end).connection = Some(connection);
    }

    pub(super) fn connection(&self, end: End) -> Option<&SharedConnection> {
        self.side(end).connection.as_ref()
    }

    /// What the connection to the target begins with, if its session is kept.
    pub(super) fn set_kept(&mut self, kept: Option<ClientSide>) {
        self.side_mut(End::Target).kept = kept;
    }

    /// The same, if the connection came to nothing.
    pub(super) fn take_unused(&mut self) -> Option<ClientSide> {
        self.side_mut(End::Target).kept.take().filter(|_| !self.is_established(End::Target))
    }

    pub(super) fn is_established(&self, end: End) -> bool {
        self.side(end).is_established
    }

    pub(super) fn relay(&mut self) -> &mut Relay {
        &mut self.relay
    }

    /// The connection of this end stands; whether it can go on. One can't whose target refused what it was sent
    /// early, and now allows less.
    pub(super) fn handle_established(&mut self, end: End) -> bool {
        self.side_mut(end).is_established = true;
        self.fit_send_window(end);
        if end == End::Target {
            self.settle_early();
        }
        self.relay.handle_established(end);
        !std::mem::take(&mut self.side_mut(end).allows_less)
    }

    /// Sends a target again what it was sent early and has refused. A turn may do something for the client before it
    /// comes to the event that the target stands, and the target's streams must be there by then.
    fn settle_early(&mut self) {
        let stands = self.with(End::Target, |target| target.is_standing()).unwrap_or(false);
        let Some(early) = self.early.take_if(|_| stands) else { return };
        if !self.with(End::Target, |target| target.early_was_refused()).unwrap_or(false) {
            return;
        }
        self.fit_send_window(End::Target);
        let streams = early.streams();
        let is_repeated = self.with(End::Target, |target| early.repeat(target)).unwrap_or(false);
        self.side_mut(End::Target).allows_less = !is_repeated;
        // What the target had no room for before is tried again.
        for stream in streams {
            self.relay.handle_writable(End::Target, stream.into());
        }
    }

    pub(super) fn handle_streams_opened(&mut self, end: End, dir: Dir) {
        self.relay.handle_streams_opened(end, one_way(dir));
    }

    pub(super) fn handle_streams_available(&mut self, end: End, dir: Dir) {
        self.relay.handle_streams_available(end, one_way(dir));
    }

    pub(super) fn handle_writable(&mut self, end: End, stream: u64) {
        self.fit_send_window(end);
        self.relay.handle_writable(end, stream);
    }

    pub(super) fn is_ended(&self, end: End) -> bool {
        self.side(end).is_ended
    }

    /// A connection has ended; the other one is closed when it has what came before.
    pub(super) fn handle_ended(&mut self, end: End, ended: &Ended) {
        self.side_mut(end).is_ended = true;
        self.relay.handle_ended(end, monotonic_ns(), ended);
    }

    /// What is done when time has passed, or acknowledgements have come.
    pub(super) fn handle_time(&mut self) {
        for end in End::ALL {
            let side = self.side_mut(end);
            let is_flushed = side.is_flushing
                && side.connection.as_ref().is_none_or(|one| one.borrow().is_flushed());
            if is_flushed {
                side.is_flushing = false;
                self.relay.handle_flushed(end);
            }
        }
        self.relay.handle_timeout(monotonic_ns());
    }

    /// Whether it waits for time to pass.
    pub(super) fn is_ending(&self) -> bool {
        self.relay.next_time().is_some() || self.sides.iter().any(|side| side.is_flushing)
    }

    fn fit_send_window(&mut self, end: End) {
        if let Some(connection) = &self.side(end).connection {
            connection.borrow_mut().fit_send_window_with(self.send_buffer_bytes);
        }
    }

    /// Passes on the datagrams that have come. One that the other end has no room for is dropped, as on any path.
    pub(super) fn carry_datagrams(&mut self, from: End) {
        let [source, sink] = [from, from.other()].map(|end| self.side(end).connection.as_ref());
        let Some(source) = source else { return };
        let counts = self.counts.end(from);
        loop {
            let Some(datagram) = source.borrow_mut().poll_datagram() else { return };
            let sent = sink.is_some_and(|sink| sink.borrow_mut().send_datagram(datagram).is_ok());
            if sent { counts.datagrams.add(1) } else { counts.dropped_datagrams.add(1) }
        }
    }

    /// Does what the relay wants done; whether the pair is over then.
    pub(super) fn work(&mut self) -> bool {
        self.settle_early();
        // A target that allows less is broken off when the event comes that it stands.
        while !self.side(End::Target).allows_less
            && let Some(action) = self.relay.poll_action()
        {
            self.perform(action);
        }
        self.relay.is_over()
    }

    fn with<T>(&self, end: End, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.side(end).connection.as_ref().map(|connection| act(&mut connection.borrow_mut()))
    }

    fn with_stream(&self, end: End, stream: u64, act: impl FnOnce(&mut Connection, StreamId)) {
        if let Some(id) = stream_id(stream) {
            self.with(end, |connection| act(connection, id));
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Accept(class) => {
                let taken = self.with(class.opener, |one| one.accept_stream(dir(class))).flatten();
                self.relay.handle_accepted(class, taken.map(u64::from));
            }
            Action::Open(class) => {
                let end = class.opener.other();
                let opened = self.with(end, |one| one.open_stream(dir(class))).flatten();
                if let Some(early) = self.early.as_mut().filter(|_| end == End::Target) {
                    opened.into_iter().for_each(|id| early.record_opened(id));
                }
                self.counts.streams.add(u64::from(opened.is_some()));
                let opened = opened.map(u64::from);
                if self.told.opened.len() < MOST_OPENED {
                    self.told.opened.extend(opened);
                }
                self.relay.handle_opened(class, opened);
            }
            Action::Move { from, stream, piece_bytes, most_bytes } => {
                let moved = self.carry(from, stream, piece_bytes, most_bytes);
                self.counts.end(from).bytes.add(moved.taken_bytes as u64);
                self.record_given(from.other(), moved.taken_bytes);
                self.relay.handle_moved(from, stream, moved);
            }
            Action::Finish(end, stream) => {
                // Fails only where the peer has stopped the stream, which is told by itself.
                self.with_stream(end, stream, |one, id| drop(one.finish(id)));
                self.record_early(end, stream, EarlyData::record_finished);
            }
            Action::Reset(end, stream, code) => {
                self.waiting.remove(&(end.other(), stream));
                self.with_stream(end, stream, |one, id| one.reset(id, code));
                self.record_early(end, stream, |early, id| early.record_reset(id, code));
            }
            Action::Stop(end, stream, code) => {
                self.with_stream(end, stream, |one, id| one.stop_sending(id, code));
                self.record_early(end, stream, |early, id| early.record_stopped(id, code));
            }
            Action::Drop(from, stream) => drop(self.waiting.remove(&(from, stream))),
            Action::Flush(end) => {
                self.with(end, |one| one.begin_flush());
                self.side_mut(end).is_flushing = true;
            }
            Action::Close(end, close) => {
                let Close { kind, code, reason } = close;
                let is_transport = kind != CloseKind::Application;
                self.with(end, |one| one.close_as(is_transport, code, &reason));
            }
        }
    }

    /// Notes what was done with a stream of the target before its handshake was done.
    fn record_early(
        &mut self,
        end: End,
        stream: u64,
        record: impl FnOnce(&mut EarlyData, StreamId),
    ) {
        if let Some(early) = self.early.as_mut().filter(|_| end == End::Target)
            && let Some(id) = stream_id(stream)
        {
            record(early, id);
        }
    }

    /// Gives the other end what waits of a stream, then what can be read.
    fn carry(&mut self, from: End, stream: u64, piece_bytes: usize, most_bytes: usize) -> Moved {
        let held = self.waiting.remove(&(from, stream));
        let [client, target] = &self.sides;
        let [source, sink] = match from {
            End::Client => [client, target],
            End::Target => [target, client],
        };
        let (Some(source), Some(sink), Some(id)) =
            (&source.connection, &sink.connection, stream_id(stream))
        else {
            return Moved { source: Source::Gone, ..nothing_moved(0) };
        };
        let (mut source, mut taker) = (source.borrow_mut(), sink.borrow_mut());
        let early = self.early.as_mut().filter(|_| from == End::Client);
        let mut sink = StreamSink { taker: &mut taker, id, early };
        let (moved, left) = carry(&mut source, &mut sink, held, [piece_bytes, most_bytes]);
        drop((source, taker));
        if let Some(left) = left {
            self.waiting.insert((from, stream), left);
        }
        moved
    }

    fn record_given(&mut self, end: End, bytes: usize) {
        let [client, target] = &mut self.told.given_bytes;
        let given_bytes = if end == End::Client { client } else { target };
        *given_bytes += bytes as u64;
    }

    fn given_bytes(&self, end: End) -> u64 {
        let [client, target] = self.told.given_bytes;
        if end == End::Client { client } else { target }
    }

    /// What was sent over each connection that stood.
    pub(super) fn sent_totals(&self) -> [Option<SentTotals>; 2] {
        End::ALL.map(|end| {
            let [packets, lost_packets] = self.packets(end);
            let totals = SentTotals { bytes: self.given_bytes(end), packets, lost_packets };
            self.is_established(end).then_some(totals)
        })
    }

    /// How long ago the client came.
    pub(super) fn elapsed_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.began_ns)
    }

    /// Streams that were opened and not told.
    pub(super) fn take_opened(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.told.opened)
    }

    /// What was sent to this end since the interval before; `None`: its connection doesn't stand.
    pub(super) fn take_interval(&mut self, end: End) -> Option<SentInterval> {
        let status = self.with(end, |connection| connection.status());
        let status = status.filter(|_| self.is_established(end))?;
        let now_ns = monotonic_ns();
        let bytes = self.given_bytes(end);
        let (ended_ns, sums) = self.told.sums.get_mut(usize::from(end == End::Target))?;
        let since_ns = if *ended_ns == 0 { self.began_ns } else { *ended_ns };
        let sent = SentInterval {
            index: sums.index,
            measured_ns: now_ns.saturating_sub(since_ns),
            bytes: bytes.saturating_sub(sums.bytes),
            packets: status.sent_packets.saturating_sub(sums.packets),
            lost_packets: status.lost_packets.saturating_sub(sums.lost_packets),
            window_bytes: status.cwnd_bytes,
        };
        let (packets, lost_packets) = (status.sent_packets, status.lost_packets);
        *sums = SentInterval { index: sums.index + 1, bytes, packets, lost_packets, ..*sums };
        *ended_ns = now_ns;
        Some(sent)
    }

    /// Packets that were sent to this end, and that were lost.
    pub(super) fn packets(&self, end: End) -> [u64; 2] {
        let status = self.with(end, |connection| connection.status());
        status.map_or([0; 2], |status| [status.sent_packets, status.lost_packets])
    }

    /// Bytes that came from this end and wait.
    pub(super) fn held_bytes(&self, from: End) -> usize {
        self.relay.held_bytes(from)
    }
}

fn nothing_moved(held_bytes: usize) -> Moved {
    let (source, sink) = (Source::More, Sink::Open);
    Moved { held_bytes, taken_bytes: 0, source, sink }
}

/// The end of a stream that takes bytes.
struct StreamSink<'a> {
    taker: &'a mut Connection,
    id: StreamId,
    /// Where what it takes is noted.
    early: Option<&'a mut EarlyData>,
}

impl StreamSink<'_> {
    fn send_part(&mut self, piece: &mut Bytes) -> io::Result<usize> {
        let noted = self.early.is_some().then(|| piece.clone());
        let taken = self.taker.send_part(self.id, piece)?;
        if let (Some(early), Some(noted)) = (&mut self.early, noted) {
            early.record_sent(self.id, noted.slice(..taken));
        }
        Ok(taken)
    }
}

/// Gives one connection what waits of a stream, then pieces that the other has; what is left waits.
fn carry(
    source: &mut Connection,
    sink: &mut StreamSink<'_>,
    held: Option<Bytes>,
    [piece_bytes, most_bytes]: [usize; 2],
) -> (Moved, Option<Bytes>) {
    let id = sink.id;
    let (mut moved, mut left) = (nothing_moved(held.as_ref().map_or(0, Bytes::len)), None);
    let mut give = |moved: &mut Moved, mut piece: Bytes| {
        // An event tells of room only after a send that took nothing.
        while !piece.is_empty() && moved.sink == Sink::Open {
            match sink.send_part(&mut piece) {
                Ok(taken) => moved.taken_bytes += taken,
                Err(error) => moved.sink = blocked(&error),
            }
        }
        moved.held_bytes = piece.len();
        if !piece.is_empty() {
            left = Some(piece);
        }
    };
    if let Some(held) = held {
        give(&mut moved, held);
    }
    if moved.sink == Sink::Open {
        let mut has_enough = false;
        let read = source.read_pieces(id, piece_bytes, &mut |piece| {
            give(&mut moved, piece);
            has_enough = moved.sink != Sink::Open || moved.taken_bytes >= most_bytes;
            if has_enough { 0 } else { piece_bytes }
        });
        moved.source = match read {
            StreamRead::Bytes(_) if has_enough => Source::More,
            StreamRead::Bytes(_) | StreamRead::Blocked => Source::Empty,
            StreamRead::Finished(_) => Source::Finished,
            StreamRead::Reset(code) => Source::Reset(code),
            StreamRead::Closed => Source::Gone,
        };
    }
    (moved, left)
}

/// Why an end takes no more of a stream.
fn blocked(error: &io::Error) -> Sink {
    if error.kind() == io::ErrorKind::WouldBlock {
        return Sink::Full;
    }
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(StreamAbort::Stopped(code)) => Sink::Stopped(*code),
        Some(StreamAbort::Reset(_)) | None => Sink::Gone,
    }
}
