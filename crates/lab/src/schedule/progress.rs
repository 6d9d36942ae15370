//! What is done of a plan.

use linerate_measure::matrix::Cell;

use crate::judge::Judge;

/// The cells in their order, with what is done of each. A run that goes on begins with what the store has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The cells in the order in which they are measured.
    pub cells: Vec<CellState>,
    /// What the cells came to that have their end.
    pub judge: Judge,
}

/// What is done of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellState {
    /// The cell.
    pub cell: Cell,
    /// Whether it has its end: measured, or given up.
    pub is_over: bool,
    /// Attempts that were made.
    pub attempts: u32,
    /// Those of them that failed by themselves, since this controller has the run.
    pub failures: u32,
}

impl Progress {
    /// Nothing is done yet of these cells.
    pub fn new(cells: impl IntoIterator<Item = Cell>) -> Self {
        let state = |cell| CellState { cell, is_over: false, attempts: 0, failures: 0 };
        Self { cells: cells.into_iter().map(state).collect(), judge: Judge::default() }
    }

    /// How many cells have their end.
    pub fn over(&self) -> usize {
        self.cells.iter().filter(|state| state.is_over).count()
    }
}
