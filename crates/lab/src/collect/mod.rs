//! Counters of a host, read beside the tests.
//!
//! * [`Collector`] runs in a host's agent. It decides when each source is read, and keeps its own
//!   processor time under a budget by reading the dearest source less often.
//! * [`Ticks`] are what the agent sends: the counters themselves, with their times.
//! * [`Gatherer`] runs in the controller. It turns ticks into series of rates and levels, in the
//!   controller's time.
//!
//! Readers come in as trait objects ([`Reader`]): this room doesn't know /proc.

mod collector;
mod gather;
mod host;
#[cfg(test)]
mod tests;

pub use collector::{BUDGET, Clock, Collector};
pub use gather::{Gathered, Gatherer, Series};
pub use host::{HostCollectors, OpenReaders};
pub use linerate_measure::collected::{Column, Reader, Rule, Source, Value, check_columns};

use serde::{Deserialize, Serialize};

/// Most rows of one message.
pub const MOST_ROWS: usize = 64;
/// The fewest readings a second that can be asked for.
pub const LEAST_HZ: f64 = 1.0;
/// The most readings a second that can be asked for.
pub const MOST_HZ: f64 = 10.0;
/// Most interfaces that can be named.
pub const MOST_INTERFACES: usize = 64;

/// What a host is to collect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What to read.
    pub sources: Vec<Source>,
    /// Readings a second, [`LEAST_HZ`] to [`MOST_HZ`].
    pub hz: f64,
    /// The network interfaces whose interrupts and drivers' counters are read; all physical ones where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
}

impl Request {
    /// Refuses what no host can do.
    ///
    /// # Errors
    ///
    /// What is wrong, as one sentence.
    pub fn check(&self) -> Result<(), String> {
        if !(LEAST_HZ..=MOST_HZ).contains(&self.hz) {
            let hz = self.hz;
            return Err(format!("hz = {hz} is not from {LEAST_HZ} to {MOST_HZ} readings a second"));
        }
        if self.sources.is_empty() {
            let names: Vec<_> = Source::ALL.iter().map(|source| source.name()).collect();
            return Err(format!(
                "no source to collect is named: name some of {}",
                names.join(", ")
            ));
        }
        let mut sources = self.sources.clone();
        sources.sort_unstable();
        if let Some(pair) = sources.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("the source {} is named twice", pair[0].name()));
        }
        if self.interfaces.len() > MOST_INTERFACES {
            let count = self.interfaces.len();
            return Err(format!(
                "{count} interfaces are named, and at most {MOST_INTERFACES} can be"
            ));
        }
        // A name of a network interface has at most 15 bytes (IFNAMSIZ, netdevice(7)).
        let is_name = |name: &&String| {
            !name.is_empty() && name.len() <= 15 && !name.contains(['/', ' ', '\0'])
        };
        match self.interfaces.iter().find(|name| !is_name(name)) {
            Some(name) => Err(format!("{name:?} can't be the name of a network interface")),
            None => Ok(()),
        }
    }
}

/// The values of a source's columns at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// When they were read, on the host's monotonic clock.
    pub monotonic_ns: u64,
    /// The same moment on the host's clock of UTC, since 1970.
    pub utc_ns: i64,
    /// A value for each column.
    pub values: Vec<Value>,
}

/// What one source of a host had at some moments that follow each other: a message from the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ticks {
    /// The source.
    pub source: Source,
    /// Readings a second now: what was asked for, or less where the budget requires it.
    pub hz: f64,
    /// Processor time that all collecting of this host has cost, as a share of one processor, over the time since it
    /// began.
    pub cpu_share: f64,
    /// The columns, where they are others than those of this source's last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<Column>>,
    /// The readings, in the order of time.
    pub rows: Vec<Row>,
    /// Why the source can't be read, where it can't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}
