//! Whether samples meet a threshold.

use serde::Serialize;

use super::{Statistic, Threshold};
use crate::confidence::half_width;

/// The confidence of an interval around a mean, in percent.
const LEVEL_PERCENT: u32 = 95;

/// A figure of one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The figure; absent where it was not measured.
    pub figure: Option<f64>,
    /// Whether the sample can be trusted.
    pub is_trusted: bool,
}

/// What a threshold came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// The samples can't tell.
    Undecided,
    /// It doesn't hold.
    Fail,
}

/// A verdict with what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The statistic of the figures; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<f64>,
    /// What it was compared with.
    pub bound: f64,
    /// Why the samples can't tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Threshold {
    /// Judges the figures of an iteration's samples. `with_confidence`: a mean whose 95 % interval has the bound in it
    /// is undecided.
    pub fn judge(
        &self,
        bound: f64,
        observations: &[Observation],
        with_confidence: bool,
    ) -> Judgement {
        let undecided = |figure: Option<f64>, why: &str| Judgement {
            verdict: Verdict::Undecided,
            figure,
            bound,
            why: Some(why.to_owned()),
        };
        if observations.is_empty() {
            return undecided(None, "no sample was measured");
        }
        let figures: Option<Vec<f64>> = observations.iter().map(|one| one.figure).collect();
        let Some(figures) = figures else {
            return undecided(None, "a sample lacks the figure");
        };
        let figure = self.statistic.of(&figures);
        if observations.iter().any(|one| !one.is_trusted) {
            return undecided(figure, "a sample is not to be trusted");
        }
        let Some(value) = figure else {
            return undecided(None, "no sample was measured");
        };
        if with_confidence && self.statistic == Statistic::Mean {
            match half_width(&figures, LEVEL_PERCENT) {
                None => return undecided(figure, "one sample has no confidence interval"),
                Some(width) if (value - bound).abs() < width => {
                    return undecided(figure, "the 95 % interval of the mean has the bound in it");
                }
                Some(_) => {}
            }
        }
        let holds = self.comparison.holds(value, bound);
        let verdict = if holds { Verdict::Pass } else { Verdict::Fail };
        Judgement { verdict, figure, bound, why: None }
    }
}

impl Statistic {
    fn of(self, figures: &[f64]) -> Option<f64> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match self {
            Self::Mean if sorted.is_empty() => None,
            Self::Mean => Some(sorted.iter().sum::<f64>() / sorted.len() as f64),
            Self::Min => sorted.first().copied(),
            Self::Max => sorted.last().copied(),
            Self::P50 if sorted.len() % 2 == 1 => sorted.get(middle).copied(),
            Self::P50 => {
                let low = sorted.get(middle.checked_sub(1)?)?;
                Some((low + sorted.get(middle)?) / 2.0)
            }
        }
    }
}
