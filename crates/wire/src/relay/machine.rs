//! The rules of one pair of connections.

use std::collections::{HashMap, VecDeque};

use super::budget::Budget;
use super::close::{Close, Code, Ended};
use super::way::{Moved, Sink, Source, Stage, Way};
use super::{Class, End};

/// How long a connection whose other one has ended may still take what was received before, ns.
const LINGER_NS: u64 = 5_000_000_000;
/// What is moved of one stream before others have their turn.
const MOVE_BYTES: usize = 64 << 10;

/// What a relay may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that were read at one end and not taken by the other, in each direction.
    pub buffer_bytes: usize,
    /// The most of one piece: what a stream may leave waiting when the other end takes no more.
    pub piece_bytes: usize,
    /// Streams of each class at a time.
    pub streams: usize,
}

/// What the driver is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Take the next stream that the peer has opened: [`Relay::handle_accepted`] gets its id.
    Accept(Class),
    /// Open a stream of this class at the other end than its opener's: [`Relay::handle_opened`] gets its id.
    Open(Class),
    /// Give the other end what waits of a stream, then read and write pieces: [`Relay::handle_moved`].
    Move {
        /// Where the bytes come from.
        from: End,
        /// The stream.
        stream: u64,
        /// The longest piece to read: what is left of it, where the other end takes less, waits.
        piece_bytes: usize,
        /// When to stop, for others to have their turn.
        most_bytes: usize,
    },
    /// Write the end of a stream.
    Finish(End, u64),
    /// Give up sending on a stream, with this code; what waits for it is to be dropped.
    Reset(End, u64, u64),
    /// Ask the peer to send no more of a stream, with this code.
    Stop(End, u64, u64),
    /// Drop what waits of a stream that comes from this end.
    Drop(End, u64),
    /// See that the peer has what was written: [`Relay::handle_flushed`].
    Flush(End),
    /// Close a connection.
    Close(End, Close),
}

/// A stream, which has one id at both ends.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Its directions, by the end where bytes come from.
    ways: [Way; 2],
}

/// Streams of one class.
#[derive(Clone, Debug, Default)]
struct Cursor {
    /// How many were taken at their opener's end.
    accepted: u64,
    /// How many of them were opened at the other end: as many, or one less.
    opened: u64,
    /// How many there are.
    open: usize,
    /// Whether the opener's peer may have opened more.
    has_more: bool,
    /// Whether the next is being taken.
    is_accepting: bool,
    /// Whether the other end has refused to open the next.
    is_refused: bool,
}

/// How far one of the connections has come.
#[derive(Clone, Debug, Default)]
struct EndState {
    is_established: bool,
    /// It is gone, or was closed.
    is_over: bool,
    /// What it is to be closed with, when nothing is left to be handed over.
    closing: Option<Close>,
    /// Whether its peer may lack something that was written to streams without an end.
    is_unconfirmed: bool,
    is_flushing: bool,
}

/// The rules of one pair of connections.
#[derive(Debug)]
pub struct Relay {
    limits: Limits,
    ends: [EndState; 2],
    /// By the end where bytes come from.
    budgets: [Budget; 2],
    streams: HashMap<u64, Stream>,
    cursors: [Cursor; 4],
    /// Streams that were stopped before they were opened at the other end, with the end and the code.
    early_stops: HashMap<u64, u64>,
    actions: VecDeque<Action>,
    /// Streams that may be moved, and from where.
    queue: VecDeque<(End, u64)>,
    held_bytes: [usize; 2],
    linger_until_ns: Option<u64>,
}

impl Relay {
    /// A pair of which neither connection stands yet.
    pub fn new(limits: Limits) -> Self {
        let budget =
            Budget::new(limits.buffer_bytes, limits.piece_bytes, limits.streams.saturating_mul(3));
        Self {
            limits,
            ends: Default::default(),
            budgets: [budget.clone(), budget],
            streams: HashMap::new(),
            cursors: Default::default(),
            early_stops: HashMap::new(),
            actions: VecDeque::new(),
            queue: VecDeque::new(),
            held_bytes: [0; 2],
            linger_until_ns: None,
        }
    }

