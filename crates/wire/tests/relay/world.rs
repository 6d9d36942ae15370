//! Two peers, the connections that a proxy has with them, and the driver of its relay.

use std::collections::{BTreeMap, VecDeque};

use linerate_wire::relay::{Action, Class, Close, End, Ended, Limits, Moved, Relay, Sink, Source};

/// What a stream's receiver is allowed to have unread.
pub(crate) const WINDOW_BYTES: usize = 3_000;

/// One direction of a stream on one connection.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// On its way or unread.
    pub(crate) waiting: VecDeque<u8>,
    /// All that was written.
    pub(crate) written: Vec<u8>,
    /// All that was read.
    pub(crate) read: Vec<u8>,
    pub(crate) is_finished: bool,
    /// Whether the end was read.
    pub(crate) is_end_read: bool,
    pub(crate) reset: Option<u64>,
    pub(crate) stopped: Option<u64>,
}

impl Pipe {
    fn room(&self) -> usize {
        WINDOW_BYTES - self.waiting.len()
    }

    fn is_open(&self) -> bool {
        !self.is_finished && self.reset.is_none()
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room());
        self.written.extend(&bytes[..taken]);
        self.waiting.extend(&bytes[..taken]);
        taken
    }

    fn take(&mut self, most: usize) -> Vec<u8> {
        let count = most.min(self.waiting.len());
        let bytes: Vec<u8> = self.waiting.drain(..count).collect();
        self.read.extend(&bytes);
        self.is_end_read |= self.is_finished && self.waiting.is_empty();
        bytes
    }
}

/// The connection with one peer.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// What the peer sends, by stream, and what it receives.
    pub(crate) from_peer: BTreeMap<u64, Pipe>,
    pub(crate) to_peer: BTreeMap<u64, Pipe>,
    /// Streams that the peer has opened, that the proxy has taken of them, and that it has opened itself;
    /// those with both directions, and those with one.
    pub(crate) peer_opened: [u64; 2],
    accepted: [u64; 2],
    pub(crate) opened: [u64; 2],
    /// Streams that the peer allows the proxy to open.
    pub(crate) allowed: [u64; 2],
    pub(crate) is_lost: bool,
    pub(crate) closes: Vec<Close>,
}

/// A proxy between two peers.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) relay: Relay,
    pub(crate) ends: [Connection; 2],
    waiting: BTreeMap<(usize, u64), Vec<u8>>,
    limits: Limits,
}

pub(crate) fn at(end: End) -> usize {
    usize::from(end == End::Target)
}

impl World {
    pub(crate) fn new(limits: Limits, allowed: u64) -> Self {
        let end = || Connection { allowed: [allowed; 2], ..Connection::default() };
        let mut relay = Relay::new(limits);
        relay.handle_established(End::Client);
        relay.handle_established(End::Target);
        Self { relay, ends: [end(), end()], waiting: BTreeMap::new(), limits }
    }

    /// A peer opens a stream, as far as it may have as many; its id.
    pub(crate) fn open(&mut self, end: End, one_way: bool) -> Option<u64> {
        let connection = &mut self.ends[at(end)];
        let opened = &mut connection.peer_opened[usize::from(one_way)];
        if *opened >= self.limits.streams as u64 || connection.is_lost {
            return None;
        }
        let stream = Class { opener: end, one_way }.stream(*opened);
        *opened += 1;
        connection.from_peer.entry(stream).or_default();
        if !one_way {
            connection.to_peer.entry(stream).or_default();
        }
        self.relay.handle_streams_opened(end, one_way);
        Some(stream)
    }

    /// A peer acts on one of its streams, chosen by a number.
    pub(crate) fn pick(&self, end: End, number: usize, sends: bool) -> Option<u64> {
        let connection = &self.ends[at(end)];
        let pipes = if sends { &connection.from_peer } else { &connection.to_peer };
        let open: Vec<u64> = pipes.keys().copied().collect();
        (!open.is_empty() && !connection.is_lost).then(|| open[number % open.len()])
    }

    pub(crate) fn send(&mut self, end: End, stream: u64, bytes: &[u8]) {
        let pipe = self.ends[at(end)].from_peer.get_mut(&stream).unwrap();
        if pipe.is_open() && pipe.stopped.is_none() {
            pipe.write(bytes);
            self.relay.handle_readable(end, stream);
        }
    }

    pub(crate) fn finish(&mut self, end: End, stream: u64) {
        let pipe = self.ends[at(end)].from_peer.get_mut(&stream).unwrap();
        if pipe.is_open() && pipe.stopped.is_none() {
            pipe.is_finished = true;
            self.relay.handle_readable(end, stream);
        }
    }

    pub(crate) fn reset(&mut self, end: End, stream: u64, code: u64) {
        let pipe = self.ends[at(end)].from_peer.get_mut(&stream).unwrap();
        if pipe.is_open() {
            pipe.reset = Some(code);
            pipe.waiting.clear();
            self.relay.handle_readable(end, stream);
        }
    }

