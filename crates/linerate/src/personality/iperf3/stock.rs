//! Room for the figures that documents keep until their tests end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Figures of streams, one for each stream and interval: some 130 MB. So many are shared out evenly to the tests that a server
/// has at once, and so many more they share. Days of a test have many, and many streams; a client must neither fill
/// its server's memory nor leave the others without figures.
const MOST_FIGURES: usize = 500_000;

/// The room of each test, and what is left of the room that all tests of a server share.
#[derive(Clone, Debug)]
pub struct Stock {
    own: usize,
    left: Arc<AtomicUsize>,
}

impl Stock {
    /// For so many tests at once.
    pub fn for_tests(tests: usize) -> Self {
        Self::of(MOST_FIGURES / tests.max(1), MOST_FIGURES)
    }

    /// With room for so many figures of each test, and for so many that they share.
    pub fn of(own: usize, shared: usize) -> Self {
        Self { own, left: Arc::new(AtomicUsize::new(shared)) }
    }

    /// Takes so many for a test that holds so many already. Whether there were: of what is shared, a test never holds more
    /// than it leaves to the others.
    pub(super) fn take(&self, held: usize, count: usize) -> bool {
        let wanted = self.shared(held + count);
        let more = wanted - self.shared(held);
        let after = |left: usize| left.checked_sub(more).filter(|after| wanted <= *after);
        more == 0 || self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).is_ok()
    }

    /// Gives back what a test held.
    pub(super) fn give_back(&self, held: usize) {
        self.left.fetch_add(self.shared(held), Ordering::Relaxed);
    }

    /// How many of a test's figures are of what is shared.
    fn shared(&self, held: usize) -> usize {
        held.saturating_sub(self.own)
    }
}

#[test]
fn a_test_takes_half_of_what_is_left_and_gives_it_back() {
    let stock = Stock::of(0, 100);
    let others = stock.clone();
    assert!(stock.take(0, 49) && stock.take(49, 1));
    assert!(!stock.take(50, 1));
    assert!(others.take(0, 25) && !others.take(25, 1) && !others.take(0, 26));
    stock.give_back(50);
    assert!(others.take(25, 25) && !others.take(50, 1));
}

#[test]
fn a_test_has_its_own_room_whatever_the_others_took() {
    let stock = Stock::of(10, 100);
    // All that is shared but for a rest, by others.
    for half in [50, 25, 12, 6, 3, 2, 1] {
        assert!(stock.take(0, 10 + half), "{half}");
    }
    assert!(stock.take(0, 6) && stock.take(6, 4) && !stock.take(10, 1));
    stock.give_back(10);
    assert!(!stock.take(10, 1));
    stock.give_back(60);
    assert!(stock.take(8, 27) && !stock.take(35, 1));
    let one = Stock::for_tests(1);
    assert!(one.take(0, MOST_FIGURES + MOST_FIGURES / 2) && !one.take(MOST_FIGURES * 3 / 2, 1));
}
