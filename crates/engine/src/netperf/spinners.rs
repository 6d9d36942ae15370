//! How many of a server's tests may spin at once: clients may start any number of tests.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// Counts the tests that spin.
#[derive(Debug)]
pub(super) struct Spinners {
    spinning: AtomicUsize,
    most: usize,
}

impl Spinners {
    /// For as many as leave the sessions and all other tests one of this process's processors, and for
    /// one in any case.
    pub(super) fn of_this_process() -> Self {
        let cpus = available_parallelism().map_or(1, NonZero::get);
        Self { spinning: AtomicUsize::new(0), most: cpus.saturating_sub(1).max(1) }
    }

    /// Leave to spin, until it is dropped; `None`: enough others do.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Spinner> {
        let spinner = Spinner(Arc::clone(self));
        (self.spinning.fetch_add(1, Ordering::Relaxed) < self.most).then_some(spinner)
    }
}

/// Leave to spin.
#[derive(Debug)]
pub(super) struct Spinner(Arc<Spinners>);

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.spinning.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_spinner_frees_its_place_and_refused_one_takes_none() {
        let spinners = Arc::new(Spinners { spinning: AtomicUsize::new(0), most: 2 });
        let first = spinners.admit().unwrap();
        let _second = spinners.admit().unwrap();
        for _ in 0..3 {
            assert!(spinners.admit().is_none());
        }
        drop(first);
        let _third = spinners.admit().unwrap();
        assert!(spinners.admit().is_none());
    }
}
