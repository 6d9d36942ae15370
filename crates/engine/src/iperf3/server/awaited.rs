//! The streams that a test waits for: how many, with which descriptors, and how long.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::iperf3::Failure;
use crate::iperf3::descriptors::Reserved;

/// How long a client may take for a stream, and for all of them but for what each adds.
pub(super) const STREAM_NS: u64 = 30 * SECOND_NS;
/// What each stream that has come adds at least.
pub(super) const EACH_NS: u64 = 10 * MILLISECOND_NS;
/// The longest time for all streams, however many, and the longest wait of a test for its turn to open them: the test
/// occupies a slot meanwhile.
pub(super) const MOST_NS: u64 = 300 * SECOND_NS;

/// How long a client may take for all its streams, where so many have come, each of which adds so much. Those that it
/// has only announced give it no time.
pub(super) fn opening_limit_ns(opened: usize, each_ns: u64) -> u64 {
    let added_ns = each_ns.saturating_mul(opened as u64);
    STREAM_NS.saturating_add(added_ns).min(MOST_NS)
}

/// The streams of one test. The accepting thread counts them and reserves a descriptor for each before it
/// comes. So there are never more streams than reserved descriptors, however late the test's thread is.
#[derive(Debug)]
pub(super) struct Awaited(Mutex<Streams>);

#[derive(Debug)]
struct Streams {
    opened: usize,
    total: usize,
    reserved: Reserved,
}

impl Awaited {
    /// So many, whose descriptors these are.
    pub(super) fn new(total: usize, reserved: Reserved) -> Self {
        Self(Mutex::new(Streams { opened: 0, total, reserved }))
    }

    /// Counts one in; whether the test waits for it.
    ///
    /// # Errors
    ///
    /// When there are no descriptors for more. Then the test waits for none.
    pub(super) fn count_in(&self) -> Result<bool, Failure> {
        let mut streams = self.streams();
        let opened = streams.opened;
        if opened == streams.total {
            return Ok(false);
        }
        if let Err(failure) = streams.reserved.await_more(opened) {
            streams.total = opened;
            return Err(failure);
        }
        streams.opened = opened + 1;
        Ok(true)
    }

    /// Whether no more is waited for.
    pub(super) fn is_complete(&self) -> bool {
        let streams = self.streams();
        streams.opened == streams.total
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use linerate_wire::iperf3::{Code, Parameters};

    use super::*;
    use crate::iperf3::descriptors::Pool;

    fn streams(parallel: u32) -> Parameters {
        Parameters { parallel, ..Parameters::default() }
    }

    #[test]
    fn as_many_are_let_in_as_were_announced() {
        static POOL: Pool = Pool::new(|| 2000);
        let awaited = Awaited::new(3, Reserved::from_pool(&POOL, &streams(3), false).unwrap());
        for _ in 0..3 {
            assert!(!awaited.is_complete());
            assert!(awaited.count_in().unwrap());
        }
        assert!(awaited.is_complete());
        assert!(!awaited.count_in().unwrap());
    }

    #[test]
    fn none_is_let_in_without_a_descriptor_set_aside() {
        static POOL: Pool = Pool::new(|| 30_600);
        let asked = streams(25_000);
        let first = Awaited::new(25_000, Reserved::from_pool(&POOL, &asked, false).unwrap());
        // 10,000 each, and 10,000 for the first test that needs more.
        let second = Awaited::new(25_000, Reserved::from_pool(&POOL, &asked, false).unwrap());
        for _ in 0..15_000 {
            assert!(first.count_in().unwrap());
        }
        for _ in 0..5_000 {
            assert!(second.count_in().unwrap());
        }
        assert_eq!(second.count_in().unwrap_err().code, Code::NUM_STREAMS);
        assert!(second.is_complete() && !second.count_in().unwrap());
        drop(second);
        for _ in 0..10_000 {
            assert!(first.count_in().unwrap());
        }
        assert!(first.is_complete());
    }

    #[test]
    fn streams_that_came_give_time_for_more_up_to_five_minutes() {
        assert_eq!(opening_limit_ns(0, EACH_NS), 30 * SECOND_NS);
        assert_eq!(opening_limit_ns(1, EACH_NS), STREAM_NS + 10 * MILLISECOND_NS);
        assert_eq!(opening_limit_ns(10_000, EACH_NS), 130 * SECOND_NS);
        assert_eq!(opening_limit_ns(27_000, EACH_NS), 300 * SECOND_NS);
        assert_eq!(opening_limit_ns(usize::MAX, EACH_NS), 300 * SECOND_NS);
        assert_eq!(opening_limit_ns(100, SECOND_NS), 130 * SECOND_NS);
    }
}
