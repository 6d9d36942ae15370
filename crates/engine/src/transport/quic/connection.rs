//! One connection, and what can be done with its streams.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use linerate_measure::sample::QuicStatus;
use quinn_proto::{
    ConnectionHandle, Dir, FinishError, ReadError, ReadableError, RecvStream, SendStream, StreamId,
    VarInt, WriteError,
};

mod arrived;
mod departure;
mod peer;

use arrived::Arrived;
pub(super) use departure::Held;

use super::cause::Cause;
use super::datagrams::DatagramsTaken;
use super::delivery::Delivery;
use super::governor::{CongestionCounts, Gate, Governor};
use super::qlog::Log;
use super::stock::Share;

/// A connection as its endpoint and its streams share it, all in one thread.
pub(crate) type SharedConnection = Rc<RefCell<Connection>>;

/// Connections that have something to say, by their places.
pub(super) type Touched = Rc<RefCell<Vec<usize>>>;

/// One connection.
pub(crate) struct Connection {
    pub(super) proto: quinn_proto::Connection,
    pub(super) handle: ConnectionHandle,
    /// Whether its place stands among those that have something to say.
    is_touched: bool,
    touched: Touched,
    pub(super) lost: Option<Cause>,
    /// Its number, while it is one that was accepted and whose handshake isn't done.
    pub(super) stranger: Option<usize>,
    /// When its timer is looked at; `None`: it has none.
    pub(super) due: Option<Instant>,
    pub(super) datagrams: DatagramsTaken,
    governor: Arc<Governor>,
    /// Whose path the governor is for: another path may have a control of its own.
    remote: SocketAddr,
    /// How often other paths were found congested.
    other_paths: CongestionCounts,
    /// Of one that has a rate of its own.
    gate: Option<Gate>,
    /// When that lets packets leave again.
    gate_opens: Option<Instant>,
    /// Streams whose delivery is watched.
    deliveries: HashMap<StreamId, Delivery>,
    /// Where what happens to it is written down.
    pub(super) log: Option<Arc<Log>>,
    /// What its peer may have kept beyond what it began with.
    pub(super) share: Option<Share>,
    arrived: Arrived,
    /// Whether the last packet was marked as able to carry congestion marks.
    is_marked: bool,
    held: Held,
}

/// What came of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) bytes: usize,
    /// Whether the peer has sent its last, and all of it was read.
    pub(crate) finished: bool,
}

#[allow(dead_code, reason = "each dialect does with streams what it needs")]
impl Connection {
    pub(super) fn new(
        proto: quinn_proto::Connection,
        handle: ConnectionHandle,
        touched: Touched,
    ) -> Self {
        let (governor, remote) = (Governor::of(&proto), proto.remote_address());
        let gate = governor.gate(Instant::now());
        Self {
            proto,
            handle,
            is_touched: false,
            touched,
            lost: None,
            stranger: None,
            due: None,
            governor,
            remote,
            other_paths: CongestionCounts::default(),
            gate,
            gate_opens: None,
            deliveries: HashMap::new(),
            log: None,
            share: None,
            held: Held::default(),
            arrived: Arrived::default(),
            is_marked: false,
            datagrams: DatagramsTaken::default(),
        }
    }

    /// The endpoint looks at it in its next turn.
    pub(super) fn touch(&mut self) {
        if !self.is_touched {
            self.is_touched = true;
            self.touched.borrow_mut().push(self.handle.0);
        }
    }

    pub(super) fn untouch(&mut self) {
        self.is_touched = false;
    }

    /// Opens a stream, where the peer allows another.
    pub(crate) fn open_stream(&mut self, dir: Dir) -> Option<StreamId> {
        self.proto.streams().open(dir)
    }

    /// Takes a stream that the peer has opened.
    pub(crate) fn accept_stream(&mut self, dir: Dir) -> Option<StreamId> {
        self.proto.streams().accept(dir)
    }

    /// Sends the beginning of `bytes`; says how many.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where there is no room now, and an event says when there is.
    pub(crate) fn send(&mut self, id: StreamId, bytes: &[u8]) -> io::Result<usize> {
        let closed = WriteError::ClosedStream;
        let sent = sender(&mut self.proto, id).ok_or(closed).and_then(|mut to| to.write(bytes));
        self.sent(sent)
    }

