//! Which of a hunt's trials stands for it, and the document that comes of it.

use super::{Goal, HuntRecord, Outcome, TrialRecord, TrialVerdict};
use crate::run::{Outcome as RunOutcome, Run, Status, exit};

/// The run of the trial whose samples and reports a hunt's result has: the last one that passed at the highest rate
/// that passed, else the last one.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    run: Option<Box<Run>>,
    trial: Option<u32>,
    passed_rate: Option<u64>,
}

impl Reported {
    /// Takes the run of a trial that has a verdict.
    pub fn keep(&mut self, run: Box<Run>, record: &TrialRecord) {
        let passed = (record.verdict == TrialVerdict::Pass).then_some(record.rate);
        let is_better = match (passed, self.passed_rate) {
            (Some(rate), Some(before)) => rate >= before,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        if is_better {
            *self = Self { run: Some(run), trial: Some(record.number), passed_rate: passed };
        }
    }

    /// Takes the run of a trial that was cut off, where none has passed.
    pub fn keep_cut_off(&mut self, run: Box<Run>) {
        if self.passed_rate.is_none() {
            *self = Self { run: Some(run), ..Self::default() };
        }
    }

    /// Takes the run of a trial that could not be measured, where there is no other.
    pub fn keep_failed(&mut self, run: Box<Run>) {
        self.run.get_or_insert(run);
    }

    /// The document of a hunt with these trials; absent where there is no run. `pairs`: how many made the trials
    /// together, where there were several.
    pub fn into_run(
        self,
        goal: &Goal,
        trials: Vec<TrialRecord>,
        outcome: Outcome,
        pairs: Option<u32>,
    ) -> Option<Box<Run>> {
        let mut run = self.run?;
        let goal = goal.clone();
        let record = HuntRecord { goal, trials, outcome, pairs, reported_trial: self.trial };
        let notes = std::mem::take(&mut run.status.notes);
        run.status = record.status(notes);
        run.hunt = Some(Box::new(record));
        Some(run)
    }
}

impl HuntRecord {
    /// How the hunt as a whole ended.
    pub fn status(&self, notes: Vec<String>) -> Status {
        let (outcome, exit_code) = match self.outcome {
            Outcome::Interrupted { .. } => (RunOutcome::Interrupted, exit::INTERRUPTED),
            Outcome::Unsteady { .. }
            | Outcome::SenderLimited { .. }
            | Outcome::SenderStalls { .. }
            | Outcome::TooFewSamples { .. } => (RunOutcome::Untrustworthy, exit::UNTRUSTWORTHY),
            Outcome::Found { .. }
            | Outcome::AtLeast { .. }
            | Outcome::Below { .. }
            | Outcome::Keeps { .. }
            | Outcome::Breaks { .. }
            | Outcome::Bisected { .. } => (RunOutcome::Complete, exit::VALID),
        };
        let message = (exit_code != exit::VALID).then(|| self.describe());
        Status { outcome, exit_code, message, unmet: Vec::new(), notes }
    }
}
