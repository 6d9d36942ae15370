//! A sequential test of a share that is known only at the end of a trial: trials at one rate add up until it is certain.

use super::Decision;
use super::ratio::{CERTAIN, MARGIN};

/// Trials of one rate, at most: then the likelier side counts.
const MOST_TRIALS: usize = 6;
/// So many trials at least show that a share is above its limit: one of them may have met a hiccup.
const LEAST_ABOVE: usize = 2;
/// Such a share is no hiccup.
const ALL_ABOVE: f64 = 0.5;

/// The share of requests that break one limit, over the trials of one rate.
///
/// Requests that break a limit come in runs, and a trial tells only how many there were. The index of dispersion of
/// their number over the trials, the variance by the mean, is the mean length of a run (of a compound Poisson
/// process). The test is Wald's, as that of losses, on the number of runs.
#[derive(Clone, Debug)]
pub(super) struct ShareTest {
    limit: f64,
    /// A run is taken to be so long at least where the share is to be below the limit.
    floor: f64,
    /// Items of each trial, and the bad ones among them.
    trials: Vec<(u64, u64)>,
}

impl ShareTest {
    pub(super) fn new(limit: f64, floor: f64) -> Self {
        Self { limit, floor, trials: Vec::new() }
    }

    /// A trial had so many items, and so many of them were bad.
    pub(super) fn record(&mut self, items: u64, bad: u64) {
        self.trials.push((items, bad.min(items)));
    }

    /// What the trials so far say. A trial without a bad item is enough: more of them would show the same.
    pub(super) fn decide(&self) -> Decision {
        let sum = |part: fn(&(u64, u64)) -> u64| self.trials.iter().map(part).sum::<u64>() as f64;
        let (items, bad) = (sum(|trial| trial.0), sum(|trial| trial.1));
        let is_above = bad > self.limit * items;
        let likelier = if is_above { Decision::Above } else { Decision::Below };
        if bad == 0.0 || self.limit >= 1.0 || self.trials.len() >= MOST_TRIALS {
            return likelier;
        }
        let run = self.dispersion(bad / items);
        let log_ratio = |run: f64| {
            let expected = items * self.limit / run;
            bad / run * (MARGIN * MARGIN).ln() - expected * (MARGIN - 1.0 / MARGIN)
        };
        let seen = self.trials.len() >= LEAST_ABOVE || bad >= ALL_ABOVE * items;
        if is_above && seen && log_ratio(run) > CERTAIN {
            return Decision::Above;
        }
        if log_ratio(run.max(self.floor)) < -CERTAIN {
            return Decision::Below;
        }
        Decision::Open
    }

    /// The variance of the number of bad items by its mean, at least 1.
    fn dispersion(&self, share: f64) -> f64 {
        let squares = self.trials.iter().map(|&(items, bad)| {
            let expected = (items as f64 * share).max(f64::MIN_POSITIVE);
            (bad as f64 - expected).powi(2) / expected
        });
        let degrees = self.trials.len().saturating_sub(1).max(1) as f64;
        (squares.sum::<f64>() / degrees).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next_word;

    fn decided(limit: f64, trials: &[(u64, u64)]) -> Decision {
        let mut test = ShareTest::new(limit, 1.0);
        trials.iter().for_each(|&(items, bad)| test.record(items, bad));
        test.decide()
    }

    #[test]
    fn one_trial_far_below_is_enough_and_one_hiccup_is_not_above() {
        assert_eq!(decided(0.01, &[(1_000, 0)]), Decision::Below);
        assert_eq!(decided(0.01, &[(1_000, 4)]), Decision::Below);
        assert_eq!(decided(0.01, &[(1_000, 50)]), Decision::Open);
        assert_eq!(decided(0.01, &[(1_000, 50), (1_000, 0)]), Decision::Open);
        assert_eq!(decided(0.01, &[(1_000, 50), (1_000, 45)]), Decision::Above);
        assert_eq!(decided(0.01, &[(1_000, 1_000)]), Decision::Above);
    }

    #[test]
    fn shares_near_the_limit_are_open_until_six_trials() {
        for trials in 1..6 {
            assert_eq!(decided(0.01, &vec![(1_000, 10); trials]), Decision::Open, "{trials}");
        }
        assert_eq!(decided(0.01, &[(1_000, 10); 6]), Decision::Below);
        assert_eq!(decided(0.01, &[(1_000, 11); 6]), Decision::Above);
    }

    #[test]
    fn numbers_of_any_size_are_no_panic() {
        for limit in [0.0, 0.5, 1.0] {
            let trials = [(0, u64::MAX), (u64::MAX / 8, u64::MAX), (5, 2), (0, 0)];
            let _decided = decided(limit, &trials);
        }
    }

    /// How many of so many decisions were right, of shares of so many times the limit in runs of this length.
    fn right(times: f64, run: u64, decisions: usize, state: &mut u64) -> usize {
        let (limit, items) = (0.01, 4_000_u64);
        let mut chance = || (next_word(state) >> 11) as f64 / (1_u64 << 53) as f64;
        let runs = (0..decisions).filter(|_| {
            let mut test = ShareTest::new(limit, 1.0);
            loop {
                let chance_of_run = limit * times / run as f64;
                let bad = (0..items).filter(|_| chance() < chance_of_run).count() as u64 * run;
                test.record(items, bad);
                match test.decide() {
                    Decision::Open => {}
                    decision => return (decision == Decision::Above) == (times > 1.0),
                }
            }
        });
        runs.count()
    }

    #[test]
    fn shares_of_two_thirds_and_three_halves_of_the_limit_are_told_apart() {
        let mut state = 11;
        for (times, run, least) in [(0.5, 1, 297), (0.667, 1, 294), (1.5, 1, 294), (2.0, 1, 297)] {
            let right = right(times, run, 300, &mut state);
            assert!(right >= least, "{times} times the limit, runs of {run}: {right} of 300");
        }
        for (times, run, least) in [(0.5, 5, 285), (2.0, 5, 285)] {
            let right = right(times, run, 300, &mut state);
            assert!(right >= least, "{times} times the limit, runs of {run}: {right} of 300");
        }
    }
}
