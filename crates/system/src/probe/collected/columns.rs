//! Columns, made shortly.

use std::collections::BTreeMap;
use std::fs;

use linerate_measure::collected::{Column, Rule};

/// A metric before it has names: its source, type and unit, and how to get it.
#[derive(Clone, Copy)]
pub(super) struct Metric {
    pub(super) source: &'static str,
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) rule: Rule,
    pub(super) scale: f64,
}

impl Metric {
    /// The growth of a counter per second.
    pub(super) const fn rate(source: &'static str, name: &'static str, unit: &'static str) -> Self {
        Self { source, name, unit, rule: Rule::Rate, scale: 1.0 }
    }

    /// A level as it was read.
    pub(super) const fn level(
        source: &'static str,
        name: &'static str,
        unit: &'static str,
    ) -> Self {
        Self { source, name, unit, rule: Rule::Level, scale: 1.0 }
    }

    /// The same, multiplied.
    pub(super) const fn times(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// The same with another rule.
    pub(super) const fn by(self, rule: Rule) -> Self {
        Self { rule, ..self }
    }

    /// The column of this metric with names.
    pub(super) fn column(&self, names: BTreeMap<String, String>) -> Column {
        Column {
            source: self.source.to_owned(),
            metric: self.name.to_owned(),
            names,
            unit: self.unit.to_owned(),
            rule: self.rule,
            scale: self.scale,
        }
    }
}

/// Names from pairs.
pub(super) fn names<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Where a processor is (/sys/devices/system/cpu/cpuN/topology): `package`, `die`, `core`, and `thread`, its place among
/// those of its core. What the kernel doesn't tell is left out.
pub(super) fn place_of(cpu: u32) -> BTreeMap<String, String> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
    let number = |file: &str| {
        let text = fs::read_to_string(format!("{folder}/{file}")).ok()?;
        text.trim().parse::<i32>().ok().map(|number| number.to_string())
    };
    let thread = || {
        let text = fs::read_to_string(format!("{folder}/thread_siblings_list")).ok()?;
        let siblings = crate::probe::host::parse_cpu_list(&text)?;
        siblings.iter().position(|sibling| *sibling == cpu).map(|at| at.to_string())
    };
    let parts = [
        ("package", number("physical_package_id")),
        ("die", number("die_id")),
        ("core", number("core_id")),
        ("thread", thread()),
    ];
    parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
