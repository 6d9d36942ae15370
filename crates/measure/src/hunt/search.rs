//! Chooses the rates of a hunt's trials.

use std::collections::BTreeMap;

use super::bisection::{Bisection, BisectionStep};
use super::estimate::{at_end_ns, longest_ns};
use super::share::ShareTest;
use super::{
    Breach, Decision, Goal, Method, Outcome, Purpose, Seen, Shortfall, Step, Trial, TrialVerdict,
};

/// Steps from a guess, and the widest bracket at the end, as a share of the rate.
const STEP: f64 = 0.005;
/// A hunt of more trials is unsteady; invalid ones don't count.
const MOST_TRIALS: u32 = 25;
/// So many reversals at one rate make a hunt unsteady.
const MOST_REVERSALS: u32 = 3;
/// A trial is made so often until the sender offers its rate...
const MOST_SHORT: u32 = 3;
/// ... and so often where the sender stalls, which the machine's other programs may cause.
const MOST_INVALID: u32 = 10;
/// The upper end of the last bracket must fail so often.
const FAILS: u32 = 2;
/// Runs of bad items in a trial that confirms a rate: how long they are at least.
const CONFIRM_FLOOR: f64 = 10.0;

/// What is known of one rate.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The last verdict.
    passes: bool,
    /// Trials that failed since it last passed.
    fails: u32,
    confirmed: bool,
    reversals: u32,
    /// Whether the verdict still holds: later ones at other rates may have contradicted it.
    holds: bool,
    has_passed: bool,
    has_failed: bool,
}

/// A hunt: asks for trials, takes their verdicts, and says what was found.
///
/// 1. A trial at the highest rate. If it passes, the answer is "at least" that.
/// 2. Else the rate that arrived is the first guess. From there it goes in steps of 0.5 %, doubled each time, until
///    one rate passes and one fails; then to the middle (geometrically), down to a bracket of 0.5 %.
/// 3. The upper end must fail twice, and the lower end must pass a longer trial; else the bracket moves.
///
/// A limit of 0 has trials of fixed length, because no test can show that nothing will be lost.
#[derive(Clone, Debug)]
pub struct Hunt {
    goal: Goal,
    bisection: Bisection,
    /// What is known of the rates that were tried.
    rates: BTreeMap<u64, Known>,
    next: Option<(u64, Purpose)>,
    course: Course,
    /// Trials so far, and those of them that were decided.
    trials: u32,
    decided: u32,
    /// Trials in a row that say nothing.
    invalid: Invalid,
    /// Requests: the tests of the limits over the trials that were made in a row at one rate.
    shares: Vec<ShareTest>,
    outcome: Option<Outcome>,
}

/// Trials in a row that say nothing of the path.
#[derive(Clone, Copy, Debug, Default)]
struct Invalid {
    all: u32,
    /// The sender sent too little in them.
    short: u32,
    /// The most that it sent.
    offered: u64,
    /// Too little was counted in them.
    unseen: u32,
}

/// Where the search goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Course {
    /// To this rate.
    Guess(u64),
    /// Away from the last rate: up while rates pass, down while they fail.
    Away {
        up: bool,
        /// The share of the next step.
        step: f64,
    },
    /// To the middle of the bracket.
    Middle,
}

impl Hunt {
    /// A hunt that has seen nothing.
    pub fn new(goal: Goal) -> Self {
        let mut hunt = Self {
            bisection: Bisection::new(goal.low / goal.step.max(1), goal.high / goal.step.max(1)),
            course: Course::Guess(goal.high),
            goal,
            rates: BTreeMap::new(),
            next: None,
            trials: 0,
            decided: 0,
            invalid: Invalid::default(),
            shares: Vec::new(),
            outcome: None,
        };
        hunt.plan_next();
        hunt
    }

    /// What is sought.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// What to do next. The same until [`Hunt::handle_verdict`].
    pub fn poll_step(&self) -> Step {
        match (self.outcome, self.next) {
            (Some(outcome), _) => Step::Done(outcome),
            (None, Some((rate, purpose))) => Step::Run(Trial {
                number: self.trials + 1,
                rate,
                purpose,
                longest_ns: match purpose {
                    Purpose::Fixed => self.goal.trial_ns,
                    Purpose::Search if self.goal.is_judged_at_end() => at_end_ns(&self.goal, rate),
                    Purpose::Confirm if self.goal.is_judged_at_end() => self.goal.trial_ns,
                    Purpose::Search => longest_ns(&self.goal, rate, 1.0),
                    Purpose::Confirm => longest_ns(&self.goal, rate, CONFIRM_FLOOR),
                },
            }),
            (None, None) => Step::Done(self.interrupted()),
        }
    }

