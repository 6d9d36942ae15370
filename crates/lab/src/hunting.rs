//! A hunt of several pairs in lockstep: which trial all pairs make next, and what their trials come to.
//!
//! [`Hunting`] knows no hosts. The scheduler starts a client for each pair and trial, gives it a common start, hands
//! the clients' samples over, and ends them when the trial is decided.

use linerate_measure::hunt::{
    Hunt, JointJudge, Outcome, RateUnit, Reported, Step, Trial, TrialRecord, TrialVerdict,
    observations, totals,
};
use linerate_measure::units::{render_count, render_rate};
use linerate_measure::{Run, Sample, Workload};

use crate::plan::Search;

/// Loads that begin further apart than the warm-up of a trial don't run together.
const MOST_APART_NS: u64 = 200_000_000;

/// A hunt that several pairs make together.
#[derive(Debug)]
pub(crate) struct Hunting {
    hunt: Hunt,
    workload: Workload,
    members: Vec<Member>,
    now: Option<Now>,
    /// The lowest rate that has failed, and the number of the pair that was the worst in that trial.
    worst: Option<(u64, u32)>,
}

/// A pair that takes part.
#[derive(Debug)]
struct Member {
    /// Its place in the plan.
    place: usize,
    number: u32,
    trials: Vec<TrialRecord>,
    reported: Reported,
    /// When its load of the current trial began, by the controller's clock.
    started_ns: Option<i64>,
    run: Option<Box<Run>>,
}

/// The trial that runs.
#[derive(Debug)]
struct Now {
    trial: Trial,
    judge: JointJudge,
}

impl Hunting {
    /// A hunt of these pairs: the place in the plan and the number of each.
    pub(crate) fn new(search: &Search, pairs: impl Iterator<Item = (usize, u32)>) -> Self {
        let member = |(place, number)| Member {
            place,
            number,
            trials: Vec::new(),
            reported: Reported::default(),
            started_ns: None,
            run: None,
        };
        Self {
            hunt: Hunt::new(search.goal.clone()),
            workload: search.workload.clone(),
            members: pairs.map(member).collect(),
            now: None,
            worst: None,
        }
    }

    /// The next trial, which begins now; none when the hunt is over.
    pub(crate) fn begin_trial(&mut self) -> Option<Trial> {
        let Step::Run(trial) = self.hunt.poll_step() else { return None };
        let (pairs, interval_ns) = (self.members.len(), self.workload.interval_ns);
        let judge = JointJudge::new(self.hunt.goal(), &trial, pairs, interval_ns);
        self.now = Some(Now { trial, judge });
        Some(trial)
    }

    /// The words of a trial on a client's command line.
    pub(crate) fn words(&self, trial: &Trial) -> String {
        format!("{}:{}ns", trial.rate, trial.longest_ns)
    }

    /// The longest that the trial that runs measures.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.now.as_ref().map_or(0, |now| now.trial.longest_ns)
    }

    /// Takes what an end of a pair has counted. Whether the trial is decided by it: its loads may end.
    pub(crate) fn handle_sample(&mut self, place: usize, sample: &Sample) -> bool {
        let member = self.members.iter().position(|member| member.place == place);
        let (Some(member), Some(now)) = (member, &mut self.now) else { return false };
        if now.judge.verdict().is_some() {
            return false;
        }
        let seen = observations(&self.workload, sample);
        seen.for_each(|observation| now.judge.handle(member, &observation));
        now.judge.verdict().is_some()
    }

    /// Takes the result of a pair's load, and when that began by the controller's clock.
    pub(crate) fn handle_run(&mut self, place: usize, run: Box<Run>, started_ns: Option<i64>) {
        if let Some(member) = self.members.iter_mut().find(|member| member.place == place) {
            (member.run, member.started_ns) = (Some(run), started_ns);
        }
    }

    /// Whether the loads of the trial were ended because it is decided.
    pub(crate) fn is_decided(&self) -> bool {
        self.now.as_ref().is_some_and(|now| now.judge.verdict().is_some())
    }

    /// All loads of the trial have ended. What it came to: the number of each pair, and its record.
    pub(crate) fn end_trial(&mut self) -> Vec<(u32, TrialRecord)> {
        let Some(Now { trial, mut judge }) = self.now.take() else { return Vec::new() };
        let goal = self.hunt.goal().clone();
        if judge.verdict().is_none() {
            let runs = self.members.iter().enumerate();
            for (place, run) in
                runs.filter_map(|(place, member)| Some((place, member.run.as_ref()?)))
            {
                if let Some(totals) = totals(&goal, run) {
                    judge.handle(place, &totals);
                }
            }
        }
        let started = self.members.iter().filter_map(|member| member.started_ns);
        if let (Some(first), Some(last)) = (started.clone().min(), started.max())
            && last.abs_diff(first) > MOST_APART_NS
        {
            judge.handle_apart();
        }
        let seen = judge.seen();
        let verdict = self.hunt.weigh(judge.finish(), &seen);
        let worst = self.members.get(judge.worst(verdict)).map(|member| member.number);
        let (mut offered, mut told) = (u64::MAX, Vec::new());
        for (place, member) in self.members.iter_mut().enumerate() {
            let mut record = TrialRecord::new(&goal, &trial, verdict, &judge.seen_of(place));
            record.worst_pair = worst;
            offered = offered.min(record.offered);
            if let Some(run) = member.run.take() {
                record.started_utc_ns = run.environment.started_utc_ns;
                let datagrams = run.summary.datagrams.unwrap_or_default();
                record.items.dropped_by_socket = datagrams.dropped_by_socket;
                member.reported.keep(run, &record);
            }
            member.trials.push(record.clone());
            told.push((member.number, record));
        }
        let is_lower = self.worst.is_none_or(|(rate, _)| trial.rate <= rate);
        if let (TrialVerdict::Fail { .. }, Some(worst), true) = (verdict, worst, is_lower) {
            self.worst = Some((trial.rate, worst));
        }
        let pairs = self.members.len().max(1) as f64;
        self.hunt.handle_verdict(verdict, offered, goal.rate_of(seen.arrived_per_s / pairs));
        told
    }

    /// A sentence about the pair that was the worst at the lowest rate that failed.
    pub(crate) fn note(&self) -> Option<String> {
        let (rate, number) = self.worst.filter(|_| self.members.len() > 1)?;
        let rate = match self.hunt.goal().unit {
            RateUnit::BitsPerSecond => render_rate(rate as f64),
            RateUnit::RequestsPerSecond => format!("{}/s", render_count(rate as f64)),
        };
        Some(format!("at {rate}, the lowest rate that failed, pair {number} was the worst"))
    }

    /// The documents of the pairs that have one, by their places in the plan. A hunt that isn't over was cut off.
    pub(crate) fn into_runs(self) -> Vec<(usize, Box<Run>)> {
        let outcome: Outcome = match self.hunt.poll_step() {
            Step::Done(outcome) => outcome,
            Step::Run(_) => self.hunt.interrupted(),
        };
        let pairs = u32::try_from(self.members.len()).ok();
        let goal = self.hunt.goal();
        let runs = self.members.into_iter().filter_map(|mut member| {
            if let Some(run) = member.run.take() {
                member.reported.keep_cut_off(run);
            }
            Some((member.place, member.reported.into_run(goal, member.trials, outcome, pairs)?))
        });
        runs.collect()
    }
}

#[cfg(test)]
mod tests;
