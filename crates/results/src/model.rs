//! What a writer is given: runs, cells, and what a cell came to.

use linerate_measure::window::{Span, Timeline};
use serde::Serialize;

use crate::outcome::SampleOutcome;

/// How a run stands, or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Not ended: a process works on it, or died.
    Running,
    /// Ended as planned.
    Complete,
    /// Ended, and cells failed or are not to be trusted.
    Failed,
    /// Ended before its end by the user, a budget or a threshold; it can be resumed.
    Stopped,
}

impl RunStatus {
    /// The word that the store has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// How a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CellStatus {
    /// Not begun, or begun by a controller that died.
    Waiting,
    /// Being measured.
    Running,
    /// Measured.
    Done,
    /// All its attempts failed.
    Failed,
}

impl CellStatus {
    /// The word that the store has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::Waiting, Self::Running, Self::Done, Self::Failed]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

/// Where a run comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The version of the program that measured.
    pub version: String,
    /// What began it: `linerate stream`, `linerate matrix`, `iperf3`, ...
    pub command: String,
    /// The harness, as the Common Data Model has it: `linerate`, or the one whose run file was read.
    pub harness: String,
    /// The benchmarks, a list with commas.
    pub benchmarks: String,
    /// Who ran it, or empty.
    pub person: String,
    /// Their address, or empty.
    pub email: String,
}

/// A run that begins, with its plan frozen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewRun {
    /// Names it among all stores: 1 to 100 letters, digits, `-` and `.`. Empty: a new random UUID.
    pub uuid: String,
    /// The user's title, or empty.
    pub title: String,
    /// The user's marks.
    pub tags: Vec<(String, String)>,
    /// Where it comes from.
    pub origin: Origin,
    /// The plan as JSON.
    pub plan: String,
    /// A digest of the plan. A resumed run must have the same.
    pub plan_hash: String,
    /// The seed of its order.
    pub seed: Option<u64>,
    /// When it began (UTC, milliseconds since 1970).
    pub began_ms: i64,
    /// Its hosts.
    pub hosts: Vec<NewHost>,
    /// Its iterations: points of the matrix, in the matrix's order.
    pub iterations: Vec<NewIteration>,
    /// Its cells in the order in which they will be run. Each pair of iteration and sample stands there once.
    pub cells: Vec<NewCell>,
}

/// A host of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewHost {
    /// Its name in the plan; a run has each name once.
    pub name: String,
    /// How it is reached: `local`, `netns`, `ssh`, ...
    pub transport: String,
    /// What is known of it, as JSON.
    pub facts: String,
    /// Its clock less the controller's, in nanoseconds.
    pub offset_ns: Option<i64>,
    /// The truth is at most so far away.
    pub bound_ns: Option<i64>,
}

/// One point of the matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewIteration {
    /// Its parameters, in order.
    pub params: Vec<NewParam>,
    /// The metric that it is judged by, as `source::type`, or empty.
    pub primary_metric: String,
}

/// A parameter of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewParam {
    /// The benchmark that takes it.
    pub benchmark: String,
    /// Its name.
    pub arg: String,
    /// Its value.
    pub value: String,
    /// Who gets it: `client`, `server` or `all`.
    pub role: String,
    /// The engines that get it, a list such as `1-4+7`; empty: all.
    pub engines: String,
}

/// An iteration and one of its samples, the unit of schedule and resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewCell {
    /// The place of its iteration in [`NewRun::iterations`], from 0.
    pub iteration: u32,
    /// The number of its sample, from 1.
    pub sample: u32,
}

