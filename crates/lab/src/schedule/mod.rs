//! Carries a plan out: cell after cell in the recorded order, and tells of all that happens.

mod attempt;
mod event;
mod fleet;
mod lockstep;
mod program;
mod progress;
mod run;
mod start;
mod verdict;
mod ways;

pub use event::{CellEnd, CellStatus, Document, Event, RunEnding, Sink, SinkError, Skew};
pub use fleet::Fleet;
pub use progress::{CellState, Progress};
pub use run::run;

pub(crate) use run::longest_s;

#[cfg(test)]
mod tests;
