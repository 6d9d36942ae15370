//! Room for the figures that documents keep until their tests end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Figures of streams that the documents of a server's tests may have at a time, one for each stream and interval:
/// some 70 MB. Days of a test have many, and many streams; a client must not fill its server's memory.
const MOST_FIGURES: usize = 500_000;

/// What is left of them. All tests of a server take from one.
#[derive(Clone, Debug)]
pub struct Stock {
    left: Arc<AtomicUsize>,
}

impl Default for Stock {
    fn default() -> Self {
        Self::of(MOST_FIGURES)
    }
}

impl Stock {
    /// With room for so many figures.
    pub fn of(figures: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(figures)) }
    }

    /// Takes so many for a test that holds so many already. Whether there were: a test never holds more than it leaves to
    /// the others.
    pub(super) fn take(&self, held: usize, count: usize) -> bool {
        let after = |left: usize| left.checked_sub(count).filter(|after| held + count <= *after);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).is_ok()
    }

    /// Gives back what a test held.
    pub(super) fn give_back(&self, held: usize) {
        self.left.fetch_add(held, Ordering::Relaxed);
    }
}

#[test]
fn a_test_takes_half_of_what_is_left_and_gives_it_back() {
    let stock = Stock::of(100);
    let others = stock.clone();
    assert!(stock.take(0, 49) && stock.take(49, 1));
    assert!(!stock.take(50, 1));
    assert!(others.take(0, 25) && !others.take(25, 1) && !others.take(0, 26));
    stock.give_back(50);
    assert!(others.take(25, 25) && !others.take(50, 1));
}
