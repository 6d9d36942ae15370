//! A client's TCP connection and the one that carries it on. To the rules of the relay both are one stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use linerate_wire::relay::{Action, Class, End, Limits, Moved, Relay, Sink, Source};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::Socket;

use super::super::admission::Admitted;
use super::super::counts::Counts;

/// Pieces that a pair carries before others have their turn.
const MOVES_AT_ONCE: usize = 8;
/// What is read with one call at most.
pub(super) const PIECE_BYTES: usize = 128 << 10;
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
    /// What one end gave and the other has not taken, by the end that gave it.
    waiting: [Option<Bytes>; 2],
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
            waiting: [None, None],
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
    pub(super) fn work(&mut self, scratch: &mut [u8]) -> Fate {
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
                    let moved = self.carry(from, [piece_bytes, most_bytes], scratch);
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
                Action::Drop(from, _) => self.set_waiting(from, None),
                Action::Reset(..) | Action::Stop(..) | Action::Flush(_) | Action::Close(..) => {}
            }
        }
        Fate::GoesOn
    }

    fn set_waiting(&mut self, from: End, piece: Option<Bytes>) {
        let [client, target] = &mut self.waiting;
        match from {
            End::Client => *client = piece,
            End::Target => *target = piece,
        }
    }

    fn take_waiting(&mut self, from: End) -> Option<Bytes> {
        let [client, target] = &mut self.waiting;
        match from {
            End::Client => client.take(),
            End::Target => target.take(),
        }
    }

    /// Gives the other end what waits, then what can be read.
    fn carry(
        &mut self,
        from: End,
        [piece_bytes, most_bytes]: [usize; 2],
        scratch: &mut [u8],
    ) -> Moved {
        let mut waiting = self.take_waiting(from);
        let (source, sink) = (self.socket(from), self.socket(from.other()));
        let mut moved =
            Moved { held_bytes: 0, taken_bytes: 0, source: Source::More, sink: Sink::Open };
        loop {
            if let Some(piece) = waiting.take() {
                let mut left = &*piece;
                moved.sink = write(sink, &mut left);
                moved.taken_bytes += piece.len() - left.len();
                waiting = (!left.is_empty()).then(|| piece.slice(piece.len() - left.len()..));
            }
            if moved.taken_bytes >= most_bytes || moved.sink != Sink::Open {
                break;
            }
            let most = piece_bytes.min(scratch.len());
            let Some(space) = scratch.get_mut(..most) else { break };
            let read = match recv(source, space, RecvFlags::empty()) {
                Ok((0, _)) => {
                    moved.source = Source::Finished;
                    break;
                }
                Ok((length, _)) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    moved.source = Source::Empty;
                    break;
                }
                Err(_) => {
                    moved.source = Source::Gone;
                    break;
                }
            };
            let mut left = scratch.get(..read).unwrap_or_default();
            moved.sink = write(sink, &mut left);
            moved.taken_bytes += read - left.len();
            waiting = (!left.is_empty()).then(|| Bytes::copy_from_slice(left));
        }
        moved.held_bytes = waiting.as_ref().map_or(0, Bytes::len);
        self.set_waiting(from, waiting);
        moved
    }

    /// Bytes that came from this end and wait.
    pub(super) fn held_bytes(&self, from: End) -> usize {
        self.relay.held_bytes(from)
    }
}

/// Sends the beginning of a piece; what is left is what the connection doesn't take now.
fn write(socket: &Socket, left: &mut &[u8]) -> Sink {
    while !left.is_empty() {
        match send(socket, left, SendFlags::NOSIGNAL) {
            Ok(sent) => *left = left.get(sent..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Sink::Full,
            Err(_) => return Sink::Gone,
        }
    }
    Sink::Open
}
