//! What a plan can measure: the seam between plans and the program's own commands.

use linerate_measure::matrix::Iteration;

use super::{Search, Work};

/// What a search for the highest rate that keeps limits is called: the workload of `[[hunt]]`.
pub const HUNT: &str = "hunt";

/// The workloads that a plan can name.
pub trait Workloads {
    /// Their names, without [`HUNT`], which the other functions know as well.
    fn names(&self) -> Vec<String>;

    /// The names of a workload's parameters; those for its server begin with `server.`.
    fn parameters(&self, workload: &str) -> Vec<String>;

    /// The command lines of a point, checked as the commands themselves would.
    ///
    /// # Errors
    ///
    /// [`Fault`] where the commands would refuse the values.
    fn prepare(&self, workload: &str, iteration: &Iteration) -> Result<Prepared, Fault>;
}

/// A point of the matrix, ready to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Its command lines.
    pub work: Work,
    /// A hunt's: how several pairs make it in lockstep.
    pub search: Option<Box<Search>>,
    /// How long one sample takes, without set-up, in nanoseconds.
    pub expected_ns: u64,
    /// The longest that it may take, where that is known to be more, in nanoseconds.
    pub longest_ns: Option<u64>,
    /// The figures that its result can have.
    pub figures: Vec<String>,
    /// Whether its server can't choose a free port by itself.
    pub needs_port: bool,
}

/// Why a point can't be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The parameter, where one is to blame.
    pub parameter: Option<String>,
    /// Why, a sentence that tells the value and the way out.
    pub why: String,
}