    /// What to do next; `None`: nothing until something happens.
    pub fn poll_action(&mut self) -> Option<Action> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        while let Some((from, stream)) = self.queue.pop_front() {
            let Some(way) = self.way(from, stream) else { continue };
            way.is_queued = false;
            if way.can_move() {
                let piece_bytes = self.budgets.get(from.index()).map_or(1, Budget::piece_bytes);
                return Some(Action::Move { from, stream, piece_bytes, most_bytes: MOVE_BYTES });
            }
        }
        None
    }

    /// A connection stands.
    pub fn handle_established(&mut self, end: End) {
        self.end(end).is_established = true;
        for one_way in [false, true] {
            self.handle_streams_available(end, one_way);
        }
        self.settle(end);
    }

    /// The peer of this end has opened streams.
    pub fn handle_streams_opened(&mut self, opener: End, one_way: bool) {
        self.accept_more(Class { opener, one_way });
    }

    /// The peer of this end allows more streams to be opened.
    pub fn handle_streams_available(&mut self, at: End, one_way: bool) {
        let class = Class { opener: at.other(), one_way };
        if std::mem::take(&mut self.cursor(class).is_refused) {
            self.actions.push_back(Action::Open(class));
        }
    }

    /// What came of [`Action::Accept`]; `None`: the peer has opened no more.
    pub fn handle_accepted(&mut self, class: Class, stream: Option<u64>) {
        let cursor = self.cursor(class);
        cursor.is_accepting = false;
        let Some(stream) = stream else {
            cursor.has_more = false;
            return;
        };
        let expected = class.stream(cursor.accepted);
        cursor.accepted += 1;
        if stream != expected {
            return self.fail(expected, stream);
        }
        self.actions.push_back(Action::Open(class));
    }

    /// What came of [`Action::Open`]; `None`: the peer allows no more streams for now.
    pub fn handle_opened(&mut self, class: Class, stream: Option<u64>) {
        let cursor = self.cursor(class);
        let Some(stream) = stream else {
            cursor.is_refused = true;
            return;
        };
        let expected = class.stream(cursor.opened);
        cursor.opened += 1;
        cursor.open += 1;
        if stream != expected {
            return self.fail(expected, stream);
        }
        let ways = End::ALL.map(|from| {
            let way = Way { is_empty: from != class.opener, ..Way::default() };
            if class.sends(from) { way } else { Way::none() }
        });
        self.streams.insert(stream, Stream { ways });
        self.enqueue(class.opener, stream);
        if let Some(code) = self.early_stops.remove(&stream) {
            self.handle_stopped(class.opener, stream, code);
        }
        self.accept_more(class);
    }

    /// There is something to read of a stream.
    pub fn handle_readable(&mut self, at: End, stream: u64) {
        if let Some(way) = self.way(at, stream) {
            way.is_empty = false;
            self.enqueue(at, stream);
        }
    }

    /// A stream takes more.
    pub fn handle_writable(&mut self, at: End, stream: u64) {
        if let Some(way) = self.way(at.other(), stream) {
            way.is_full = false;
            self.enqueue(at.other(), stream);
        }
    }

    /// The peer of this end has all of a stream, its end included.
    pub fn handle_delivered(&mut self, at: End, stream: u64) {
        self.end_way(at.other(), stream);
    }

    /// The peer of this end wants no more of a stream.
    pub fn handle_stopped(&mut self, at: End, stream: u64, code: u64) {
        if !self.streams.contains_key(&stream) {
            let class = Class::of(stream);
            let known = self.cursor(class).opened;
            let is_early = class.opener == at && !class.one_way && stream >> 2 >= known;
            // As many as the peer may open; it has no more.
            if is_early && self.early_stops.len() < self.limits.streams {
                self.early_stops.insert(stream, code);
            }
            return;
        }
        self.break_off(at.other(), stream, code, true);
    }

    /// What came of [`Action::Move`].
    pub fn handle_moved(&mut self, from: End, stream: u64, moved: Moved) {
        let Some(way) = self.way(from, stream) else { return };
        let before_bytes = std::mem::replace(&mut way.held_bytes, moved.held_bytes);
        way.has_written |= moved.taken_bytes > 0;
        way.is_full = moved.sink == Sink::Full;
        match moved.source {
            Source::Empty => way.is_empty = true,
            Source::Finished => way.stage = Stage::Draining,
            Source::More | Source::Reset(_) | Source::Gone => {}
        }
        let is_done = way.stage == Stage::Draining && way.held_bytes == 0;
        self.record_held(from, before_bytes, moved.held_bytes);
        match (moved.source, moved.sink) {
            (Source::Reset(code), _) => self.break_off(from, stream, code, false),
            (_, Sink::Stopped(code)) => self.break_off(from, stream, code, true),
            (_, Sink::Gone) => self.end_way(from, stream),
            _ if is_done => {
                if let Some(way) = self.way(from, stream) {
                    way.stage = Stage::Finished;
                }
                self.actions.push_back(Action::Finish(from.other(), stream));
                self.settle(from.other());
            }
            (Source::Gone, _) if moved.held_bytes == 0 => {
                let is_unconfirmed = self.has_written(from, stream);
                self.end(from.other()).is_unconfirmed |= is_unconfirmed;
                self.end_way(from, stream);
            }
            _ => self.enqueue(from, stream),
        }
    }

    /// A connection has ended. What was received before is still handed over, as far as the other end takes
    /// it in time; then the other connection is closed.
    pub fn handle_ended(&mut self, at: End, now_ns: u64, ended: &Ended) {
        if std::mem::replace(&mut self.end(at).is_over, true) {
            return;
        }
        let other = at.other();
        if self.end(other).is_over {
            return;
        }
        self.end(other).closing.get_or_insert_with(|| ended.carried());
        self.linger_until_ns = Some(now_ns.saturating_add(LINGER_NS));
        // Nobody is left to take what comes from the other end; what can be read of this one is.
        let mut streams: Vec<u64> = self.streams.keys().copied().collect();
        streams.sort_unstable();
        for stream in streams {
            self.end_way(other, stream);
            if let Some(way) = self.way(at, stream) {
                way.is_empty = false;
                self.enqueue(at, stream);
            }
        }
        self.settle(other);
    }

    /// Has both connections close, with this.
    pub fn close(&mut self, close: &Close) {
        for end in End::ALL {
            if !std::mem::replace(&mut self.end(end).is_over, true) {
                self.actions.push_back(Action::Close(end, close.clone()));
            }
        }
    }

    /// The peer of this end has what was written.
    pub fn handle_flushed(&mut self, end: End) {
        let state = self.end(end);
        state.is_unconfirmed = false;
        state.is_flushing = false;
        for stream in self.streams.values_mut() {
            if let Some(way) = stream.ways.get_mut(end.other().index())
                && !way.is_unread()
            {
                *way = Way::none();
            }
        }
        self.settle(end);
    }

    /// When to call [`Relay::handle_timeout`].
    pub fn next_time(&self) -> Option<u64> {
        self.linger_until_ns
    }

    /// Time has passed. Too early a call does nothing.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.linger_until_ns.is_none_or(|until_ns| now_ns < until_ns) {
            return;
        }
        self.linger_until_ns = None;
        for end in End::ALL {
            let state = self.end(end);
            if let Some(close) = state.closing.take().filter(|_| !state.is_over) {
                state.is_over = true;
                self.actions.push_back(Action::Close(end, close));
            }
        }
    }

    /// Whether both connections have ended, or were told to.
    pub fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.is_over) && self.actions.is_empty()
    }

    /// Bytes that were read at this end and not taken by the other.
    pub fn held_bytes(&self, from: End) -> usize {
        self.held_bytes.get(from.index()).copied().unwrap_or(0)
    }

    /// Streams that are open.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    fn end(&mut self, end: End) -> &mut EndState {
        let [client, target] = &mut self.ends;
        match end {
            End::Client => client,
            End::Target => target,
        }
    }

    fn cursor(&mut self, class: Class) -> &mut Cursor {
        let [a, b, c, d] = &mut self.cursors;
        match class.index() {
            0 => a,
            1 => b,
            2 => c,
            _ => d,
        }
    }

    fn way(&mut self, from: End, stream: u64) -> Option<&mut Way> {
        self.streams.get_mut(&stream)?.ways.get_mut(from.index())
    }

    fn has_written(&mut self, from: End, stream: u64) -> bool {
        self.way(from, stream).is_some_and(|way| way.has_written)
    }

    /// Takes further streams of a class, as long as there is room for one and none waits to be opened.
    fn accept_more(&mut self, class: Class) {
        let most = self.limits.streams;
        let cursor = self.cursor(class);
        cursor.has_more = true;
        let is_free = cursor.accepted == cursor.opened && !cursor.is_accepting;
        if is_free && cursor.open < most {
            cursor.is_accepting = true;
            self.actions.push_back(Action::Accept(class));
        }
    }

    fn enqueue(&mut self, from: End, stream: u64) {
        let Some(way) = self.way(from, stream) else { return };
        if way.can_move() && !std::mem::replace(&mut way.is_queued, true) {
            self.queue.push_back((from, stream));
        }
    }

    fn record_held(&mut self, from: End, before_bytes: usize, now_bytes: usize) {
        if let Some(budget) = self.budgets.get_mut(from.index()) {
            budget.record_change(before_bytes, now_bytes);
        }
        if let Some(held_bytes) = self.held_bytes.get_mut(from.index()) {
            *held_bytes = (*held_bytes + now_bytes).saturating_sub(before_bytes);
        }
    }

    /// One direction breaks off: the peer that sends has reset the stream, or the one that receives has
    /// stopped it. A peer that stops a stream is told that it was given up, with the same code (RFC 9000,
    /// section 3.5).
    fn break_off(&mut self, from: End, stream: u64, code: u64, is_stopped: bool) {
        let Some(way) = self.way(from, stream).filter(|way| way.stage != Stage::Over) else {
            return;
        };
        let is_unread = way.stage == Stage::Flowing;
        self.actions.push_back(Action::Reset(from.other(), stream, code));
        if is_stopped && is_unread {
            self.actions.push_back(Action::Stop(from, stream, code));
        }
        self.end_way(from, stream);
    }

    /// Nothing more comes of one direction.
    fn end_way(&mut self, from: End, stream: u64) {
        let Some(way) = self.way(from, stream) else { return };
        let before = std::mem::replace(way, Way::none());
        if before.stage == Stage::Over {
            return;
        }
        if before.held_bytes > 0 {
            self.record_held(from, before.held_bytes, 0);
            self.actions.push_back(Action::Drop(from, stream));
        }
        let is_over = |stream: &Stream| stream.ways.iter().all(|way| way.stage == Stage::Over);
        if self.streams.get(&stream).is_some_and(is_over) {
            self.streams.remove(&stream);
            let class = Class::of(stream);
            let cursor = self.cursor(class);
            cursor.open = cursor.open.saturating_sub(1);
            if cursor.has_more {
                self.accept_more(class);
            }
        }
        self.settle(from.other());
    }

    /// Closes a connection whose other one has ended, when nothing is left to be handed over.
    fn settle(&mut self, end: End) {
        let state = self.end(end);
        if state.closing.is_none() || state.is_over || state.is_flushing {
            return;
        }
        // A close during the handshake could have no code of ours. One that never stands is closed late.
        let (is_established, is_unconfirmed) = (state.is_established, state.is_unconfirmed);
        if !is_established && end == End::Client {
            return;
        }
        let ways = || self.streams.values().filter_map(|one| one.ways.get(end.other().index()));
        if is_established && ways().any(Way::is_unread) {
            return;
        }
        if is_established && (is_unconfirmed || ways().any(Way::is_undelivered)) {
            self.end(end).is_flushing = true;
            return self.actions.push_back(Action::Flush(end));
        }
        let state = self.end(end);
        state.is_over = true;
        if let Some(close) = state.closing.take() {
            self.actions.push_back(Action::Close(end, close));
        }
    }

    /// The ids of the two ends don't run alike: nothing can be carried any more.
    fn fail(&mut self, expected: u64, stream: u64) {
        let text = format!("stream {stream} came where stream {expected} was next");
        self.close(&Close::transport(Code::InternalError, &text));
    }
}
