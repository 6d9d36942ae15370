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
use quinn_proto::{ConnectionHandle, StreamId, VarInt};

mod arrived;
mod departure;
mod peer;
mod streams;
mod waited;

use arrived::Arrived;
pub(super) use departure::Held;
pub(crate) use streams::{StreamAbort, StreamRead};
use waited::Waited;

use super::cause::Cause;
use super::datagrams::DatagramsTaken;
use super::delivery::Delivery;
use super::governor::{CongestionCounts, Gate, Governor};
use super::keys::TRANSPORT_MARK;
use super::qlog::Log;
use super::stock::Share;

/// A connection as its endpoint and its streams share it, all in one thread.
pub(crate) type SharedConnection = Rc<RefCell<Connection>>;

/// Connections that have something to say, by their slots.
pub(super) type Touched = Rc<RefCell<Vec<u32>>>;

/// Where an endpoint has a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    /// The number of its socket.
    pub(super) port: u32,
    /// Its number among the connections over that.
    pub(super) handle: ConnectionHandle,
    /// Its place among those of the endpoint.
    pub(super) place: u32,
}

/// One connection.
pub(crate) struct Connection {
    pub(super) proto: quinn_proto::Connection,
    pub(super) location: Location,
    /// Whether its place stands among those that have something to say.
    is_touched: bool,
    touched: Touched,
    pub(super) lost: Option<Cause>,
    /// Its number, while it is one that was accepted and whose handshake isn't done.
    pub(super) half_open_number: Option<usize>,
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
    waited: Waited,
    /// Whether packets were sent since the peer's limits were last noted.
    has_unnoted: bool,
}

/// The most of a close's reason that is sent: it fits into a packet that every path carries.
const LONGEST_REASON: usize = 1_000;

impl Connection {
    pub(super) fn new(
        proto: quinn_proto::Connection,
        location: Location,
        touched: Touched,
    ) -> Self {
        let (governor, remote) = (Governor::of(&proto), proto.remote_address());
        let gate = governor.gate(Instant::now());
        Self {
            proto,
            location,
            is_touched: false,
            touched,
            lost: None,
            half_open_number: None,
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
            waited: Waited::default(),
            has_unnoted: false,
            arrived: Arrived::default(),
            is_marked: false,
            datagrams: DatagramsTaken::default(),
        }
    }

    /// The endpoint looks at it in its next turn.
    pub(super) fn touch(&mut self) {
        if !self.is_touched {
            self.is_touched = true;
            self.touched.borrow_mut().push(self.location.place);
        }
    }

    /// Whether it may have something to say.
    pub(super) fn is_touched(&self) -> bool {
        self.is_touched
    }

    pub(super) fn untouch(&mut self) {
        self.is_touched = false;
    }

    /// Says goodbye to the peer, with an application's code; what was not delivered is lost.
    pub(crate) fn close(&mut self, code: u32, reason: &'static [u8]) {
        self.close_now(VarInt::from_u32(code), Bytes::from_static(reason));
    }

    /// Says goodbye as the transport, where its session can, or as the application. A reason is cut to what one
    /// packet holds.
    pub(crate) fn close_as(&mut self, is_transport: bool, code: u64, reason: &[u8]) {
        let mut reason = reason.get(..reason.len().min(LONGEST_REASON)).unwrap_or(reason).to_vec();
        while reason.last() == Some(&TRANSPORT_MARK) {
            reason.pop();
        }
        reason.extend(is_transport.then_some(TRANSPORT_MARK));
        self.close_now(VarInt::from_u64(code).unwrap_or(VarInt::MAX), reason.into());
    }

    fn close_now(&mut self, code: VarInt, reason: Bytes) {
        if !self.proto.is_closed() {
            if let Some(log) = &self.log {
                let text = String::from_utf8_lossy(&reason);
                log.record_close("local", Some(code.into_inner()), &text);
            }
            self.proto.close(Instant::now(), code, reason);
            self.touch();
        }
    }

    /// Lets senders have as much unacknowledged as keeps the path busy, and not much more.
    pub(crate) fn fit_send_window(&mut self) {
        self.proto.set_send_window(self.governor.send_window_bytes(self.proto.rtt()));
    }

    /// Likewise, but of what the congestion window doesn't hold only so much, and in all no more than the path can
    /// hold. What is unacknowledged stays in memory, each piece in a place of its own: on a short path a large
    /// congestion window takes nothing but the processor's cache.
    pub(crate) fn fit_send_window_with(&mut self, waiting_bytes: u64) {
        let most = self.governor.window_bytes().saturating_add(waiting_bytes);
        let most = most.min(self.governor.path_bytes());
        self.proto.set_send_window(self.governor.send_window_bytes(self.proto.rtt()).min(most));
    }

    /// Sends something that the peer acknowledges, to find out when the peer has all that was sent.
    pub(crate) fn begin_flush(&mut self) {
        self.proto.ping();
        self.arrived.acks_before_flush = self.proto.stats().frame_rx.acks;
        self.touch();
    }

    /// Whether the peer has all that was sent before the flush began.
    pub(crate) fn is_flushed(&self) -> bool {
        let has_acknowledged = self.proto.stats().frame_rx.acks > self.arrived.acks_before_flush;
        let is_empty = self.governor.in_flight_bytes() == Some(0) && self.held() == Held::Empty;
        self.lost.is_some() || has_acknowledged && is_empty
    }

    /// Awaits the end of the handshake.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where it isn't done, and an event says when it is; whatever ended the connection.
    pub(crate) fn establish(&self) -> io::Result<()> {
        match &self.lost {
            Some(cause) => Err(cause.error()),
            None if self.proto.is_handshaking() => Err(io::ErrorKind::WouldBlock.into()),
            None => Ok(()),
        }
    }

    /// Whether something can be said before the handshake is done (0-RTT).
    pub(crate) fn can_send_early(&self) -> bool {
        self.proto.has_0rtt() && self.proto.is_handshaking()
    }

    /// Whether the server took what was said before.
    pub(crate) fn early_was_taken(&self) -> bool {
        self.proto.accepted_0rtt()
    }

    /// Whether the handshake is done and the server has refused what was said before: the connection then has none
    /// of the streams that were opened.
    pub(crate) fn early_was_refused(&self) -> bool {
        self.proto.has_0rtt() && self.is_standing() && !self.proto.accepted_0rtt()
    }

    /// Whether the handshake is done, and nothing has ended the connection.
    pub(crate) fn is_standing(&self) -> bool {
        !self.proto.is_handshaking() && !self.proto.is_closed()
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
            data_blocked: Some(stats.frame_tx.data_blocked),
            stream_data_blocked: Some(stats.frame_tx.stream_data_blocked),
            waits: Some(self.waited.at(Instant::now())),
            socket_drops: None,
        }
    }

    /// Whether the path carries congestion marks, as far as the peer's acknowledgements show; `None` before
    /// there are any.
    pub(crate) fn carries_marks(&self) -> Option<bool> {
        (self.proto.stats().frame_rx.acks > 0).then_some(self.is_marked)
    }
}
