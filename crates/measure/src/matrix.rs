//! The points of a parameter matrix.
//!
//! An [`Axis`] is a name with a list of values. Axes are crossed: every value of one meets every value of the others,
//! and the last axis varies fastest. Axes of a *zip group* have equally many values and step together; the group stands
//! at the place of its first axis. An *exclusion* drops the points that have all of its values.
//!
//! Words: an *iteration* is one point, a *sample* is one execution of it, a *cell* is a sample of an iteration.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

/// The most points of one matrix.
pub const ITERATIONS_MAX: usize = 100_000;

/// The most rules that leave points out: each point is compared with each rule.
pub const EXCLUSIONS_MAX: usize = 1_000;

/// A parameter with its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The parameter's name.
    pub name: String,
    /// Its values as words, in order. At least one.
    pub values: Vec<String>,
}

/// Axes with the rules that combine them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// The axes, the last one varies fastest.
    pub axes: Vec<Axis>,
    /// Groups of axes that step together, by their names.
    pub zip: Vec<Vec<String>>,
    /// Points to leave out: a point goes if each named axis has one of the values given for it.
    pub exclude: Vec<BTreeMap<String, Vec<String>>>,
}

/// The value of one axis in a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The axis.
    pub name: String,
    /// The value.
    pub value: String,
}

/// One point: a value for each axis, in the order of the axes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iteration {
    /// The values.
    pub settings: Vec<Setting>,
}

impl Iteration {
    /// The value of an axis.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|one| one.name == name).map(|one| one.value.as_str())
    }
}

/// A sample of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// The iteration, from 0.
    pub iteration: u32,
    /// The sample, from 0.
    pub sample: u32,
}

/// Why axes can't be combined. The text is a sentence that names axis and value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// An axis has no value.
    #[error("{0} has no value: give one, or leave it out")]
    Empty(String),
    /// An axis is given twice.
    #[error("{0} is given twice: put its values into one list")]
    Twice(String),
    /// An axis has a value twice.
    #[error(
        "{0} has the value {1} twice: for several executions of a point, raise schedule.samples"
    )]
    ValueTwice(String, String),
    /// A rule names an axis that there isn't.
    #[error("{rule} names {name}, which is no axis here: {}", render_names(.known))]
    Unknown {
        /// `zip` or `exclude`.
        rule: &'static str,
        /// The name.
        name: String,
        /// The axes that there are.
        known: Vec<String>,
    },
    /// An axis is in two zip groups, or twice in one.
    #[error("zip has {0} twice: an axis steps with one group")]
    ZippedTwice(String),
    /// Axes of a zip group have different numbers of values.
    #[error(
        "zip: {one} has {one_count} values and {other} has {other_count}: give both equally many"
    )]
    Unequal {
        /// The first axis of the group.
        one: String,
        /// Its number of values.
        one_count: usize,
        /// Another axis.
        other: String,
        /// Its number of values.
        other_count: usize,
    },
    /// A rule excludes a value that its axis doesn't have.
    #[error("exclude: {name} never has the value {value}: its values are {}", render_names(.known))]
    NoSuchValue {
        /// The axis.
        name: String,
        /// The value.
        value: String,
        /// Its values.
        known: Vec<String>,
    },
    /// A rule has no axis, so that every point would go.
    #[error(
        "exclude has a rule without an axis, which would leave nothing: name one, or take the rule out"
    )]
    ExcludesAll,
    /// No point is left.
    #[error("exclude leaves no cell: take a rule out")]
    NothingLeft,
    /// More rules than [`EXCLUSIONS_MAX`].
    #[error("exclude has more than {EXCLUSIONS_MAX} rules: give several values in one rule")]
    TooManyExclusions,
    /// More points than [`ITERATIONS_MAX`].
    #[error("the axes have more than {ITERATIONS_MAX} points: take values out, or zip axes")]
    TooMany,
}

fn render_names(names: &[String]) -> String {
    match names {
        [] => "there is none".to_owned(),
        names => names.join(", "),
    }
}

impl Matrix {
    /// All points that aren't excluded, in order.
    ///
    /// # Errors
    ///
    /// [`MatrixError`] where the axes can't be combined as the rules say.
    pub fn iterations(&self) -> Result<Vec<Iteration>, MatrixError> {
        self.check()?;
        let wheels = self.wheels();
        let count = wheels.iter().try_fold(1_usize, |count, wheel| {
            count.checked_mul(self.length(wheel)).filter(|count| *count <= ITERATIONS_MAX)
        });
        let count = count.ok_or(MatrixError::TooMany)?;
        let points = (0..count).map(|number| self.point(&wheels, number));
        let rules = self.exclude.iter().map(|rule| {
            rule.iter().map(|(name, values)| (name.as_str(), set_of(values))).collect()
        });
        let rules: Vec<Rule<'_>> = rules.collect();
        let left: Vec<Iteration> = points.filter(|point| !is_excluded(&rules, point)).collect();
        if left.is_empty() { Err(MatrixError::NothingLeft) } else { Ok(left) }
    }