    /// What the last [`Step::Run`] came to where the shares of a limit are known only at a trial's end (requests): what
    /// its trials at this rate say together. Of other trials: the verdict as it is.
    pub fn weigh(&mut self, verdict: TrialVerdict, seen: &Seen) -> TrialVerdict {
        let is_weighed = match verdict {
            TrialVerdict::Pass => true,
            TrialVerdict::Fail { why } => matches!(why, Breach::Loss | Breach::Latency),
            TrialVerdict::Open | TrialVerdict::Invalid { .. } => false,
        };
        let Some((_, purpose)) = self.next.filter(|_| is_weighed && self.goal.is_judged_at_end())
        else {
            return verdict;
        };
        if purpose == Purpose::Fixed {
            return verdict;
        }
        if self.shares.is_empty() {
            let floor = if purpose == Purpose::Confirm { CONFIRM_FLOOR } else { 1.0 };
            let limits = self.goal.ratios().into_iter();
            self.shares = limits.map(|limit| ShareTest::new(limit, floor)).collect();
        }
        for (place, share) in self.shares.iter_mut().enumerate() {
            let bad = seen.bad.get(place).map_or(0, |bad| bad.items);
            // Latency is judged by the requests that were answered.
            let failed = if place == 0 { bad } else { 0 };
            share.record(seen.arrived_items.saturating_add(failed), bad);
        }
        let decisions: Vec<Decision> = self.shares.iter().map(ShareTest::decide).collect();
        let above = decisions.iter().position(|decision| *decision == Decision::Above);
        match above {
            Some(0) => TrialVerdict::Fail { why: Breach::Loss },
            Some(_) => TrialVerdict::Fail { why: Breach::Latency },
            None if decisions.contains(&Decision::Open) => TrialVerdict::Open,
            None => TrialVerdict::Pass,
        }
    }

    /// The trial of the last [`Step::Run`] came to this; `offered` and `arrived` are rates in the goal's unit.
    pub fn handle_verdict(&mut self, verdict: TrialVerdict, offered: u64, arrived: u64) {
        let Some((rate, purpose)) = self.next else { return };
        self.trials += 1;
        if let TrialVerdict::Invalid { why } = verdict {
            return self.handle_invalid(rate, why, offered);
        }
        self.invalid = Invalid::default();
        let passes = match verdict {
            TrialVerdict::Pass => true,
            TrialVerdict::Fail { .. } => false,
            TrialVerdict::Open | TrialVerdict::Invalid { .. } => return,
        };
        self.shares.clear();
        self.decided += 1;
        let contradicts = self.note(rate, passes, purpose);
        self.course = match self.course {
            Course::Guess(_) if self.decided == 1 => Course::Guess(arrived),
            Course::Guess(_) => Course::Away { up: passes, step: STEP },
            _ if contradicts => Course::Away { up: passes, step: STEP },
            Course::Away { up, step } if up == passes => Course::Away { up, step: step * 2.0 },
            Course::Away { .. } | Course::Middle => Course::Middle,
        };
        self.plan_next();
    }

    /// What is known, where the hunt is cut off.
    pub fn interrupted(&self) -> Outcome {
        Outcome::Interrupted { passed: self.passing(), failed: self.failing() }
    }

    /// The highest rate that passed, and holds.
    pub fn passing(&self) -> Option<u64> {
        let passing = self.rates.iter().rfind(|(_, known)| known.holds && known.passes);
        passing.map(|(rate, _)| *rate)
    }

    /// The lowest rate that failed, and holds.
    pub fn failing(&self) -> Option<u64> {
        let failing = self.rates.iter().find(|(_, known)| known.holds && !known.passes);
        failing.map(|(rate, _)| *rate)
    }

    fn handle_invalid(&mut self, rate: u64, why: Shortfall, offered: u64) {
        let invalid = &mut self.invalid;
        invalid.all += 1;
        match why {
            Shortfall::Offered => {
                invalid.short += 1;
                invalid.offered = invalid.offered.max(offered);
            }
            Shortfall::Short => invalid.unseen += 1,
            Shortfall::Uneven | Shortfall::Apart => {}
        }
        if invalid.short >= MOST_SHORT {
            self.outcome = Some(Outcome::SenderLimited { rate, offered: invalid.offered });
        } else if invalid.unseen >= MOST_SHORT {
            self.outcome = Some(Outcome::TooFewSamples { rate });
        } else if invalid.all >= MOST_INVALID {
            self.outcome = Some(Outcome::SenderStalls { rate });
        }
    }

    /// Notes a verdict, and returns whether it contradicts an earlier one. The newest holds.
    fn note(&mut self, rate: u64, passes: bool, purpose: Purpose) -> bool {
        if self.goal.method == Method::Bisection {
            self.bisection.handle_verdict(passes);
        }
        let before = self.rates.get(&rate).copied().unwrap_or_default();
        let is_reversal = before.holds && before.passes != passes;
        // A longer trial that fails needs no second one, and only a longer one confirms.
        let is_long = purpose != Purpose::Search;
        let fails = if is_long { FAILS } else { before.fails + 1 };
        let known = Known {
            passes,
            fails: if passes { 0 } else { fails },
            confirmed: passes && (before.confirmed || is_long),
            reversals: before.reversals + u32::from(is_reversal),
            holds: true,
            has_passed: before.has_passed || passes,
            has_failed: before.has_failed || !passes,
        };
        self.rates.insert(rate, known);
        let mut contradicts = is_reversal;
        for (&other, known) in &mut self.rates {
            let is_contrary = if passes { other < rate } else { other > rate };
            if is_contrary && known.holds && known.passes != passes {
                known.holds = false;
                contradicts = true;
            }
        }
        contradicts
    }