    /// Sends bytes that are shared, not copied; says how many.
    ///
    /// # Errors
    ///
    /// As [`Connection::send`].
    pub(crate) fn send_shared(&mut self, id: StreamId, bytes: Bytes) -> io::Result<usize> {
        let mut chunks = [bytes];
        let sent = write_chunks(&mut self.proto, id, &mut chunks);
        self.sent(sent)
    }

    /// Sends as [`Connection::send_shared`], and watches how much of the stream is delivered.
    ///
    /// # Errors
    ///
    /// As [`Connection::send`].
    pub(crate) fn send_watched(&mut self, id: StreamId, bytes: Bytes) -> io::Result<usize> {
        let delivery = self.deliveries.entry(id).or_default();
        let mut chunks = [delivery.piece(bytes)];
        let sent = write_chunks(&mut self.proto, id, &mut chunks);
        // What wasn't taken goes before it is said how much was.
        drop(chunks);
        delivery.record_taken(*sent.as_ref().unwrap_or(&0));
        self.sent(sent)
    }

    /// Bytes of a stream that the peer has acknowledged, where that is watched: no more than they are.
    pub(crate) fn delivered_bytes(&mut self, id: StreamId) -> Option<u64> {
        self.deliveries.get_mut(&id).map(Delivery::bytes)
    }

    /// Nobody asks any more how much of a stream was delivered.
    pub(crate) fn forget_delivery(&mut self, id: StreamId) {
        self.deliveries.remove(&id);
    }

