//! Whether the samples of a plan meet its thresholds.

use std::collections::BTreeMap;

use linerate_measure::Run;
use linerate_measure::matrix::Cell;
use linerate_measure::metric::Combine;
use linerate_measure::threshold::{
    Judgement, Observation, Threshold, Verdict, figures_of_run, metric_of,
};

use crate::plan::Plan;

/// The figures of one sample, all pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The figures of each pair.
    pub pairs: Vec<BTreeMap<String, f64>>,
    /// Whether the sample can be trusted.
    pub is_trusted: bool,
}

/// Whether a figure adds up over pairs.
fn adds(figure: &str) -> bool {
    metric_of(figure).is_some_and(|metric| {
        metric.over_flows == Combine::Add || metric.over_directions == Combine::Add
    })
}

impl Observed {
    /// The figures of the runs of all pairs.
    pub fn new<'a>(runs: impl Iterator<Item = &'a Run>, is_trusted: bool) -> Self {
        Self { pairs: runs.map(figures_of_run).collect(), is_trusted }
    }

    /// One figure of all pairs: what adds up over flows or directions is added, of anything else the worst pair counts.
    /// Absent unless each pair has it.
    pub fn combined(&self, figure: &str, greatest_is_worst: bool) -> Option<f64> {
        let of_pair = |pair: &BTreeMap<String, f64>| pair.get(figure).copied();
        let all: Vec<f64> = self.pairs.iter().map(of_pair).collect::<Option<_>>()?;
        let combine: fn(f64, f64) -> f64 = match (adds(figure), greatest_is_worst) {
            (true, _) => |a, b| a + b,
            (false, true) => f64::max,
            (false, false) => f64::min,
        };
        all.into_iter().reduce(combine)
    }
}

/// A threshold at a point, with what it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The point's place in the plan.
    pub point: usize,
    /// The threshold.
    pub threshold: Threshold,
    /// What it came to.
    pub judgement: Judgement,
}

/// The samples of a plan so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judge {
    observed: BTreeMap<u32, BTreeMap<u32, Observed>>,
}

impl Judge {
    /// Takes what a cell came to. A cell that failed counts as a sample without figures.
    pub fn observe(&mut self, cell: Cell, observed: Observed) {
        self.observed.entry(cell.iteration).or_default().insert(cell.sample, observed);
    }

    /// Every threshold of every point. A sample that failed makes it undecided; one that was not tried counts for nothing.
    pub fn verdicts(&self, plan: &Plan) -> Vec<Judged> {
        let points = plan.points.iter().enumerate();
        points.flat_map(|(point, _)| self.verdicts_of(plan, point)).collect()
    }

    /// The samples of a point that have their end.
    pub fn samples(&self, point: u32) -> impl Iterator<Item = &Observed> {
        self.observed.get(&point).into_iter().flat_map(BTreeMap::values)
    }

    /// Why the run must end, where a threshold with `abort` fails by the samples of this point so far.
    pub fn aborts(&self, plan: &Plan, point: u32) -> Option<String> {
        let point = usize::try_from(point).ok()?;
        let judged = self.verdicts_of(plan, point);
        let failed = judged
            .into_iter()
            .find(|judged| judged.threshold.aborts && judged.judgement.verdict == Verdict::Fail)?;
        Some(failed.explain(plan))
    }

    fn verdicts_of(&self, plan: &Plan, place: usize) -> Vec<Judged> {
        let Some(point) = plan.points.get(place) else { return Vec::new() };
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        let nothing = BTreeMap::new();
        let samples = self.observed.get(&number).unwrap_or(&nothing);
        let judged = point.thresholds.iter().filter_map(|threshold| {
            // An axis is each pair's, and what adds up is of all pairs.
            let pairs = if threshold.axis().is_some() && adds(&threshold.figure) {
                plan.pairs.len().max(1) as f64
            } else {
                1.0
            };
            let bound = threshold.bound_at(&point.iteration).ok()? * pairs;
            let seen = samples.values().map(|observed| Observation {
                figure: observed.combined(&threshold.figure, threshold.comparison.is_from_above()),
                is_trusted: observed.is_trusted,
            });
            let all: Vec<Observation> = seen.collect();
            let judgement = threshold.judge(bound, &all, plan.schedule.with_confidence);
            Some(Judged { point: place, threshold: threshold.clone(), judgement })
        });
        judged.collect()
    }
}

impl Judged {
    /// A sentence with the threshold, the point and the figure.
    pub fn explain(&self, plan: &Plan) -> String {
        let point = plan.points.get(self.point).map(|point| point.describe()).unwrap_or_default();
        let figure = match self.judgement.figure {
            Some(figure) => format!("{figure:.6}"),
            None => "not measured".to_owned(),
        };
        let (text, bound) = (self.threshold.text(), self.judgement.bound);
        let why = self.judgement.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let verdict = match self.judgement.verdict {
            Verdict::Pass => "holds",
            Verdict::Fail => "is not met",
            Verdict::Undecided => "is undecided",
        };
        format!("{text} {verdict} at {point} (figure {figure}, bound {bound}){why}")
    }
}

/// The worst verdict; a failed threshold with `warn` counts for nothing.
pub fn worst(judged: &[Judged]) -> Verdict {
    let counting = judged.iter().filter(|judged| !judged.threshold.warns);
    counting.map(|judged| judged.judgement.verdict).max().unwrap_or(Verdict::Pass)
}
