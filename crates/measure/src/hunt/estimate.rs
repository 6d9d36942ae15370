//! How long a hunt takes, before it begins.

use super::{Bisection, BisectionStep, Goal, Method, RatioTest};

/// Trials that choose a rate, in most hunts, and those that test both ends of the last bracket again.
const SEARCHES: u32 = 10;
const CONFIRMS: u32 = 2;
/// Between two trials: flows are set up, and queues empty.
const BETWEEN_NS: u64 = 300_000_000;
/// Before the measured time of a trial.
pub(super) const WARM_UP_NS: u64 = 200_000_000;

/// How long a hunt takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HuntTime {
    /// If the answer is near the highest rate.
    pub shortest_ns: u64,
    /// If it is near the lowest, where fewer items are sent in the same time.
    pub longest_ns: u64,
}

/// How long a hunt takes: each verdict needs a number of items, so that slow rates take long.
pub fn estimate(goal: &Goal) -> HuntTime {
    let at = |rate| estimate_at(goal, rate);
    HuntTime { shortest_ns: at(goal.high), longest_ns: at(goal.low.max(1)) }
}

fn estimate_at(goal: &Goal, rate: u64) -> u64 {
    if goal.method == Method::Bisection {
        return bisection_trials(goal).saturating_mul(goal.trial_ns.saturating_add(BETWEEN_NS));
    }
    let has_zero = goal.ratios().iter().any(|&limit| limit <= 0.0);
    let trial_ns = |floor: f64, least_ns: f64| {
        if has_zero || (goal.is_judged_at_end() && floor > 1.0) {
            return goal.trial_ns as f64;
        }
        if goal.is_judged_at_end() {
            return at_end_ns(goal, rate) as f64;
        }
        let items = RatioTest::needed_items(strictest(goal), floor);
        let longest_ns = longest_ns(goal, rate, floor) as f64;
        // The longest time may be below the least: `--time 500ms`.
        (items / goal.items_per_s(rate) * 1e9).max(least_ns).min(longest_ns)
    };
    let confirms_ns = trial_ns(10.0, 2e9) + (BETWEEN_NS + WARM_UP_NS) as f64;
    if goal.is_one_rate() {
        return confirms_ns as u64;
    }
    let searches_ns = trial_ns(1.0, 1e9) + (BETWEEN_NS + WARM_UP_NS) as f64;
    (searches_ns * f64::from(SEARCHES) + confirms_ns * f64::from(CONFIRMS)) as u64
}

fn bisection_trials(goal: &Goal) -> u64 {
    let (mut search, mut trials) =
        (Bisection::new(goal.low / goal.step.max(1), goal.high / goal.step.max(1)), 0);
    while let BisectionStep::Run(_) = search.poll_step() {
        search.handle_verdict(true);
        trials += 1;
    }
    trials
}

/// The measured time of a trial that is judged at its end: as long as the verdict needs at its rate, from 1 s up to
/// what the goal says.
pub(super) fn at_end_ns(goal: &Goal, rate: u64) -> u64 {
    let needed = RatioTest::needed_items(strictest(goal), 1.0) / goal.items_per_s(rate);
    ((2e9 * needed) as u64).max(1_000_000_000).min(goal.trial_ns)
}

/// The least limit that isn't 0, or 1.
fn strictest(goal: &Goal) -> f64 {
    goal.ratios().into_iter().filter(|&limit| limit > 0.0).fold(1.0, f64::min)
}

/// The longest measured time of a trial: what the goal says, and twice what the verdict needs at its rate where that
/// is longer, up to six times what the goal says.
pub(super) fn longest_ns(goal: &Goal, rate: u64, floor: f64) -> u64 {
    let needed_ns =
        2.0 * RatioTest::needed_items(strictest(goal), floor) / goal.items_per_s(rate) * 1e9;
    (needed_ns as u64).clamp(goal.trial_ns, goal.trial_ns.saturating_mul(6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::{Limits, RateUnit};

    #[test]
    fn any_time_of_a_trial_has_an_estimate() {
        for trial_ns in [1, 500_000_000, 1_999_999_999, 2_000_000_000, u64::MAX] {
            for method in [Method::Sequential, Method::Bisection] {
                for unit in [RateUnit::BitsPerSecond, RateUnit::RequestsPerSecond] {
                    let limits = Limits { loss_ratio: 0.001, latencies: Vec::new() };
                    let (low, high, step, per_item) = (1, 1 << 40, 1, 8_000);
                    let goal = Goal { method, unit, low, high, step, per_item, limits, trial_ns };
                    let HuntTime { shortest_ns, longest_ns } = estimate(&goal);
                    assert!(shortest_ns > 0 && shortest_ns <= longest_ns, "{goal:?}");
                }
            }
        }
    }
}
