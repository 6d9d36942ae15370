//! What happens while a plan is carried out.

use linerate_measure::matrix::Cell;
use linerate_measure::{Role, Run};

/// What takes the events.
pub trait Sink {
    /// Takes an event. When it returns, the event counts as kept.
    ///
    /// # Errors
    ///
    /// [`SinkError`] ends the run: what can't be kept need not be measured.
    fn handle(&mut self, event: &Event) -> Result<(), SinkError>;
}

/// Why an event can't be kept: a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkError(pub String);

/// Something that happened. Times are nanoseconds since 1970, UTC, by the controller's clock.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A host is ready.
    HostReady {
        /// Its name in the plan.
        host: String,
        /// What its agent told of it, as JSON.
        facts: String,
        /// Its clock less the controller's.
        offset_ns: i64,
        /// The truth is at most so far away.
        bound_ns: u64,
    },
    /// An attempt at a cell begins.
    CellBegan {
        /// The cell's place in the order, from 0.
        position: u32,
        /// The cell.
        cell: Cell,
        /// The attempt, from 1.
        attempt: u32,
        /// When.
        at_ns: i64,
    },
    /// All clients of a cell are told to start at this time.
    Starting {
        /// The cell's place in the order.
        position: u32,
        /// The time.
        at_ns: i64,
    },
    /// A program of a cell printed a record of NDJSON.
    Record {
        /// The cell's place in the order.
        position: u32,
        /// The number of the pair.
        pair: u32,
        /// The end.
        role: Role,
        /// The record, as it was printed.
        json: String,
    },
    /// A host's collector counted.
    Ticks {
        /// The cell's place in the order; absent between cells.
        position: Option<u32>,
        /// The host.
        host: String,
        /// The collector.
        collector: String,
        /// The time of the first reading, by the host's clock.
        from_ns: i64,
        /// That clock less the controller's.
        offset_ns: i64,
        /// What was counted, as the collector wrote it.
        data: String,
    },
    /// An attempt at a cell is over.
    CellEnded(Box<CellEnd>),
    /// A host doesn't answer any more.
    HostLost {
        /// The host.
        host: String,
        /// Why, a sentence.
        why: String,
    },
    /// Something the user should know.
    Note {
        /// The cell's place in the order; absent: of the run.
        position: Option<u32>,
        /// The sentence.
        text: String,
    },
    /// The run is over, or stops here.
    RunEnded {
        /// How.
        ending: RunEnding,
        /// When.
        at_ns: i64,
    },
}

/// How an attempt at a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CellEnd {
    /// The cell's place in the order.
    pub position: u32,
    /// The cell.
    pub cell: Cell,
    /// The attempt, from 1.
    pub attempt: u32,
    /// How the cell stands after it.
    pub status: CellStatus,
    /// Why it failed or is not to be trusted; empty where nothing speaks against it.
    pub reason: String,
    /// The worst exit code of its programs.
    pub exit_code: u8,
    /// When it began and ended.
    pub span_ns: (i64, i64),
    /// How late the clients began.
    pub skew: Option<Skew>,
    /// What came out: the documents of clients, which have the results, then those that servers wrote.
    pub documents: Vec<Document>,
    /// Sentences about it.
    pub notes: Vec<String>,
}

impl CellEnd {
    /// The results: one for each pair that has one.
    pub fn runs(&self) -> impl Iterator<Item = &Run> + Clone {
        let of_clients = self.documents.iter().filter(|document| document.role == Role::Client);
        of_clients.map(|document| &*document.run)
    }
}

/// How a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellStatus {
    /// Measured.
    Done,
    /// Measured, and not to be trusted.
    Untrusted,
    /// This attempt failed, and another will be made.
    Again,
    /// All attempts failed.
    Failed,
}

/// A document of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The number of the pair.
    pub pair: u32,
    /// The host that wrote it.
    pub host: String,
    /// How far that host's clock is ahead of the controller's.
    pub ahead_ns: i64,
    /// The end that wrote it.
    pub role: Role,
    /// The document.
    pub run: Box<Run>,
}

/// How late the clients of a cell began, after the time they were told; less than 0: before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// The earliest.
    pub min_ns: i64,
    /// The median.
    pub p50_ns: i64,
    /// The 99th percentile.
    pub p99_ns: i64,
    /// The latest.
    pub max_ns: i64,
    /// The clocks of the hosts are known to within so much.
    pub bound_ns: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnding {
    /// Every cell has its end.
    Complete,
    /// Rounds at the end were dropped for the budget.
    OverBudget {
        /// Cells that were dropped.
        dropped: u32,
    },
    /// A threshold with `abort` failed.
    Aborted {
        /// Which, and why.
        why: String,
    },
    /// A host was lost.
    HostLost {
        /// Which, and why.
        why: String,
    },
    /// The user stopped it.
    Interrupted,
}