    fn sent(&mut self, sent: Result<usize, WriteError>) -> io::Result<usize> {
        match sent {
            Ok(bytes) => {
                self.touch();
                Ok(bytes)
            }
            Err(error) => Err(match (&self.lost, error) {
                (Some(cause), _) => cause.error(),
                (None, WriteError::Blocked) => io::ErrorKind::WouldBlock.into(),
                (None, WriteError::Stopped(code)) => stopped(code),
                (None, WriteError::ClosedStream) => io::ErrorKind::NotConnected.into(),
            }),
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&mut self, id: StreamId) -> io::Result<()> {
        self.touch();
        let closed = FinishError::ClosedStream;
        let finished = sender(&mut self.proto, id).ok_or(closed).and_then(|mut to| to.finish());
        finished.map_err(|error| match (&self.lost, error) {
            (Some(cause), _) => cause.error(),
            (None, FinishError::Stopped(code)) => stopped(code),
            (None, FinishError::ClosedStream) => io::ErrorKind::NotConnected.into(),
        })
    }

    /// Whether the peer has acknowledged all of a stream that was finished, or has closed in order, which
    /// says the same.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where it hasn't, and an event says when; whatever ended the connection.
    pub(crate) fn await_delivery(&mut self, id: StreamId) -> io::Result<()> {
        let Some(stream) = sender(&mut self.proto, id) else { return Ok(()) };
        match (stream.stopped(), &self.lost) {
            (Err(_), _) => Ok(()),
            (Ok(Some(code)), _) => Err(stopped(code)),
            (Ok(None), None) => Err(io::ErrorKind::WouldBlock.into()),
            (Ok(None), Some(cause)) if cause.code == Some(0) => Ok(()),
            (Ok(None), Some(cause)) => Err(cause.error()),
        }
    }

    /// Gives up sending, on a stream that sends.
    pub(crate) fn reset(&mut self, id: StreamId, code: u32) {
        if let Some(delivery) = self.deliveries.get_mut(&id) {
            delivery.end();
        }
        if let Some(mut stream) = sender(&mut self.proto, id) {
            // Fails only where nothing was left to give up.
            let _over_anyway = stream.reset(code.into());
            self.touch();
        }
    }

    /// Tells the peer that nothing more will be read, on a stream that receives.
    pub(crate) fn stop_sending(&mut self, id: StreamId, code: u32) {
        if let Some(mut stream) = receiver(&mut self.proto, id) {
            let _over_anyway = stream.stop(code.into());
            self.touch();
        }
    }

    /// Looks at up to `most` bytes that have come, piece by piece in their order, where they are.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where nothing is there now; whatever ended the stream or the connection.
    pub(crate) fn read_each(
        &mut self,
        id: StreamId,
        most: usize,
        look: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Reading> {
        let mut reading = Reading::default();
        let Some(mut stream) = receiver(&mut self.proto, id) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let mut chunks = match stream.read(true) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => {
                return Err(self
                    .lost
                    .as_ref()
                    .map_or_else(|| io::ErrorKind::NotConnected.into(), Cause::error));
            }
        };
        let mut reset = None;
        let mut blocked = false;
        while reading.bytes < most {
            match chunks.next(most - reading.bytes) {
                Ok(Some(chunk)) => {
                    look(&chunk.bytes);
                    reading.bytes += chunk.bytes.len();
                }
                Ok(None) => {
                    reading.finished = true;
                    break;
                }
                Err(ReadError::Blocked) => {
                    blocked = true;
                    break;
                }
                Err(ReadError::Reset(code)) => {
                    reset = Some(code);
                    break;
                }
            }
        }
        if chunks.finalize().should_transmit() {
            self.touch();
        }
        match (reset, &self.lost) {
            (Some(code), _) => Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                format!("QUIC: the peer reset the stream with code {code}"),
            )),
            (None, Some(cause)) if blocked && reading.bytes == 0 => Err(cause.error()),
            (None, None) if blocked && reading.bytes == 0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(reading),
        }
    }

    /// Says goodbye to the peer, with an application's code; what was not delivered is lost.
    pub(crate) fn close(&mut self, code: u32, reason: &'static [u8]) {
        if !self.proto.is_closed() {
            if let Some(log) = &self.log {
                log.record_close("local", Some(code.into()), &String::from_utf8_lossy(reason));
            }
            self.proto.close(Instant::now(), VarInt::from_u32(code), Bytes::from_static(reason));
            self.touch();
        }
    }

    /// Lets senders have as much unacknowledged as keeps the path busy, and not much more.
    pub(crate) fn fit_send_window(&mut self) {
        self.proto.set_send_window(self.governor.send_window_bytes(self.proto.rtt()));
    }

    /// Whether something can be said before the handshake is done (0-RTT).
    pub(crate) fn can_send_early(&self) -> bool {
        self.proto.has_0rtt() && self.proto.is_handshaking()
    }

    /// Whether the server took what was said before.
    pub(crate) fn early_was_taken(&self) -> bool {
        self.proto.accepted_0rtt()
    }

    /// Whether the server has confirmed the handshake (RFC 9001, section 4.1.2): it says so beside the
    /// tickets that it gives.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.proto.stats().frame_rx.handshake_done > 0
    }

    /// What the connection says of its path.
    pub(crate) fn status(&self) -> QuicStatus {
        let stats = self.proto.stats();
        let congestion = self.other_paths.and(self.governor.congestion());
        let us = |time: std::time::Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        QuicStatus {
            rtt_us: us(stats.path.rtt),
            min_rtt_us: us(stats.path.min_rtt),
            cwnd_bytes: self.governor.window_bytes(),
            mtu_bytes: u32::from(stats.path.current_mtu),
            sent_packets: stats.path.sent_packets,
            lost_packets: stats.path.lost_packets,
            congestion_events: congestion.events,
            ecn_events: Some(congestion.ecn_events),
            lost_bytes: Some(stats.path.lost_bytes),
            in_flight_bytes: self.governor.in_flight_bytes(),
            received_datagrams: Some(stats.udp_rx.datagrams),
            received_ce_datagrams: Some(self.arrived.ce_datagrams),
            sent_acks: Some(stats.frame_tx.acks),
            received_acks: Some(stats.frame_rx.acks),
            acked_bytes: None,
        }
    }

    /// Whether the path carries congestion marks, as far as the peer's acknowledgements show; `None` before
    /// there are any.
    pub(crate) fn carries_marks(&self) -> Option<bool> {
        (self.proto.stats().frame_rx.acks > 0).then_some(self.is_marked)
    }
}

/// The sending half of a stream that has one. The crate panics at others, and which streams there are is up
/// to the peer.
fn sender(proto: &mut quinn_proto::Connection, id: StreamId) -> Option<SendStream<'_>> {
    (id.dir() == Dir::Bi || id.initiator() == proto.side()).then(|| proto.send_stream(id))
}

/// Likewise, the receiving half.
fn receiver(proto: &mut quinn_proto::Connection, id: StreamId) -> Option<RecvStream<'_>> {
    (id.dir() == Dir::Bi || id.initiator() != proto.side()).then(|| proto.recv_stream(id))
}

fn write_chunks(
    proto: &mut quinn_proto::Connection,
    id: StreamId,
    chunks: &mut [Bytes],
) -> Result<usize, WriteError> {
    let mut stream = sender(proto, id).ok_or(WriteError::ClosedStream)?;
    stream.write_chunks(chunks).map(|sent| sent.bytes)
}

fn stopped(code: VarInt) -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionReset,
        format!("QUIC: the peer stopped the stream with code {code}"),
    )
}