    fn check(&self) -> Result<(), MatrixError> {
        for (place, axis) in self.axes.iter().enumerate() {
            if axis.values.is_empty() {
                return Err(MatrixError::Empty(axis.name.clone()));
            }
            if axis.values.len() > ITERATIONS_MAX {
                return Err(MatrixError::TooMany);
            }
            if self.axes.iter().take(place).any(|before| before.name == axis.name) {
                return Err(MatrixError::Twice(axis.name.clone()));
            }
            if let Some(value) = repeated(&axis.values) {
                return Err(MatrixError::ValueTwice(axis.name.clone(), value.clone()));
            }
        }
        let mut zipped: Vec<&String> = Vec::new();
        for group in &self.zip {
            let mut first: Option<&Axis> = None;
            for name in group {
                let axis = self.axis("zip", name)?;
                if zipped.contains(&name) {
                    return Err(MatrixError::ZippedTwice(name.clone()));
                }
                zipped.push(name);
                let first = *first.get_or_insert(axis);
                if first.values.len() != axis.values.len() {
                    return Err(MatrixError::Unequal {
                        one: first.name.clone(),
                        one_count: first.values.len(),
                        other: name.clone(),
                        other_count: axis.values.len(),
                    });
                }
            }
        }
        self.check_exclusions()
    }

    fn check_exclusions(&self) -> Result<(), MatrixError> {
        if self.exclude.len() > EXCLUSIONS_MAX {
            return Err(MatrixError::TooManyExclusions);
        }
        let sets = self.axes.iter().map(|axis| (axis.name.as_str(), set_of(&axis.values)));
        let sets: BTreeMap<&str, HashSet<&str>> = sets.collect();
        for rule in &self.exclude {
            if rule.is_empty() {
                return Err(MatrixError::ExcludesAll);
            }
            for (name, values) in rule {
                let axis = self.axis("exclude", name)?;
                let has =
                    |value: &str| sets.get(name.as_str()).is_some_and(|set| set.contains(value));
                if let Some(value) = values.iter().find(|value| !has(value)) {
                    let (name, value, known) = (name.clone(), value.clone(), axis.values.clone());
                    return Err(MatrixError::NoSuchValue { name, value, known });
                }
            }
        }
        Ok(())
    }

    fn axis(&self, rule: &'static str, name: &str) -> Result<&Axis, MatrixError> {
        self.axes.iter().find(|axis| axis.name == name).ok_or_else(|| {
            let known = self.axes.iter().map(|axis| axis.name.clone()).collect();
            MatrixError::Unknown { rule, name: name.to_owned(), known }
        })
    }

    /// Places of axes that step together, in the order in which they vary.
    fn wheels(&self) -> Vec<Vec<usize>> {
        let mut wheels: Vec<Vec<usize>> = Vec::new();
        for (place, axis) in self.axes.iter().enumerate() {
            let group = self.zip.iter().find(|group| group.contains(&axis.name));
            let mate = group.and_then(|group| {
                let is_mate = |place: &usize| {
                    self.axes.get(*place).is_some_and(|other| group.contains(&other.name))
                };
                wheels.iter_mut().find(|wheel| wheel.first().is_some_and(is_mate))
            });
            match mate {
                Some(wheel) => wheel.push(place),
                None => wheels.push(vec![place]),
            }
        }
        wheels
    }

    fn length(&self, wheel: &[usize]) -> usize {
        let first = wheel.first().and_then(|place| self.axes.get(*place));
        first.map_or(1, |axis| axis.values.len())
    }

    /// The point of a number: the last wheel is its last digit.
    fn point(&self, wheels: &[Vec<usize>], number: usize) -> Iteration {
        let mut settings: Vec<Option<Setting>> = vec![None; self.axes.len()];
        let mut rest = number;
        for wheel in wheels.iter().rev() {
            let length = self.length(wheel);
            let digit = rest % length;
            rest /= length;
            for place in wheel {
                let axis = self.axes.get(*place);
                let value = axis.and_then(|axis| axis.values.get(digit));
                if let (Some(axis), Some(value), Some(slot)) =
                    (axis, value, settings.get_mut(*place))
                {
                    *slot = Some(Setting { name: axis.name.clone(), value: value.clone() });
                }
            }
        }
        Iteration { settings: settings.into_iter().flatten().collect() }
    }
}

/// An exclusion: axes with the values that it leaves out.
type Rule<'a> = Vec<(&'a str, HashSet<&'a str>)>;

fn set_of(values: &[String]) -> HashSet<&str> {
    values.iter().map(String::as_str).collect()
}

fn is_excluded(rules: &[Rule<'_>], point: &Iteration) -> bool {
    let matches = |(name, values): &(&str, HashSet<&str>)| {
        point.value(name).is_some_and(|value| values.contains(value))
    };
    rules.iter().any(|rule| rule.iter().all(matches))
}

/// The first value that stands twice.
fn repeated(values: &[String]) -> Option<&String> {
    let mut before = HashSet::new();
    values.iter().find(|value| !before.insert(value.as_str()))
}

#[cfg(test)]
mod tests;
