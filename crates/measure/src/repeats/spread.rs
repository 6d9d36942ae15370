//! How much one figure varies over runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LEAST_WITH_INTERVAL;
use crate::comparison::{COMPARED, CONFIDENCE, Compared, Figures, median};
use crate::confidence::half_width;

/// One figure over the runs that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureSpread {
    /// The figure: the name of a metric, or of a quantile of one.
    pub name: String,
    /// How many runs have it.
    pub runs: usize,
    /// The median of the runs.
    pub median: f64,
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
    /// The lower end of the interval of the mean; absent of fewer than 3 runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The interval's confidence: the share of such series whose interval holds the mean of all runs.
    pub confidence: f64,
}

impl FigureSpread {
    /// The figure of this name; `None` where no run has it.
    pub fn of(name: &str, runs: &[Figures]) -> Option<Self> {
        let of_run = |figures: &Figures| figures.get(name).copied().filter(|one| one.is_finite());
        let values: Vec<f64> = runs.iter().filter_map(of_run).collect();
        let median = median(&values)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let half = half_width(&values, 95).filter(|_| values.len() >= LEAST_WITH_INTERVAL);
        Some(Self {
            name: name.to_owned(),
            runs: values.len(),
            median,
            mean,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            greatest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            low: half.map(|half| mean - half),
            high: half.map(|half| mean + half),
            confidence: CONFIDENCE,
        })
    }

    /// Half the interval's width as a share of the mean; `None` where there is no interval, or the mean is 0.
    pub fn relative_half_width(&self) -> Option<f64> {
        let width = self.high? - self.low?;
        (self.mean > 0.0).then(|| width / 2.0 / self.mean)
    }

    /// The figure's place among all that are compared.
    pub fn compared(&self) -> Option<&'static Compared> {
        Compared::of_name(&self.name)
    }
}

/// Every figure that any of the runs has, in the order of tables.
pub fn spreads_of(runs: &[Figures]) -> Vec<FigureSpread> {
    COMPARED.iter().filter_map(|one| FigureSpread::of(&one.name(), runs)).collect()
}