    fn plan_next(&mut self) {
        self.next = None;
        let next = match self.goal.method {
            Method::Bisection => self.bisect(),
            Method::Sequential if self.goal.is_one_rate() => self.judge_one_rate(),
            Method::Sequential => self.choose(),
        };
        match next {
            Ok(next) => self.next = Some(next),
            Err(outcome) => self.outcome = Some(outcome),
        }
    }

    fn bisect(&self) -> Result<(u64, Purpose), Outcome> {
        match self.bisection.poll_step() {
            BisectionStep::Run(number) => Ok((number * self.goal.step, Purpose::Fixed)),
            BisectionStep::Answer(number) => {
                let rate = number * self.goal.step;
                let tried = self.rates.get(&rate).is_some_and(|known| known.passes);
                Err(Outcome::Bisected { rate, tried })
            }
        }
    }

    fn judge_one_rate(&self) -> Result<(u64, Purpose), Outcome> {
        let rate = self.goal.high;
        match self.rates.get(&rate) {
            None => Ok((rate, self.purpose(Purpose::Confirm))),
            Some(known) if known.passes => Err(Outcome::Keeps { rate }),
            Some(_) => Err(Outcome::Breaks { rate }),
        }
    }

    /// The next rate, or what was found.
    fn choose(&self) -> Result<(u64, Purpose), Outcome> {
        let search = self.purpose(Purpose::Search);
        let reversals = self.rates.values().map(|known| known.reversals).max().unwrap_or(0);
        if reversals >= MOST_REVERSALS || self.decided >= MOST_TRIALS {
            return Err(self.unsteady());
        }
        match (self.passing(), self.failing()) {
            (Some(low), None) if low >= self.goal.high => match self.is_confirmed(low) {
                true => Err(Outcome::AtLeast { rate: low }),
                false => Ok((low, self.purpose(Purpose::Confirm))),
            },
            (_, None) => Ok((self.goal.high, search)),
            (None, Some(high)) if high <= self.goal.low => match self.fails(high) >= FAILS {
                true => Err(Outcome::Below { rate: high }),
                false => Ok((high, search)),
            },
            (None, Some(high)) => {
                let rate = match self.course {
                    Course::Guess(rate) => rate,
                    Course::Away { step, .. } => scaled(high, 1.0 - step),
                    Course::Middle => scaled(high, 1.0 - STEP),
                };
                Ok((rate.clamp(self.goal.low, high - 1), search))
            }
            (Some(low), Some(high)) if self.is_wide(low, high) => {
                Ok((self.between(low, high), search))
            }
            (Some(_), Some(high)) if self.fails(high) < FAILS => Ok((high, search)),
            (Some(low), Some(_)) if !self.is_confirmed(low) => {
                Ok((low, self.purpose(Purpose::Confirm)))
            }
            (Some(low), Some(high)) => Err(Outcome::Found { rate: low, failing_rate: high }),
        }
    }

    fn is_wide(&self, low: u64, high: u64) -> bool {
        high - low >= 2 && high > scaled(low, 1.0 + STEP)
    }

    fn between(&self, low: u64, high: u64) -> u64 {
        let middle = (low as f64 * high as f64).sqrt().round() as u64;
        let rate = match self.course {
            Course::Guess(rate) => rate,
            Course::Away { up: true, step } => scaled(low, 1.0 + step).min(middle),
            Course::Away { up: false, step } => scaled(high, 1.0 - step).max(middle),
            Course::Middle => middle,
        };
        rate.clamp(low + 1, high - 1)
    }

    fn is_confirmed(&self, rate: u64) -> bool {
        self.rates.get(&rate).is_some_and(|known| known.confirmed)
    }

    fn fails(&self, rate: u64) -> u32 {
        self.rates.get(&rate).map_or(0, |known| known.fails)
    }

    fn purpose(&self, otherwise: Purpose) -> Purpose {
        let has_zero = self.goal.ratios().iter().any(|&limit| limit <= 0.0);
        if has_zero { Purpose::Fixed } else { otherwise }
    }

    fn unsteady(&self) -> Outcome {
        let passed =
            || self.rates.iter().filter(|(_, known)| known.has_passed).map(|(&rate, _)| rate);
        let failed =
            || self.rates.iter().filter(|(_, known)| known.has_failed).map(|(&rate, _)| rate);
        let (first_failed, last_passed) = (failed().min(), passed().max());
        let below_all = |rate: &u64| first_failed.is_none_or(|failed| *rate < failed);
        let above_all = |rate: &u64| last_passed.is_none_or(|passed| *rate > passed);
        Outcome::Unsteady {
            low: passed().filter(below_all).max().unwrap_or(0),
            high: failed().filter(above_all).min().unwrap_or(self.goal.high),
        }
    }
}

fn scaled(rate: u64, factor: f64) -> u64 {
    (rate as f64 * factor).round() as u64
}

#[cfg(test)]
mod tests;
