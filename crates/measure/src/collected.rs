//! What collectors read from a host beside a test: the counters of its kernel and drivers.
//!
//! A [`Reader`] reads one [`Source`] (a file of /proc, say) and gives a [`Value`] for each of its
//! [`Column`]s. A value is the counter itself, never a rate: rates come from two readings, where
//! both are known. So a lost reading costs resolution and no counts.
//!
//! Names of metrics and of what tells series apart are those of Crucible's Common Data Model.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Labels that every series of a cell gets besides.
const OWN_NAMES: [&str; 3] = ["csid", "cstype", "hostname"];

/// The longest name, in bytes.
pub const LONGEST_NAME_BYTES: usize = 128;
/// Most names that one column has.
pub const MOST_NAMES: usize = 12;
/// Most columns that one source has.
pub const MOST_COLUMNS: usize = 16_384;

/// What can be collected.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Time of each processor, processes made, context switches (/proc/stat).
    Cpu,
    /// Interrupts of each processor and line (/proc/interrupts).
    Interrupts,
    /// Soft interrupts of each processor and kind (/proc/softirqs).
    Softirqs,
    /// Packets that each processor took from its queues (/proc/net/softnet_stat).
    Softnet,
    /// Bytes, packets and errors of each network device (/proc/net/dev).
    Net,
    /// Counters of IP, TCP, UDP and ICMP (/proc/net/snmp, snmp6, netstat, sockstat).
    Protocols,
    /// Memory, paging and the pressure on memory (/proc/meminfo, vmstat, pressure/memory).
    Memory,
    /// Load averages and the pressure on processors and disks (/proc/loadavg, pressure/cpu, io).
    Scheduler,
    /// The counters of network interfaces' drivers (ETHTOOL_GSTATS, as `ethtool -S` shows them).
    Ethtool,
}

impl Source {
    /// Every source.
    pub const ALL: [Self; 9] = [
        Self::Cpu,
        Self::Interrupts,
        Self::Softirqs,
        Self::Softnet,
        Self::Net,
        Self::Protocols,
        Self::Memory,
        Self::Scheduler,
        Self::Ethtool,
    ];

    /// Its name in plans and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Interrupts => "interrupts",
            Self::Softirqs => "softirqs",
            Self::Softnet => "softnet",
            Self::Net => "net",
            Self::Protocols => "protocols",
            Self::Memory => "memory",
            Self::Scheduler => "scheduler",
            Self::Ethtool => "ethtool",
        }
    }

    /// The source of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// How values of a column become values of its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The value itself.
    Level,
    /// Its growth per second.
    Rate,
    /// Its growth as a share of the growth of the column with this index.
    Share(u32),
    /// No metric: other columns are shares of it.
    Whole,
}

/// One metric of a source, and how to get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The metric's source in the Common Data Model: `mpstat`.
    pub source: String,
    /// The metric's type there: `Busy-CPU`.
    #[serde(rename = "type")]
    pub metric: String,
    /// What tells the series of this type apart: `num` = `3`.
    pub names: BTreeMap<String, String>,
    /// The metric's unit: `Gbit/s`.
    pub unit: String,
    /// How values become the metric.
    pub rule: Rule,
    /// What the result of the rule is multiplied with to be in the unit.
    pub scale: f64,
}

/// What a column had at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A counter.
    Count(u64),
    /// A level. Never NaN or infinite.
    Level(f64),
    /// It could not be read.
    Absent,
}

impl Value {
    /// The level, where the number is finite.
    pub fn level(number: f64) -> Self {
        if number.is_finite() { Self::Level(number) } else { Self::Absent }
    }
}

/// A counter is an integer, a level has a decimal point, and what is absent is null.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Level(level) => serializer.serialize_f64(*level),
            Self::Absent => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AValue;
        impl Visitor<'_> for AValue {
            type Value = Value;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a counter, a level or null")
            }

            fn visit_u64<E>(self, count: u64) -> Result<Value, E> {
                Ok(Value::Count(count))
            }

            fn visit_f64<E: serde::de::Error>(self, level: f64) -> Result<Value, E> {
                match Value::level(level) {
                    Value::Absent => Err(E::invalid_value(Unexpected::Float(level), &self)),
                    level => Ok(level),
                }
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Absent)
            }
        }
        deserializer.deserialize_any(AValue)
    }
}

/// Reads one source of this host.
///
/// A reader keeps its files open between readings.
pub trait Reader: Send {
    /// What it reads.
    fn source(&self) -> Source;

    /// Replaces `values` with one value for each column. Returns whether the columns are others than before; they are
    /// at the first reading.
    ///
    /// # Errors
    ///
    /// When nothing can be read: why, as one sentence.
    fn read(&mut self, values: &mut Vec<Value>) -> Result<bool, String>;

    /// The columns of the last reading.
    fn columns(&self) -> &[Column];
}

/// Refuses columns that no reader makes.
///
/// # Errors
///
/// What is wrong, as one sentence.
pub fn check_columns(columns: &[Column]) -> Result<(), String> {
    if columns.len() > MOST_COLUMNS {
        return Err(format!("a source has {} columns, and at most {MOST_COLUMNS}", columns.len()));
    }
    for column in columns {
        let names = column.names.iter().flat_map(|(name, value)| [name, value]);
        let all = [&column.source, &column.metric, &column.unit];
        if let Some(long) = names.chain(all).find(|name| name.len() > LONGEST_NAME_BYTES) {
            let beginning: String = long.chars().take(40).collect();
            return Err(format!(
                "the name \"{beginning}...\" of a column is longer than {LONGEST_NAME_BYTES} bytes"
            ));
        }
        if let Some((name, _)) =
            column.names.iter().find(|(name, _)| OWN_NAMES.contains(&name.as_str()))
        {
            return Err(format!(
                "column {} has the name {name}, which is the store's own",
                column.metric
            ));
        }
        if column.names.len() > MOST_NAMES {
            let count = column.names.len();
            return Err(format!(
                "column {} has {count} names, and at most {MOST_NAMES}",
                column.metric
            ));
        }
        if !column.scale.is_finite() {
            return Err(format!("the scale of column {} is no number", column.metric));
        }
        let has_whole = |at: u32| {
            columns.get(at as usize).is_some_and(|whole| matches!(whole.rule, Rule::Whole))
        };
        if matches!(column.rule, Rule::Share(at) if !has_whole(at)) {
            return Err(format!("column {} is a share of none", column.metric));
        }
    }
    Ok(())
}
