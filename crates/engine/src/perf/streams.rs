//! The streams of one connection, and which of them wait for room to send.

use std::collections::{HashMap, VecDeque};

/// Streams by their number.
pub(super) struct Streams<T> {
    all: HashMap<u64, T>,
    waiting: VecDeque<u64>,
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
        self.all.insert(number, stream);
    }

    pub(super) fn stream(&mut self, number: u64) -> Option<&mut T> {
        self.all.get_mut(&number)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        self.all.remove(&number)
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, T)> + '_ {
        self.waiting.clear();
        self.all.drain()
    }

    /// A stream gets in line for room, once.
    pub(super) fn wait(&mut self, number: u64) {
        if !self.waiting.contains(&number) {
            self.waiting.push_back(number);
        }
    }

    /// A stream found no room and stays first in line.
    pub(super) fn wait_first(&mut self, number: u64) {
        self.waiting.push_front(number);
    }

    /// The first in line; streams that have gone meanwhile are passed over.
    pub(super) fn next_waiting(&mut self) -> Option<u64> {
        loop {
            let number = self.waiting.pop_front()?;
            if self.all.contains_key(&number) {
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
