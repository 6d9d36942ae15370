//! A frozen plan of a matrix: hosts, pairs of them, and the points that each is to be measured at.
//!
//! A user writes TOML or JSON ([`read_plan`]); another harness's run file is translated. Either becomes a [`Plan`], in
//! which nothing is left to look up: every point has the words of its command lines, and every pair has its hosts,
//! address and port.

mod host;
mod node;
mod pods;
mod read;
mod schema;
mod topology;
mod work;
mod workloads;

pub use host::{HostSpec, KubernetesHost, SshHost, Via};
pub use read::{TEXT_BYTES_MAX, read_plan};
pub use schema::schema;
pub use topology::{Crossing, Pair, Placement, Topology, TopologyError};
pub use work::{Known, Reached, Ready, Search, TaskSpec, Word, Work};
pub use workloads::{Fault, HUNT, Prepared, Workloads};

use std::collections::BTreeMap;
use std::fmt;

use linerate_measure::matrix::Iteration;
use linerate_measure::order::Order;
use linerate_measure::threshold::Threshold;
use linerate_measure::units::render_duration_ns;
use serde::{Deserialize, Serialize};

use crate::collect::Request;

/// The most cells of a plan.
const CELLS_MAX: u64 = 1_000_000;

/// What is to be measured, with nothing left to look up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The format of the file that the plan was read from: [`Plan::SCHEMA`], or another harness's.
    pub schema: String,
    /// A title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Marks that are kept with every cell.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The hosts by name.
    pub hosts: BTreeMap<String, HostSpec>,
    /// The pairs of hosts, all of which run at once in each cell.
    pub pairs: Vec<Pair>,
    /// How the cells follow each other.
    pub schedule: Schedule,
    /// What hosts count beside the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collect: Option<Request>,
    /// The points of the matrix, in its order.
    pub points: Vec<Point>,
}

impl Plan {
    /// The name and version of the format that users write.
    pub const SCHEMA: &'static str = "linerate.matrix/1";

    /// Whether there are not too many cells, and the budget holds a round of them.
    ///
    /// # Errors
    ///
    /// [`PlanError`] names the field.
    pub fn check_size(&self) -> Result<(), PlanError> {
        let samples = self.schedule.samples;
        let cells = (self.points.len() as u64).saturating_mul(u64::from(samples));
        if cells > CELLS_MAX {
            let why =
                format!("is {samples}, which makes {cells} cells, more than {CELLS_MAX}: lower it");
            return Err(PlanError::new("schedule.samples", why));
        }
        let Some(budget_ns) = self.schedule.budget_ns else { return Ok(()) };
        let round_ns = self.round_ns();
        if budget_ns < round_ns {
            let why = format!(
                "is {}, and one sample of each point takes {}: raise it, or take points out",
                render_duration_ns(budget_ns),
                render_duration_ns(round_ns)
            );
            return Err(PlanError::new("schedule.budget", why));
        }
        Ok(())
    }

    /// How long one sample of each point takes, without set-up, in nanoseconds.
    pub fn round_ns(&self) -> u64 {
        self.points
            .iter()
            .fold(0, |sum, Point { expected_ns, .. }| sum.saturating_add(*expected_ns))
    }
}

/// One point of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What is measured: `stream`, `rr`, `iperf3`, ...; [`HUNT`] is a search.
    pub workload: String,
    /// The values of its axes. A name that begins with `server.` is for the server.
    pub iteration: Iteration,
    /// The command lines: one [`Work`] for all pairs, or one for each pair in the order of [`Plan::pairs`].
    pub work: Vec<Work>,
    /// A search of several pairs, in the place of their clients' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Box<Search>>,
    /// What its figures must be.
    #[serde(default)]
    pub thresholds: Vec<Threshold>,
    /// How long one sample takes, without set-up, in nanoseconds.
    pub expected_ns: u64,
    /// The longest that it may take, where that is known to be more, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<u64>,
}

impl Point {
    /// The workload and the values, for people.
    pub fn describe(&self) -> String {
        let settings = self.iteration.settings.iter();
        let settings = settings.map(|one| format!(" {}={}", one.name, one.value));
        format!("{}{}", self.workload, settings.collect::<String>())
    }

    /// The longest that one sample may take, without set-up, in nanoseconds.
    pub fn most_ns(&self) -> u64 {
        self.longest_ns.unwrap_or(0).max(self.expected_ns)
    }

    /// The command lines of a pair by its place in [`Plan::pairs`].
    pub fn work_of(&self, place: usize) -> Option<&Work> {
        match self.work.as_slice() {
            [for_all] => Some(for_all),
            for_each => for_each.get(place),
        }
    }
}

/// How the cells follow each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// How often each point is measured.
    pub samples: u32,
    /// The order.
    pub order: Order,
    /// The seed of a random order; absent: drawn when the run begins, and recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// A cell is given up after so many failed attempts.
    pub max_failures: u32,
    /// Whole rounds that don't fit into so much time are dropped, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// What happens when a host is lost.
    pub on_host_loss: OnHostLoss,
    /// Whether a mean whose 95 % interval has a threshold's bound in it is undecided.
    #[serde(default)]
    pub with_confidence: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            samples: 1,
            order: Order::default(),
            seed: None,
            max_failures: 1,
            budget_ns: None,
            on_host_loss: OnHostLoss::Stop,
            with_confidence: false,
        }
    }
}

/// What happens when a host is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnHostLoss {
    /// The run ends and can be resumed.
    #[default]
    Stop,
    /// The pairs without the host go on.
    Continue,
}

/// What is wrong with a plan: the field, and a clause with its value and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// Where it is, such as `cells[1].rate`.
    pub place: String,
    /// What is wrong with it.
    pub why: String,
}

impl PlanError {
    fn new(place: &str, why: impl Into<String>) -> Self {
        Self { place: place.to_owned(), why: why.into() }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, why } = self;
        // A clause goes on from the name of the field; a sentence of its own stands behind a colon.
        let goes_on = ["is ", "has ", "have ", "names ", "can't ", "collide"];
        let separator = if goes_on.iter().any(|word| why.starts_with(word)) { "" } else { ":" };
        write!(f, "{place}{separator} {why}")
    }
}

impl std::error::Error for PlanError {}
