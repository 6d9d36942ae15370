//! Polling for a moment before a sleep, ever more seldom where that is in vain.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::thread::sched_yield;
use rustix::time::Timespec;

use super::counts::{record_look, record_yield};
use super::{Awaited, Peer, Rule, Wait, choose};
use crate::clock::monotonic_ns;

/// Threads of this process that poll, or may.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// A thread's right to poll: while it has one, it counts among those that do.
pub(crate) struct Look(());

impl Look {
    pub(crate) fn new() -> Self {
        LOOKING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Tries what must not wait; where nothing has come, waits as [`choose`] says and tries again. `None`:
    /// it is time to sleep.
    #[inline]
    pub(crate) fn wait<T>(
        &self,
        backoff: &mut Backoff,
        peer: impl Fn() -> Peer,
        attempt: impl FnMut() -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        self.wait_and(backoff, peer, || {}, attempt)
    }

    /// The same, with something done between two polls.
    #[inline]
    pub(super) fn wait_and<T>(
        &self,
        backoff: &mut Backoff,
        peer: impl Fn() -> Peer,
        between: impl Fn(),
        mut attempt: impl FnMut() -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        if backoff.passes() {
            return None;
        }
        loop {
            match attempt() {
                Err(Errno::AGAIN) => {
                    let looking = || LOOKING.load(Ordering::Relaxed);
                    match backoff
                        .handle_empty(monotonic_ns(), |rule| choose(rule, peer(), looking()))
                    {
                        Wait::Sleep => return None,
                        Wait::Look => between(),
                        Wait::Yield => sched_yield(),
                    }
                }
                came => {
                    backoff.handle_found();
                    return Some(came);
                }
            }
        }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        LOOKING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long and how often a thread polls for one kind of thing. After polls in vain the next waits sleep at
/// once, twice as many after each failure.
pub(crate) struct Backoff {
    rule: Rule,
    /// The wait in progress: how, since when, until when.
    waits: Option<(Wait, u64, u64)>,
    /// Waits that sleep at once before the next that may poll.
    passes: u32,
    /// How many they were last.
    last_passes: u32,
}

impl Backoff {
    pub(crate) fn new(awaited: Awaited) -> Self {
        Self { rule: awaited.rule(), waits: None, passes: 0, last_passes: 0 }
    }

    /// Whether this wait sleeps at once.
    #[inline]
    pub(crate) fn passes(&mut self) -> bool {
        let passes = self.passes > 0;
        self.passes = self.passes.saturating_sub(1);
        passes
    }

    /// Nothing has come: how the thread waits before it tries again, chosen anew at the first try of a wait.
    #[inline]
    pub(super) fn handle_empty(&mut self, now_ns: u64, choose: impl FnOnce(&Rule) -> Wait) -> Wait {
        match self.waits {
            Some((wait, _, until_ns)) if now_ns < until_ns => return wait,
            Some(_) => {
                self.record(now_ns);
                self.last_passes = (self.last_passes * 2 + 1).min(self.rule.most_passes);
                self.passes = self.last_passes;
            }
            None => match choose(&self.rule) {
                Wait::Sleep => self.passes = self.rule.most_passes,
                Wait::Look => {
                    self.waits = Some((Wait::Look, now_ns, now_ns + self.rule.look_ns));
                    return Wait::Look;
                }
                Wait::Yield => {
                    self.waits = Some((Wait::Yield, now_ns, now_ns));
                    return Wait::Yield;
                }
            },
        }
        Wait::Sleep
    }

    /// Something has come without a sleep.
    #[inline]
    pub(super) fn handle_found(&mut self) {
        if self.waits.is_some() {
            self.record(monotonic_ns());
            self.last_passes = 0;
        }
    }

    fn record(&mut self, now_ns: u64) {
        match self.waits.take() {
            Some((Wait::Look, since_ns, _)) => record_look(now_ns.saturating_sub(since_ns)),
            Some((Wait::Yield, ..)) => record_yield(),
            Some((Wait::Sleep, ..)) | None => {}
        }
    }
}

/// Whether a socket has something to take now (bytes, packets, a connection, an error), or a poll set an event.
///
/// # Errors
///
/// `EAGAIN`: not yet; or what poll(2) says.
pub(crate) fn readiness(polled: &impl AsFd) -> Result<(), Errno> {
    let mut polled = [PollFd::new(polled, PollFlags::IN)];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Err(Errno::AGAIN),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::counts;
    use super::*;

    /// How often it polls in one wait in which nothing comes, a microsecond a time.
    fn polls_in_vain(backoff: &mut Backoff, now_ns: &mut u64, wait: Wait) -> u32 {
        let mut polls = 0;
        if backoff.passes() {
            return polls;
        }
        while backoff.handle_empty(*now_ns, |_| wait) != Wait::Sleep {
            polls += 1;
            *now_ns += 1_000;
        }
        polls
    }

    #[test]
    fn polls_in_vain_become_rare_and_one_that_finds_something_makes_them_common_again() {
        let (mut backoff, mut now_ns) = (Backoff::new(Awaited::Stream), 1);
        let mut waits_between = Vec::new();
        let mut waits = 0;
        let before = counts();
        while waits_between.len() < 10 {
            match polls_in_vain(&mut backoff, &mut now_ns, Wait::Look) {
                0 => waits += 1,
                polls => {
                    assert_eq!(polls, 20);
                    waits_between.push(waits);
                    waits = 0;
                }
            }
        }
        assert_eq!(waits_between, [0, 1, 3, 7, 15, 31, 63, 127, 255, 255]);
        let since = counts().since(&before);
        assert_eq!((since.looks, since.looked_ns, since.yields), (10, 10 * 20_000, 0));

        while backoff.passes() {}
        assert_eq!(backoff.handle_empty(now_ns, |_| Wait::Look), Wait::Look);
        backoff.handle_found();
        assert_eq!(polls_in_vain(&mut backoff, &mut now_ns, Wait::Look), 20);
        assert_eq!(polls_in_vain(&mut backoff, &mut now_ns, Wait::Look), 0);
        assert_eq!(polls_in_vain(&mut backoff, &mut now_ns, Wait::Look), 20);
    }

    #[test]
    fn choice_of_sleep_is_reviewed_after_many_waits() {
        let (mut backoff, mut now_ns) = (Backoff::new(Awaited::Exchange), 1);
        assert_eq!(polls_in_vain(&mut backoff, &mut now_ns, Wait::Sleep), 0);
        let waits = (0..100).take_while(|_| backoff.passes()).count();
        assert_eq!(waits, 15);
    }

    #[test]
    fn after_a_yield_it_asks_just_once_again() {
        let (mut backoff, mut now_ns) = (Backoff::new(Awaited::Stream), 1);
        let before = counts();
        for _ in 0..2 {
            assert_eq!(polls_in_vain(&mut backoff, &mut now_ns, Wait::Yield), 1);
            while backoff.passes() {}
        }
        assert_eq!(counts().since(&before).yields, 2);
    }
}
