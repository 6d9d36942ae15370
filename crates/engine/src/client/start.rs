//! A load whose start is named while everything else stands.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

use linerate_system::socket::RealTime;

use crate::clock::MILLISECOND_NS;
use crate::error::Error;
use crate::waker::Waker;

/// Threads are in the real-time class for so long before a start.
const REAL_TIME_NS: u64 = 50 * MILLISECOND_NS;

/// A start that is named later, once for all: the client sets its flows up, tells [`Event::Armed`], and waits.
///
/// [`Event::Armed`]: crate::event::Event::Armed
#[derive(Clone, Debug)]
pub struct LaterStart {
    named: Arc<OnceLock<Result<i64, String>>>,
    waker: Arc<Waker>,
}

impl LaterStart {
    /// A start that nobody has named yet.
    ///
    /// # Errors
    /// This process has no descriptors left.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { named: Arc::default(), waker: Arc::new(Waker::new()?) })
    }

    /// Names the start: nanoseconds since 1970, UTC. One that has passed is a start at once. What is named first
    /// counts.
    pub fn name(&self, utc_ns: i64) {
        self.say(Ok(utc_ns));
    }

    /// Says that no start will be named, and why. The measurement fails.
    pub fn fail(&self, why: String) {
        self.say(Err(why));
    }

    /// What was named.
    pub(super) fn named(&self) -> Option<&Result<i64, String>> {
        self.waker.silence();
        self.named.get()
    }

    fn say(&self, said: Result<i64, String>) {
        // What was said first counts.
        let _first = self.named.set(said);
        self.waker.wake();
    }
}

/// Readable when the start was named.
impl AsFd for LaterStart {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// When a load starts, as far as that is known.
#[derive(Debug, Default)]
pub(super) struct Start<'a> {
    /// Names the start when all flows stand.
    pub(super) later: Option<&'a LaterStart>,
    /// When the load is to start (UTC), where that was named.
    pub(super) at_utc_ns: Option<i64>,
    /// When this end's load opens (monotonic), once the server has started.
    pub(super) opens_at_ns: Option<u64>,
    pub(super) punctual: Punctual,
}

/// The real-time class around a named start: taken shortly before it, given back when the load is open.
#[derive(Debug, Default)]
pub(super) struct Punctual {
    taken: Option<RealTime>,
    was_tried: bool,
}

impl Punctual {
    /// When the class is to be taken for a start at this time, on the monotonic clock; none where it was tried.
    pub(super) fn due_ns(&self, opens_at_ns: u64) -> Option<u64> {
        (!self.was_tried).then(|| opens_at_ns.saturating_sub(REAL_TIME_NS))
    }

    /// Takes the class when it is due.
    ///
    /// # Errors
    /// It was refused: a note for the result.
    pub(super) fn handle_time(&mut self, now_ns: u64, opens_at_ns: u64) -> Result<(), String> {
        if self.due_ns(opens_at_ns).is_none_or(|due_ns| now_ns < due_ns) {
            return Ok(());
        }
        self.was_tried = true;
        let taken = RealTime::take();
        self.taken = Some(taken.map_err(|error: io::Error| {
            format!(
                "the threads could not take the real-time class before the start ({error}): on a busy machine \
                 the load may have begun some milliseconds late"
            )
        })?);
        Ok(())
    }

    /// Gives the class back.
    pub(super) fn end(&mut self) {
        self.taken = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_first_counts() {
        let start = LaterStart::new().unwrap();
        assert_eq!(start.named(), None);
        start.name(5);
        start.fail("too late".to_owned());
        assert_eq!(start.named(), Some(&Ok(5)));
    }

    #[test]
    fn the_class_is_tried_once_within_50_ms_of_the_start() {
        let mut punctual = Punctual::default();
        let start_ns = 1_000 * MILLISECOND_NS;
        assert_eq!(punctual.due_ns(start_ns), Some(950 * MILLISECOND_NS));
        punctual.handle_time(949 * MILLISECOND_NS, start_ns).unwrap();
        assert!(punctual.taken.is_none());
        let is_refused = punctual.handle_time(950 * MILLISECOND_NS, start_ns).is_err();
        assert_ne!(punctual.taken.is_some(), is_refused);
        assert_eq!(punctual.due_ns(start_ns), None);
        punctual.end();
        assert!(punctual.taken.is_none());
    }
}
