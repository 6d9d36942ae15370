//! Whether one way to measure gives other figures than another: two commands, run in pairs, or two sets of stored
//! runs.
//!
//! Pairs are the sound way. The two runs of a pair stand beside each other in time, so what drifts or comes and goes
//! meets both, and a drawn order keeps noise with a period of its own from taking a side. The estimate is the median
//! of the pairs' ratios with its exact interval: no distribution is assumed, and a few runs that went wrong move it
//! little. Runs that were not interleaved are compared by Welch's interval, and are always doubtful.

mod condition;
mod differences;
mod document;
mod drift;
mod estimate;
mod figures;
mod interval;
mod order;
mod printed;
mod stored;
mod student;
#[cfg(test)]
mod tests;

pub use condition::Condition;
pub use differences::{Difference, MOST_DIFFERENCES, differences};
pub use document::{Asked, ComparedRun, Comparison, ComparisonStatus, JudgedCondition};
pub use drift::Drift;
pub(crate) use drift::drift_of;
pub use estimate::{CONFIDENCE, FigureRatio, Finding, Method, compare_pairs, compare_stored};
pub use figures::{COMPARED, Compared, Figures, figures_of, figures_of_run};
pub use interval::{MOST_VALUES, median, median_interval, rank};
pub use order::{Side, draw_order};
pub use printed::PrintedBy;
pub use stored::StoredRuns;
pub(crate) use student::{regularised_beta, two_sided};

pub use crate::trust::Trust;
