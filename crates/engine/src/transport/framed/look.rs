//! Whether a thread asks its poll set again before it sleeps.

use std::os::fd::AsFd;
use std::time::Duration;

use crate::clock::monotonic_ns;
use crate::waiting::{Awaited, Backoff, Look as SharedLook, Peer, readiness};

/// How long to try again when something has just come. Else a receiver that is faster than its sender is put
/// to sleep and woken for each segment, and it is the sender's processor that wakes it.
const LONGEST: Duration = Awaited::Frames.look();

/// One that asks again for as long as the user says, and for a moment after something has come: after much
/// in any case, letting others have its processor meanwhile; after little where it came from another processor,
/// ever more seldom where that is in vain.
pub(super) struct Look {
    /// How long to try again in any case, ns.
    busy_ns: u64,
    /// Whether a turn since the last wait brought much.
    bulky: bool,
    /// So long more is expected after that. The little that comes first doesn't end it.
    bulky_until_ns: u64,
    /// Of a thread whose last look wasn't in vain: others don't count among those that look.
    shared: Option<SharedLook>,
    backoff: Backoff,
}

/// Times of a wait that doesn't sleep at once.
pub(super) struct Spin {
    /// Until when it tries again.
    pub(super) until_ns: u64,
    /// When it is over.
    pub(super) due_ns: u64,
}

impl Look {
    pub(super) fn new(busy: Duration) -> Self {
        Self {
            busy_ns: u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX),
            bulky: false,
            bulky_until_ns: 0,
            shared: None,
            backoff: Backoff::new(Awaited::Frames),
        }
    }

    /// A turn has brought something; whether it was much.
    #[inline]
    pub(super) fn record(&mut self, is_much: bool) {
        self.bulky |= is_much;
    }

    /// How long it tries again after much, or as the user says; `None`: not at all.
    pub(super) fn spin(&mut self, at_most: Duration) -> Option<Spin> {
        let bulky = std::mem::take(&mut self.bulky);
        if !bulky && self.bulky_until_ns == 0 && self.busy_ns == 0 {
            return None;
        }
        self.shared = None;
        let now_ns = monotonic_ns();
        if bulky {
            self.bulky_until_ns = now_ns.saturating_add(LONGEST.as_nanos() as u64);
        } else if self.bulky_until_ns <= now_ns {
            self.bulky_until_ns = 0;
        }
        let due_ns = now_ns.saturating_add(at_most.as_nanos() as u64);
        let until_ns = now_ns.saturating_add(self.busy_ns).max(self.bulky_until_ns).min(due_ns);
        Some(Spin { until_ns, due_ns })
    }

    /// Whether others on this processor go first between two questions: the sender may have no other.
    #[inline]
    pub(super) fn yields(&self, now_ns: u64) -> bool {
        now_ns < self.bulky_until_ns
    }

    /// After little: asks the poll set until something has come, or it is time to sleep. `peer`: where
    /// what came last came from; `None` of a thread that has nothing to receive from.
    pub(super) fn look(
        &mut self,
        poll: &impl AsFd,
        at_most: Duration,
        peer: Option<impl Fn() -> Peer>,
    ) {
        let Some(peer) = peer.filter(|_| at_most > LONGEST && !self.backoff.passes()) else {
            self.shared = None;
            return;
        };
        let shared = self.shared.get_or_insert_with(SharedLook::new);
        if shared.wait(&mut self.backoff, peer, || readiness(poll)).is_none() {
            self.shared = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::UdpSocket;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Waits for nothing; whether it cared for where things come from.
    fn asks_in_vain(look: &mut Look, at_most: Duration) -> bool {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let cared = Cell::new(false);
        let peer = || {
            cared.set(true);
            Peer::Elsewhere
        };
        look.look(&silent, at_most, Some(peer));
        cared.get()
    }

    // Whether the first look asks depends on other threads of the process that look at the time.
    #[test]
    fn after_a_look_in_vain_it_sleeps_at_once_and_never_looks_right_before_a_timer() {
        let mut look = Look::new(Duration::ZERO);
        look.record(false);
        assert!(look.spin(SECOND).is_none());
        assert!(!asks_in_vain(&mut look, LONGEST));
        asks_in_vain(&mut look, SECOND);
        assert!(look.shared.is_none(), "it counts no more among those that look");
        assert!(!asks_in_vain(&mut look, SECOND));
    }

    #[test]
    fn after_much_it_spins_whoever_sends_it_and_lets_others_go_first() {
        let mut look = Look::new(Duration::ZERO);
        look.record(true);
        let spin = look.spin(SECOND).unwrap();
        assert!(look.yields(spin.until_ns - 1) && !look.yields(spin.until_ns));
        look.record(false);
        assert!(look.spin(SECOND).is_some(), "little doesn't end it");
    }
}
