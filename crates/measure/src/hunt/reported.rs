//! Which of a hunt's trials stands for it, and the document that comes of it.

use super::{Goal, HuntRecord, Outcome, TrialRecord, TrialVerdict};
use crate::run::{Outcome as RunOutcome, Run, Status, exit};
use crate::trust::{Reason, Trust};

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
        // A rate that was refuted later stands for nothing.
        if matches!(record.verdict, TrialVerdict::Fail { .. })
            && self.passed_rate.is_some_and(|passed| record.rate <= passed)
        {
            self.passed_rate = None;
        }
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
        let reasons = std::mem::take(&mut run.status.reasons);
        run.status = record.status(reasons, notes);
        run.hunt = Some(Box::new(record));
        Some(run)
    }
}

impl HuntRecord {
    /// How the hunt as a whole ended, with what speaks against the figures of its reported trial.
    pub fn status(&self, reasons: Vec<Reason>, notes: Vec<String>) -> Status {
        let (outcome, exit_code, verdict) = match (self.outcome, Trust::of(&reasons)) {
            (Outcome::Interrupted { .. }, verdict) => {
                (RunOutcome::Interrupted, exit::INTERRUPTED, verdict)
            }
            (
                Outcome::Unsteady { .. }
                | Outcome::SenderLimited { .. }
                | Outcome::SenderStalls { .. }
                | Outcome::TooFewSamples { .. },
                _,
            )
            | (_, Trust::Invalid) => {
                (RunOutcome::Untrustworthy, exit::UNTRUSTWORTHY, Trust::Invalid)
            }
            (_, verdict) => (RunOutcome::Complete, exit::VALID, verdict),
        };
        let message = (exit_code != exit::VALID).then(|| self.describe());
        let (verdict, unmet) = (Some(verdict), Vec::new());
        Status { outcome, exit_code, verdict, reasons, message, unmet, notes }
    }
}