    pub(crate) fn stop(&mut self, end: End, stream: u64, code: u64) {
        let pipe = self.ends[at(end)].to_peer.get_mut(&stream).unwrap();
        if pipe.stopped.is_none() && pipe.reset.is_none() && !pipe.is_end_read {
            pipe.stopped = Some(code);
            pipe.waiting.clear();
            self.relay.handle_stopped(end, stream, code);
        }
    }

    /// A peer reads so much, which lets more be sent, and confirms an end that it has read.
    pub(crate) fn take(&mut self, end: End, stream: u64, most: usize) {
        let pipe = self.ends[at(end)].to_peer.get_mut(&stream).unwrap();
        if pipe.stopped.is_some() || pipe.reset.is_some() {
            return;
        }
        pipe.take(most);
        if pipe.is_end_read {
            self.relay.handle_delivered(end, stream);
        } else {
            self.relay.handle_writable(end, stream);
        }
    }

    pub(crate) fn allow(&mut self, end: End, one_way: bool, more: u64) {
        self.ends[at(end)].allowed[usize::from(one_way)] += more;
        self.relay.handle_streams_available(end, one_way);
    }

    pub(crate) fn close(&mut self, end: End, now_ns: u64, close: &Close) {
        if !self.ends[at(end)].is_lost && self.ends[at(end)].closes.is_empty() {
            self.ends[at(end)].is_lost = true;
            self.relay.handle_ended(end, now_ns, &Ended::Closed(close.clone()));
        }
    }

    /// Does so many of the things that the relay wants done; whether there was as much to do.
    pub(crate) fn work(&mut self, steps: usize) -> bool {
        for _ in 0..steps {
            let Some(action) = self.relay.poll_action() else { return false };
            self.perform(action);
            self.check_bounds();
        }
        true
    }

    fn check_bounds(&self) {
        for end in End::ALL {
            let waiting = self.waiting.iter().filter(|((from, _), _)| *from == at(end));
            let waiting_bytes: usize = waiting.map(|(_, bytes)| bytes.len()).sum();
            // What is to be dropped is dropped before anything else is read.
            assert!(self.relay.held_bytes(end) <= waiting_bytes, "{end:?}");
            assert!(waiting_bytes <= self.limits.buffer_bytes, "{waiting_bytes}");
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Accept(class) => {
                let connection = &mut self.ends[at(class.opener)];
                let kind = usize::from(class.one_way);
                let next = connection.accepted[kind];
                let is_there = next < connection.peer_opened[kind];
                connection.accepted[kind] += u64::from(is_there);
                self.relay.handle_accepted(class, is_there.then(|| class.stream(next)));
            }
            Action::Open(class) => {
                let connection = &mut self.ends[at(class.opener.other())];
                let kind = usize::from(class.one_way);
                let next = connection.opened[kind];
                if next == connection.allowed[kind] || connection.is_lost {
                    return self.relay.handle_opened(class, None);
                }
                connection.opened[kind] += 1;
                let stream = class.stream(next);
                connection.to_peer.entry(stream).or_default();
                if !class.one_way {
                    connection.from_peer.entry(stream).or_default();
                }
                self.relay.handle_opened(class, Some(stream));
            }
            Action::Move { from, stream, piece_bytes, most_bytes } => {
                let moved = self.carry(from, stream, piece_bytes, most_bytes);
                self.relay.handle_moved(from, stream, moved);
            }
            Action::Finish(end, stream) => {
                let pipe = self.ends[at(end)].to_peer.get_mut(&stream).unwrap();
                assert!(pipe.is_open());
                pipe.is_finished = true;
            }
            Action::Reset(end, stream, code) => {
                let pipe = self.ends[at(end)].to_peer.get_mut(&stream).unwrap();
                assert_eq!(pipe.reset, None);
                pipe.reset = Some(code);
                pipe.waiting.clear();
            }
            Action::Stop(end, stream, code) => {
                let pipe = self.ends[at(end)].from_peer.get_mut(&stream).unwrap();
                assert_eq!(pipe.stopped, None);
                pipe.stopped = Some(code);
            }
            Action::Drop(from, stream) => {
                assert!(self.waiting.remove(&(at(from), stream)).is_some());
            }
            Action::Flush(end) => self.relay.handle_flushed(end),
            Action::Close(end, close) => self.ends[at(end)].closes.push(close),
        }
    }

