//! What the iterations of a run come to: the value of each sample in the metric that its iteration is judged by.
//!
//! A value is the figure of the sample's own documents. Where these have none, as in an index, it is what the series come
//! to over the sample's period. A sample that failed has no value: it has at most a part of one.

use std::collections::{BTreeMap, BTreeSet};

use crate::StoreError;
use crate::query::{Periods, Window};
use crate::read::{IterationRow, RunDetails, SampleRow};
use crate::store::Store;

/// Source and type of the first metric of a list.
pub fn split_metric(metrics: &str) -> Option<(&str, &str)> {
    first_metric(metrics).split_once("::")
}

fn first_metric(metrics: &str) -> &str {
    metrics.split(',').next().unwrap_or_default()
}

/// The values of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// Of each iteration the values of its samples. A sample that was not measured, or failed, has none.
    pub samples: Vec<Vec<Option<f64>>>,
    /// Of each iteration the unit of its values; empty where none is known.
    pub units: Vec<String>,
}

impl Values {
    /// Looks them up. Series are read only where documents have no figure.
    ///
    /// # Errors
    /// Where the store can't be read.
    pub fn read(store: &Store, details: &RunDetails) -> Result<Self, StoreError> {
        let lacking = |iteration: &&IterationRow| {
            iteration
                .samples
                .iter()
                .any(|sample| sample.counts() && own(iteration, sample).is_none())
        };
        let read = details.iterations.iter().filter(lacking);
        let measured = Measured::read(store, details, read, 1)?;
        let (mut samples, mut units) = (Vec::new(), Vec::new());
        for iteration in &details.iterations {
            let mut unit = measured.unit(iteration).to_owned();
            let values = iteration.samples.iter().map(|sample| {
                if !sample.counts() {
                    return None;
                }
                match own(iteration, sample) {
                    Some((value, of_figure)) => {
                        if unit.is_empty() {
                            of_figure.clone_into(&mut unit);
                        }
                        value
                    }
                    None => {
                        let (windows, _) = measured.windows(iteration, sample)?;
                        windows.first().filter(|window| window.coverage > 0.0)?.value
                    }
                }
            });
            samples.push(values.collect());
            units.push(unit);
        }
        Ok(Self { samples, units })
    }
}

/// The figure of a sample's own documents, and its unit; `None` where they have none in the iteration's metric.
fn own<'a>(iteration: &IterationRow, sample: &'a SampleRow) -> Option<(Option<f64>, &'a str)> {
    let outcome = sample.outcome.as_ref()?;
    let is_asked =
        !outcome.metric.is_empty() && outcome.metric == first_metric(&iteration.primary_metric);
    is_asked.then_some((outcome.value, outcome.unit.as_str()))
}

/// The series of primary metrics in all periods of a run. Each metric is looked up once.
#[derive(Debug)]
pub struct Measured<'a> {
    metrics: BTreeMap<&'a str, Periods>,
}

impl<'a> Measured<'a> {
    /// Looks up the metrics of these iterations, `resolution` windows for each period.
    ///
    /// # Errors
    /// Where the store can't be read.
    pub fn read(
        store: &Store,
        details: &RunDetails,
        iterations: impl IntoIterator<Item = &'a IterationRow>,
        resolution: u32,
    ) -> Result<Self, StoreError> {
        let mut metrics = BTreeMap::new();
        let names: BTreeSet<&str> =
            iterations.into_iter().map(|one| one.primary_metric.as_str()).collect();
        for name in names {
            let Some(metric) = split_metric(name) else { continue };
            match store.query_periods(details.row.id, metric, resolution) {
                Ok(periods) => drop(metrics.insert(name, periods)),
                // All samples may have failed before they measured it.
                Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { metrics })
    }

    /// The unit of an iteration's primary metric; empty where nothing was measured.
    fn unit(&self, iteration: &IterationRow) -> &str {
        let periods = self.metrics.get(iteration.primary_metric.as_str());
        periods.map(|periods| periods.unit.as_str()).unwrap_or_default()
    }

    /// The windows of a sample in the primary metric of its iteration, and their unit; `None` where it was not measured.
    pub fn windows(
        &self,
        iteration: &IterationRow,
        sample: &SampleRow,
    ) -> Option<(&[Window], &str)> {
        let periods = self.metrics.get(iteration.primary_metric.as_str())?;
        let windows = periods.windows.get(&sample.period.as_ref()?.uuid)?;
        Some((windows, &periods.unit))
    }
}

/// The worst verdict of samples that count, of those that have one: a word of the store, or empty.
pub fn worst_verdict<'a>(samples: impl IntoIterator<Item = &'a SampleRow>) -> &'a str {
    let rank = |word: &str| match word {
        "" => 0,
        "valid" => 1,
        "doubtful" => 3,
        "invalid" => 4,
        _ => 2,
    };
    let words = samples.into_iter().filter(|sample| sample.counts()).map(SampleRow::verdict);
    words.max_by_key(|word| rank(word)).unwrap_or_default()
}
