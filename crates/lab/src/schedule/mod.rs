//! Carries a plan out: cell after cell in the recorded order, and tells of all that happens.

mod event;
mod progress;

pub use event::{CellEnd, CellStatus, Document, Event, RunEnding, Sink, SinkError, Skew};
pub use progress::{CellState, Progress};