    /// As the engine's driver does it: what waits first, then piece by piece.
    fn carry(&mut self, from: End, stream: u64, piece_bytes: usize, most_bytes: usize) -> Moved {
        let key = (at(from), stream);
        let (mut source, mut sink) = (Source::More, Sink::Open);
        let mut taken_bytes = 0;
        while taken_bytes < most_bytes && source == Source::More && sink == Sink::Open {
            let held = self.waiting.remove(&key);
            let bytes = match held {
                Some(held) => held,
                None => {
                    let (bytes, state) = self.read(from, stream, piece_bytes);
                    source = state;
                    bytes
                }
            };
            let (taken, state) = self.write(from.other(), stream, &bytes);
            (taken_bytes, sink) = (taken_bytes + taken, state);
            if taken < bytes.len() {
                self.waiting.insert(key, bytes[taken..].to_vec());
            }
        }
        let held_bytes = self.waiting.get(&key).map_or(0, Vec::len);
        Moved { held_bytes, taken_bytes, source, sink }
    }

    fn read(&mut self, from: End, stream: u64, most: usize) -> (Vec<u8>, Source) {
        let connection = &mut self.ends[at(from)];
        let pipe = connection.from_peer.get_mut(&stream).unwrap();
        if let Some(code) = pipe.reset {
            return (Vec::new(), Source::Reset(code));
        }
        if pipe.is_end_read || pipe.stopped.is_some() {
            return (Vec::new(), Source::Gone);
        }
        let bytes = pipe.take(most);
        let state = match (pipe.is_end_read, bytes.is_empty()) {
            (true, _) => Source::Finished,
            (false, false) => Source::More,
            (false, true) if connection.is_lost => Source::Gone,
            (false, true) => Source::Empty,
        };
        (bytes, state)
    }

    fn write(&mut self, to: End, stream: u64, bytes: &[u8]) -> (usize, Sink) {
        let connection = &mut self.ends[at(to)];
        let pipe = connection.to_peer.get_mut(&stream).unwrap();
        match pipe.stopped {
            _ if connection.is_lost => (0, Sink::Gone),
            Some(code) => (0, Sink::Stopped(code)),
            None => {
                let taken = pipe.write(bytes);
                (taken, if taken < bytes.len() { Sink::Full } else { Sink::Open })
            }
        }
    }

    /// Both peers read all that comes and allow all streams, until nothing happens any more.
    pub(crate) fn run_out(&mut self) {
        for _ in 0..10_000 {
            let before = self.progress();
            for end in End::ALL {
                for one_way in [false, true] {
                    if self.ends[at(end)].allowed[usize::from(one_way)] < 1_000 {
                        self.allow(end, one_way, 1_000);
                    }
                }
                for stream in self.ends[at(end)].to_peer.keys().copied().collect::<Vec<_>>() {
                    if !self.ends[at(end)].is_lost {
                        self.take(end, stream, usize::MAX);
                    }
                }
            }
            while self.work(1_000) {}
            if before == self.progress() {
                // Its driver forgets a pair that is over, and what waits of it.
                assert!(self.waiting.is_empty() || self.relay.is_over());
                return;
            }
        }
        panic!("it goes on and on");
    }

    /// Numbers of which one grows with whatever happens.
    fn progress(&self) -> [usize; 4] {
        let mut sums = [0; 4];
        for end in &self.ends {
            for pipe in end.from_peer.values().chain(end.to_peer.values()) {
                let ends = [pipe.is_finished, pipe.is_end_read];
                let codes = [pipe.reset, pipe.stopped];
                sums[0] += pipe.read.len() + pipe.written.len();
                sums[1] += ends.iter().filter(|is_there| **is_there).count();
                sums[2] += codes.iter().flatten().count();
            }
            sums[3] += (end.opened[0] + end.opened[1]) as usize + end.closes.len();
        }
        sums
    }

    /// What was sent on each direction of each stream is what came, as far as nobody broke it off; and
    /// whoever broke it off, the other one was told.
    pub(crate) fn check_streams(&self, is_whole: bool) {
        for end in End::ALL {
            let (from, to) = (&self.ends[at(end)], &self.ends[at(end.other())]);
            for (stream, sent) in &from.from_peer {
                let Some(came) = to.to_peer.get(stream) else {
                    assert!(!is_whole, "stream {stream} was not carried on");
                    continue;
                };
                let whole = sent.written.starts_with(&came.read);
                assert!(whole, "stream {stream} from {end:?}: other bytes came than were sent");
                if !is_whole {
                    continue;
                }
                match (sent.reset, came.stopped) {
                    (None, None) => {
                        assert_eq!(sent.written.len(), came.read.len(), "stream {stream}");
                        assert_eq!((sent.is_finished, came.reset), (came.is_finished, None));
                        assert_eq!(sent.stopped, None);
                    }
                    (Some(code), None) => {
                        assert_eq!((came.reset, came.is_finished), (Some(code), false));
                    }
                    (None, Some(code)) => {
                        let known = sent.stopped == Some(code) || sent.is_finished;
                        assert!(known, "stream {stream}: the stop was not told");
                        assert_eq!(came.reset, Some(code), "stream {stream}: not given up");
                    }
                    (Some(reset), Some(stopped)) => {
                        assert!(came.reset == Some(reset) || came.reset == Some(stopped));
                    }
                }
            }
        }
    }
}
