//! Several runs of one plan, one after the other: what they come to, how much they vary, and when there are enough.
//!
//! An interval of one run's parts says how that run varied. Only runs vary as runs do (Kalibera and Jones, Rigorous
//! benchmarking in reasonable time, 2013), so confidence comes from the figures of at least [`LEAST_WITH_INTERVAL`]
//! runs: Student's interval of their mean. The median stands beside the mean, since one spoiled run moves it little.

mod document;
mod spread;
#[cfg(test)]
mod tests;

pub use document::{Ending, Precision, RepeatedRun, Repeats, RepeatsStatus};
pub use spread::{FigureSpread, spreads_of};

use crate::comparison::{COMPARED, Figures};

/// The fewest runs that have an interval.
pub const LEAST_WITH_INTERVAL: usize = 3;
/// The fewest runs after which a precision may end a series. A rule that looks at fewer stops where these agree by
/// chance: from 3 runs on its intervals covered 91 % of means in place of 95 %.
pub const LEAST_WITH_PRECISION: usize = 8;
/// The most runs for a precision where no other number is asked for.
pub const USUAL_MOST_RUNS: usize = 60;
/// The most runs that may be asked for.
pub const MOST_RUNS: usize = 1_000;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// So many runs; with a precision the most.
    pub most_runs: usize,
    /// Half the interval's width as a share of the mean, 0.02 for 2 %, at which a series ends before `most_runs`.
    pub precision: Option<f64>,
}

impl Asked {
    /// Whether a further run is to be made after runs with these figures.
    pub fn wants_another(&self, runs: &[Figures]) -> bool {
        runs.len() < self.most_runs && !self.is_reached(runs)
    }

    /// Whether the runs are as precise as asked for; never where nothing was asked for.
    pub(super) fn is_reached(&self, runs: &[Figures]) -> bool {
        let reached = || main_spread(runs).and_then(|spread| spread.relative_half_width());
        let measured = runs.iter().filter(|figures| !figures.is_empty()).count();
        measured >= LEAST_WITH_PRECISION
            && self.precision.is_some_and(|asked| reached().is_some_and(|width| width <= asked))
    }
}

/// The figure that a precision is about, the first that was measured: goodput, transactions or connections per second.
fn main_spread(runs: &[Figures]) -> Option<FigureSpread> {
    COMPARED.iter().find_map(|one| FigureSpread::of(&one.name(), runs))
}
