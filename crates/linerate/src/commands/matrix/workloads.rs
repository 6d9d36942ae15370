//! What a plan can measure: linerate's own commands, and those of other tools.

use linerate_lab::plan::{Fault, Prepared, Workloads};
use linerate_measure::matrix::Iteration;

use super::native::Native;
use super::tools::{TOOLS, Tool};

/// The commands of this program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commands;

impl Workloads for Commands {
    fn names(&self) -> Vec<String> {
        let own = Native::MEASURING.iter().map(|native| native.name().to_owned());
        own.chain(TOOLS.iter().map(|tool| tool.name.to_owned())).collect()
    }

    fn parameters(&self, workload: &str) -> Vec<String> {
        match (Native::of_name(workload), Tool::of_name(workload)) {
            (Some(native), _) => native.parameters(),
            (None, Some(tool)) => tool.parameters(),
            (None, None) => Vec::new(),
        }
    }

    fn prepare(&self, workload: &str, iteration: &Iteration) -> Result<Prepared, Fault> {
        match (Native::of_name(workload), Tool::of_name(workload)) {
            (Some(native), _) => native.prepare(iteration),
            (None, Some(tool)) => tool.prepare(iteration),
            (None, None) => {
                Err(Fault { parameter: None, why: format!("is no workload: {workload}") })
            }
        }
    }
}

/// A value of a flag that may stand alone.
pub(super) enum Flag<'a> {
    /// The flag is left out.
    Off,
    /// The flag stands alone.
    Alone,
    /// The flag has this value.
    With(&'a str),
}

impl<'a> Flag<'a> {
    /// `true` and `false` switch a flag that takes no value.
    pub(super) fn of(value: &'a str, takes_value: bool) -> Result<Self, String> {
        match (value, takes_value) {
            (value, true) => Ok(Self::With(value)),
            ("true", false) => Ok(Self::Alone),
            ("false", false) => Ok(Self::Off),
            (value, false) => Err(format!("is {value}: write true or false")),
        }
    }
}
