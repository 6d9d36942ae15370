//! The streams of one connection, and which of them wait for room to send.

use std::collections::{HashMap, VecDeque};

use crate::transport::multiplexer::Link;

/// The length of a piece lent to QUIC. To make a packet of a stream, quinn-proto searches the unacknowledged pieces from
/// the first on: few long pieces cost less than many short ones.
pub(super) const LENT_BYTES: usize = 512 << 10;

/// Places in line that streams may have left which have gone, beside one for each that there is.
const MOST_LEFT: usize = 64;

/// Streams by their number.
pub(super) struct Streams<T> {
    all: HashMap<u64, Kept<T>>,
    /// In line for room; over QUIC streams that there was none for are named when there is, and nobody
    /// calls the line.
    waiting: VecDeque<u64>,
}

struct Kept<T> {
    stream: T,
    waits: bool,
}

impl<T> Default for Streams<T> {
    fn default() -> Self {
        Self { all: HashMap::new(), waiting: VecDeque::new() }
    }
}

impl<T> Streams<T> {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn insert(&mut self, number: u64, stream: T) {
        self.all.insert(number, Kept { stream, waits: false });
    }

    pub(super) fn stream(&mut self, number: u64) -> Option<&mut T> {
        self.all.get_mut(&number).map(|kept| &mut kept.stream)
    }

    /// All streams with their numbers.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.all.iter_mut().map(|(number, kept)| (*number, &mut kept.stream))
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        self.all.remove(&number).map(|kept| kept.stream)
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, T)> + '_ {
        self.waiting.clear();
        self.all.drain().map(|(number, kept)| (number, kept.stream))
    }

    /// A stream gets in line for room, once.
    pub(super) fn wait(&mut self, number: u64) {
        if self.begins_to_wait(number) {
            self.waiting.push_back(number);
        }
    }

    /// A stream found no room and stays first in line.
    pub(super) fn wait_first(&mut self, number: u64) {
        if self.begins_to_wait(number) {
            self.waiting.push_front(number);
        }
    }

    fn begins_to_wait(&mut self, number: u64) -> bool {
        if self.waiting.len() > 2 * self.all.len() + MOST_LEFT {
            let all = &self.all;
            self.waiting.retain(|number| all.contains_key(number));
        }
        let kept = self.all.get_mut(&number);
        kept.is_some_and(|kept| !std::mem::replace(&mut kept.waits, true))
    }

    /// The first in line; streams that have gone meanwhile are passed over.
    pub(super) fn next_waiting(&mut self) -> Option<u64> {
        loop {
            let number = self.waiting.pop_front()?;
            if let Some(kept) = self.all.get_mut(&number) {
                kept.waits = false;
                return Some(number);
            }
        }
    }
}

/// What came of a try to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Push {
    /// There is nothing more to send.
    Done,
    /// Something was sent, and there is more.
    More,
    /// There is no room.
    Full,
}

impl Push {
    /// Of a block of this length, of which so much was taken, and which may be the last.
    pub(super) fn of(taken: usize, length: usize, finishes: bool) -> Self {
        match (taken == length, finishes) {
            (true, true) => Self::Done,
            (true, false) => Self::More,
            (false, _) => Self::Full,
        }
    }
}

/// Sends blocks of streams, as far as there is room, and keeps a line of those that there was none for.
pub(super) trait Sender {
    /// What is kept of a stream.
    type Stream;

    /// The streams of a connection that is known.
    fn streams(&mut self, link: Link) -> Option<&mut Streams<Self::Stream>>;

    /// Sends a block of a stream, or what is left of one.
    fn send_block(&mut self, link: Link, stream: u64) -> Push;

    /// Sends what a stream has; it waits when there is no room for all.
    fn send_all(&mut self, link: Link, stream: u64) {
        loop {
            match self.send_block(link, stream) {
                Push::More => {}
                Push::Done => return,
                Push::Full => {
                    if let Some(streams) = self.streams(link) {
                        streams.wait(stream);
                    }
                    return;
                }
            }
        }
    }

    /// Lets those that wait send, a block each in turn.
    fn send_waiting(&mut self, link: Link) {
        loop {
            let waiting = self.streams(link).and_then(Streams::next_waiting);
            let Some(stream) = waiting else { return };
            let push = self.send_block(link, stream);
            let Some(streams) = self.streams(link) else { return };
            match push {
                Push::Done => {}
                Push::More => streams.wait(stream),
                Push::Full => return streams.wait_first(stream),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_is_in_line_once_and_those_that_went_are_passed_over() {
        let mut streams = Streams::default();
        for number in 0..4 {
            streams.insert(number, ());
            streams.wait(number);
            streams.wait(number);
        }
        streams.remove(1);
        assert_eq!(streams.next_waiting(), Some(0));
        assert_eq!(streams.next_waiting(), Some(2));
        streams.wait_first(2);
        let rest: Vec<u64> = std::iter::from_fn(|| streams.next_waiting()).collect();
        assert_eq!(rest, [2, 3]);
        streams.wait(9);
        assert_eq!(streams.next_waiting(), None);
    }

    #[test]
    fn a_line_that_nobody_calls_stays_short() {
        let mut streams = Streams::default();
        for number in 0..100_000 {
            streams.insert(number, ());
            streams.wait(number);
            streams.remove(number);
            assert!(streams.waiting.len() <= MOST_LEFT + 3, "{number}");
        }
    }
}