/// What an attempt at a cell came to. All of it is stored in one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct CellEnd {
    /// How the cell stands after it: `Waiting` where it will be tried again.
    pub status: CellStatus,
    /// The worst exit code of its programs.
    pub exit_code: Option<i32>,
    /// Why it failed, or empty.
    pub reason: String,
    /// When it ended (UTC, milliseconds since 1970).
    pub ended_ms: i64,
    /// The 99th percentile of how late its hosts began.
    pub skew_p99_us: Option<i64>,
    /// The time that counts, called `measurement`; `None` where nothing was measured.
    pub period: Option<Span>,
    /// Documents, whole.
    pub documents: Vec<NewDocument>,
    /// The times that the series share.
    pub timelines: Vec<Timeline>,
    /// The series.
    pub series: Vec<NewSeries>,
    /// The metric that says most of it, as `source::type`: its iteration's, where that has none yet. May be empty.
    pub primary_metric: String,
    /// Sentences about it.
    pub notes: Vec<String>,
    /// What its documents come to.
    pub outcome: SampleOutcome,
}

impl CellEnd {
    /// An attempt of which nothing came but this status and reason.
    pub fn without_result(status: CellStatus, reason: impl Into<String>, ended_ms: i64) -> Self {
        Self {
            status,
            exit_code: None,
            reason: reason.into(),
            ended_ms,
            skew_p99_us: None,
            period: None,
            documents: Vec::new(),
            timelines: Vec::new(),
            series: Vec::new(),
            primary_metric: String::new(),
            notes: Vec::new(),
            outcome: SampleOutcome::default(),
        }
    }
}

/// A document of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDocument {
    /// The host that wrote it, or empty.
    pub host: String,
    /// Its format, such as `linerate.run/1`.
    pub kind: String,
    /// Its text. The store deflates it.
    pub body: String,
}

/// How values of several series become one, where a query doesn't say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregation {
    /// The sum of their averages over time.
    #[default]
    Sum,
    /// The average over time of all that has a value.
    Avg,
    /// The greatest value.
    Max,
    /// The least value.
    Min,
}

impl Aggregation {
    /// Its name in queries and in the Common Data Model.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Sum, Self::Avg, Self::Max, Self::Min].into_iter().find(|one| one.name() == name)
    }

    /// Whether it looks at single values.
    pub(crate) fn is_extreme(self) -> bool {
        matches!(self, Self::Max | Self::Min)
    }
}

/// A series of values.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSeries {
    /// Whether it belongs to the cell's period. Otherwise it is a collector's and belongs to the run.
    pub in_period: bool,
    /// Who measured: `linerate`, `iperf`, `mpstat`, ...
    pub source: String,
    /// The metric, such as `rx-Gbps`.
    pub metric: String,
    /// `throughput`, `count`, `latency`, ...
    pub class: String,
    /// The unit of its values, such as `Gbit/s`.
    pub unit: String,
    /// How its values become one with others'.
    pub aggregation: Aggregation,
    /// What tells it from others of the metric; each name stands once.
    pub labels: Vec<(String, String)>,
    /// The place of its times in [`CellEnd::timelines`].
    pub timeline: usize,
    /// A value for each span of the timeline, finite.
    pub values: Vec<f64>,
}

/// What a collector of one host counted in about a second, while a cell runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The host.
    pub host: String,
    /// The collector.
    pub collector: String,
    /// When (UTC, milliseconds since 1970, by the controller's clock).
    pub at_ms: i64,
    /// What it counted; the store doesn't read it.
    pub data: Vec<u8>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// How.
    pub status: RunStatus,
    /// Whether cells or hosts are missing.
    pub partial: bool,
    /// When (UTC, milliseconds since 1970).
    pub ended_ms: i64,
    /// The verdict of iterations by their place, such as `pass`, `fail` or `undecided`.
    pub iterations: Vec<(u32, String)>,
}

/// A run that was begun before, with what is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// The plan as JSON.
    pub plan: String,
    /// The digest of the plan.
    pub plan_hash: String,
    /// The seed of its order.
    pub seed: Option<u64>,
    /// Its cells in the recorded order, with how each stands. Cells that a dead controller left running wait.
    pub cells: Vec<RecordedCell>,
}

/// A cell as the store has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedCell {
    /// Its place in the run's order, from 0.
    pub position: u32,
    /// The place of its iteration, from 0.
    pub iteration: u32,
    /// The number of its sample, from 1.
    pub sample: u32,
    /// How it stands.
    pub status: CellStatus,
    /// The attempts made, the one that a dead controller left among them.
    pub attempts: u32,
}
