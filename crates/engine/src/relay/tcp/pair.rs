//! A client's TCP connection and the one that carries it on. To the rules of the relay both are one stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_wire::relay::{Action, Class, End, Limits, Moved, Relay, Sink, Source};
use socket2::Socket;

use super::super::admission::Admitted;
use super::super::counts::Counts;
use super::mover::{Mover, PIECE_BYTES, Way};

/// Pieces that a pair carries before others have their turn.
const MOVES_AT_ONCE: usize = 8;
/// The one stream of a pair, which both ends have by themselves.
const STREAM: u64 = 0;

/// A client's connection and the one that carries it on.
pub(super) struct Pair {
    pub(super) client: SocketAddr,
    /// Until when the connection to the target must stand.
    pub(super) due: Instant,
    relay: Relay,
    client_socket: Socket,
    target_socket: Socket,
    /// By the end that bytes come from.
    ways: [Way; 2],
    is_connected: bool,
    counts: Arc<Counts>,
    _admitted: Admitted,
}

/// How a pair goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    GoesOn,
    /// There is more to carry, after others.
    Unfinished,
    /// Both ends have had their last byte.
    Over,
    /// One connection broke, and the other is broken off, too.
    Broken,
}

impl Pair {
    pub(super) fn new(
        client: SocketAddr,
        [client_socket, target_socket]: [Socket; 2],
        (buffer_bytes, due): (usize, Instant),
        counts: Arc<Counts>,
        admitted: Admitted,
    ) -> Self {
        let mut relay = Relay::new(Limits { buffer_bytes, piece_bytes: PIECE_BYTES, streams: 1 });
        relay.handle_established(End::Client);
        Self {
            client,
            due,
            relay,
            client_socket,
            target_socket,
            ways: Default::default(),
            is_connected: false,
            counts,
            _admitted: admitted,
        }
    }

    pub(super) fn socket(&self, end: End) -> &Socket {
        match end {
            End::Client => &self.client_socket,
            End::Target => &self.target_socket,
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// The connection to the target stands: bytes may flow.
    pub(super) fn handle_connected(&mut self) {
        self.is_connected = true;
        self.counts.streams.add(1);
        self.relay.handle_established(End::Target);
        self.relay.handle_streams_opened(End::Client, false);
    }

    pub(super) fn handle_ready(&mut self, end: End, readable: bool, writable: bool) {
        if readable {
            self.relay.handle_readable(end, STREAM);
        }
        if writable {
            self.relay.handle_writable(end, STREAM);
        }
    }

    /// Breaks both connections off: their peers get a reset.
    pub(super) fn break_off(&self) {
        for end in End::ALL {
            let _ended_anyway = self.socket(end).set_linger(Some(Duration::ZERO));
        }
    }

    /// Does what the relay wants done.
    pub(super) fn work(&mut self, mover: &mut Mover) -> Fate {
        let mut moves = 0;
        while let Some(action) = self.relay.poll_action() {
            match action {
                Action::Accept(class) => {
                    let is_first = class == Class::of(STREAM);
                    self.relay.handle_accepted(class, is_first.then_some(STREAM));
                }
                Action::Open(class) => {
                    self.relay.handle_opened(class, Some(STREAM));
                    // A target that speaks first may have done so before.
                    self.relay.handle_readable(End::Target, STREAM);
                }
                Action::Move { from, piece_bytes, most_bytes, .. } => {
                    let moved = self.carry(from, [piece_bytes, most_bytes], mover);
                    self.counts.end(from).bytes.add(moved.taken_bytes as u64);
                    if moved.source == Source::Gone || moved.sink == Sink::Gone {
                        return Fate::Broken;
                    }
                    self.relay.handle_moved(from, STREAM, moved);
                    moves += 1;
                    if moves >= MOVES_AT_ONCE {
                        return Fate::Unfinished;
                    }
                }
                Action::Finish(end, _) => {
                    // Fails only where the connection broke, which the next call tells.
                    let _told_later = self.socket(end).shutdown(std::net::Shutdown::Write);
                    // The kernel sees to the delivery.
                    self.relay.handle_delivered(end, STREAM);
                    if self.relay.open_streams() == 0 {
                        return Fate::Over;
                    }
                }
                Action::Drop(from, _) => mover.drop_waiting(self.way(from)),
                Action::Reset(..) | Action::Stop(..) | Action::Flush(_) | Action::Close(..) => {}
            }
        }
        Fate::GoesOn
    }

    fn way(&mut self, from: End) -> &mut Way {
        let [client, target] = &mut self.ways;
        match from {
            End::Client => client,
            End::Target => target,
        }
    }

    /// Gives the other end what waits, then what can be read.
    fn carry(&mut self, from: End, bytes: [usize; 2], mover: &mut Mover) -> Moved {
        let mut way = std::mem::take(self.way(from));
        let moved = mover.carry(&mut way, [self.socket(from), self.socket(from.other())], bytes);
        *self.way(from) = way;
        moved
    }

    /// The pair is forgotten: what waits in it is dropped.
    pub(super) fn end(mut self, mover: &mut Mover) {
        for way in &mut self.ways {
            mover.drop_waiting(way);
        }
    }

    /// Bytes that came from this end and wait.
    pub(super) fn held_bytes(&self, from: End) -> usize {
        self.relay.held_bytes(from)
    }
}
