//! What the waits of the calling thread came to.

use std::cell::Cell;

use linerate_measure::report::Waiting;

thread_local! {
    static LOOKS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    static RESTS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    static YIELDS: Cell<u64> = const { Cell::new(0) };
}

/// A poll of so long has ended, in vain or not.
#[inline]
pub(crate) fn record_look(ns: u64) {
    LOOKS.with(|looks| looks.set((looks.get().0 + 1, looks.get().1 + ns)));
}

/// A rest of so long has ended.
#[inline]
pub(super) fn record_rest(ns: u64) {
    RESTS.with(|rests| rests.set((rests.get().0 + 1, rests.get().1 + ns)));
}

/// The thread has yielded its processor.
#[inline]
pub(crate) fn record_yield() {
    YIELDS.with(|yields| yields.set(yields.get() + 1));
}

/// What the calling thread has counted so far, without its sleeps, which the kernel counts.
pub(crate) fn counts() -> Waiting {
    let ((looks, looked_ns), (rests, rested_ns)) = (LOOKS.get(), RESTS.get());
    Waiting { looks, looked_ns, rests, rested_ns, yields: YIELDS.get(), ..Waiting::default() }
}
