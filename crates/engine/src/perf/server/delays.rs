//! Answers that wait: a server that has something to do before it answers.

use std::collections::VecDeque;

use crate::clock::{MILLISECOND_NS, monotonic_ns};

/// What a server waits before each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// How long, µs; with chance, on average.
    pub mean_us: u32,
    /// Whether the waits are drawn from an exponential distribution, and cut at the greater of four
    /// times the mean and 1 ms.
    pub varies: bool,
}

/// Answers in line: each begins to wait when the one before has had its time, as if one worker made
/// them.
pub(super) struct Delays<T> {
    delay: Delay,
    line: VecDeque<(u64, T)>,
    free_ns: u64,
    chance: u64,
}

impl<T> Delays<T> {
    pub(super) fn new(delay: Delay, seed: u64) -> Self {
        Self { delay, line: VecDeque::new(), free_ns: 0, chance: monotonic_ns() ^ (seed << 32) | 1 }
    }

    pub(super) fn add(&mut self, what: T) {
        let due_ns = self.free_ns.max(monotonic_ns()) + self.next_ns();
        self.free_ns = due_ns;
        self.line.push_back((due_ns, what));
    }

    /// How long until the first is due, ns.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.line.front().map(|(due_ns, _)| due_ns.saturating_sub(monotonic_ns()))
    }

    /// The next that is due.
    pub(super) fn poll_due(&mut self) -> Option<T> {
        let (due_ns, _) = self.line.front()?;
        (*due_ns <= monotonic_ns()).then(|| self.line.pop_front()).flatten().map(|(_, what)| what)
    }

    fn next_ns(&mut self) -> u64 {
        let mean_ns = u64::from(self.delay.mean_us) * 1000;
        if !self.delay.varies {
            return mean_ns;
        }
        // xorshift64 (Marsaglia, 2003): chance enough for waits.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let uniform = (self.chance >> 11) as f64 / (1_u64 << 53) as f64;
        let drawn_ns = (-(1.0 - uniform).ln() * mean_ns as f64) as u64;
        drawn_ns.min((4 * mean_ns).max(MILLISECOND_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_vary_have_the_mean_and_a_greatest() {
        let mut delays = Delays::<()>::new(Delay { mean_us: 500, varies: true }, 3);
        let drawn: Vec<u64> = (0..20_000).map(|_| delays.next_ns()).collect();
        let mean_ns = drawn.iter().sum::<u64>() / 20_000;
        // Cutting at four times the mean takes 1.8 % of it.
        assert!((470_000..512_000).contains(&mean_ns), "{mean_ns} ns");
        assert_eq!(drawn.iter().max(), Some(&2_000_000));
    }

    #[test]
    fn answers_wait_one_after_another() {
        let mut delays = Delays::new(Delay { mean_us: 3_600_000_000, varies: false }, 0);
        delays.add('a');
        delays.add('b');
        assert_eq!(delays.poll_due(), None);
        let [(first_ns, _), (second_ns, _)] = delays.line.make_contiguous() else {
            panic!("two wait")
        };
        assert_eq!(*second_ns - *first_ns, 3_600_000_000_000);
    }
}
