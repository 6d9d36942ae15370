//! Demands on the figures of a matrix: `FIGURE[.STATISTIC] OPERATOR BOUND [abort] [warn]`.
//!
//! ```text
//! goodput_bps >= 0.95 * rate        at least 95 % of the value of the axis `rate`
//! loss_ratio.max <= 0.1% abort      of the worst sample; the run ends where it fails
//! latency_p99_ns < 2ms warn         a failure is told and leaves the exit code alone
//! ```
//!
//! FIGURE is a field of a run's summary, or a part of one as in the columns of `--csv`. STATISTIC is over the samples
//! of an iteration: mean (default), min, max or p50. BOUND is a number with the figure's unit, or `k * axis`.

mod figures;
mod judge;

pub use figures::{figures, figures_of, figures_of_run, hunted, metric_of};
pub use judge::{Judgement, Observation, Verdict};

use serde::{Deserialize, Serialize};

use crate::matrix::Iteration;
use crate::metric::Unit;
use crate::units::{parse_bytes, parse_count, parse_duration, parse_rate, quoted};

/// What a threshold must look like.
const GRAMMAR: &str = "write FIGURE[.mean|.min|.max|.p50], one of < <= > >=, a number with its unit or \
     k * AXIS, then abort or warn where wanted: goodput_bps >= 0.95 * rate";

/// A demand on a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Threshold {
    /// As it was written.
    text: String,
    /// The figure's name.
    pub figure: String,
    /// What is taken of the samples' figures.
    pub statistic: Statistic,
    /// How the figure must stand to the bound.
    pub comparison: Comparison,
    /// The bound.
    pub bound: Bound,
    /// Whether a failure ends the run.
    pub aborts: bool,
    /// Whether a failure is told without an effect on the exit code.
    pub warns: bool,
}

/// What is taken of the figures of several samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The median; of an even number the mean of the middle two.
    P50,
}

/// How a figure must stand to its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// What a figure is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A number in the figure's base unit.
    Number(f64),
    /// So many times the value of an axis.
    OfAxis {
        /// How many times.
        factor: f64,
        /// The axis.
        axis: String,
    },
}

/// Why a text is no threshold. A sentence with the text and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ThresholdError(String);

impl Threshold {
    /// Reads a threshold. Whether its figure and its axis exist is not looked at.
    ///
    /// # Errors
    ///
    /// [`ThresholdError`] where the text isn't of the module's grammar.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        let fault =
            |why: &str| ThresholdError(format!("threshold {}: {why}; {GRAMMAR}", quoted(text)));
        let (left, comparison, right) =
            split_comparison(text).ok_or_else(|| fault("there is no comparison"))?;
        let left = left.trim();
        let (figure, statistic) = split_statistic(left);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if figure.is_empty() || !figure.chars().all(is_name) {
            return Err(fault("the figure before the comparison is no name"));
        }
        let mut words: Vec<&str> = right.split_whitespace().collect();
        let (mut aborts, mut warns) = (false, false);
        while let Some(word @ ("abort" | "warn")) = words.last().copied() {
            words.pop();
            let flag = if word == "abort" { &mut aborts } else { &mut warns };
            if std::mem::replace(flag, true) {
                return Err(fault("abort or warn stands twice"));
            }
        }
        let bound = read_bound(figure, &words.join(" ")).map_err(|why| fault(&why))?;
        let (text, figure) = (text.to_owned(), figure.to_owned());
        Ok(Self { text, figure, statistic, comparison, bound, aborts, warns })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The axis that the bound depends on.
    pub fn axis(&self) -> Option<&str> {
        match &self.bound {
            Bound::Number(_) => None,
            Bound::OfAxis { axis, .. } => Some(axis),
        }
    }

    /// The bound at a point, in the figure's base unit.
    ///
    /// # Errors
    ///
    /// [`ThresholdError`] where the point has no such axis, or its value is no number with the figure's unit.
    pub fn bound_at(&self, point: &Iteration) -> Result<f64, ThresholdError> {
        let fault =
            |why: String| ThresholdError(format!("threshold {}: {why}", quoted(&self.text)));
        let (factor, axis) = match &self.bound {
            Bound::Number(number) => return Ok(*number),
            Bound::OfAxis { factor, axis } => (*factor, axis),
        };
        let value = point.value(axis).ok_or_else(|| {
            fault(format!("there is no axis {axis}: name one of the cells, or write a number"))
        })?;
        let number = read_number(&self.figure, value)
            .map_err(|why| fault(format!("{axis} is {}: {why}", quoted(value))))?;
        Ok(factor * number)
    }
}

impl TryFrom<String> for Threshold {
    type Error = ThresholdError;

    fn try_from(text: String) -> Result<Self, ThresholdError> {
        Self::parse(&text)
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> Self {
        threshold.text
    }
}

impl Comparison {
    /// As it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }

    /// Whether the figure stands to the bound as it must.
    pub fn holds(self, figure: f64, bound: f64) -> bool {
        match self {
            Self::Less => figure < bound,
            Self::AtMost => figure <= bound,
            Self::Greater => figure > bound,
            Self::AtLeast => figure >= bound,
        }
    }

    /// Whether the greatest figure is the worst.
    pub fn is_from_above(self) -> bool {
        matches!(self, Self::Less | Self::AtMost)
    }
}

fn split_comparison(text: &str) -> Option<(&str, Comparison, &str)> {
    let at = text.find(['<', '>'])?;
    let (left, rest) = text.split_at(at);
    [Comparison::AtMost, Comparison::AtLeast, Comparison::Less, Comparison::Greater]
        .into_iter()
        .find_map(|comparison| Some((left, comparison, rest.strip_prefix(comparison.sign())?)))
}

fn split_statistic(text: &str) -> (&str, Statistic) {
    let named = |word: &str| match word {
        "mean" => Some(Statistic::Mean),
        "min" => Some(Statistic::Min),
        "max" => Some(Statistic::Max),
        "p50" => Some(Statistic::P50),
        _ => None,
    };
    text.rsplit_once('.')
        .and_then(|(figure, word)| Some((figure, named(word)?)))
        .unwrap_or((text, Statistic::Mean))
}

fn read_bound(figure: &str, text: &str) -> Result<Bound, String> {
    if text.is_empty() {
        return Err("there is no bound after the comparison".to_owned());
    }
    let is_axis = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if let Some((factor, axis)) = text.split_once('*') {
        let (factor, axis) = (factor.trim(), axis.trim());
        // Either may stand first.
        let (factor, axis) = if is_axis(factor) { (axis, factor) } else { (factor, axis) };
        let factor = read_factor(factor)?;
        if !is_axis(axis) || axis.contains(char::is_whitespace) {
            return Err(format!("{} is no name of an axis", quoted(axis)));
        }
        return Ok(Bound::OfAxis { factor, axis: axis.to_owned() });
    }
    if is_axis(text) && !text.contains(char::is_whitespace) {
        return Ok(Bound::OfAxis { factor: 1.0, axis: text.to_owned() });
    }
    read_number(figure, text).map(Bound::Number)
}

fn read_factor(text: &str) -> Result<f64, String> {
    plain(text).ok_or_else(|| format!("{} is no number to multiply with", quoted(text)))
}

/// A number without unit: finite, not negative, no word such as "inf".
fn plain(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_number = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | '-'));
    text.parse().ok().filter(|number: &f64| is_number && number.is_finite())
}

/// A number in the base unit of a figure.
fn read_number(figure: &str, text: &str) -> Result<f64, String> {
    if let Some(number) = plain(text) {
        return Ok(number);
    }
    let text = text.trim();
    let unit = metric_of(figure).map_or(Unit::Count, |metric| metric.unit);
    let read = match unit {
        Unit::Ratio => {
            let share = text.strip_suffix('%').and_then(plain).map(|percent| percent / 100.0);
            let grammar = "write a share such as 0.001 or 0.1%";
            return share.ok_or_else(|| format!("{} is no share: {grammar}", quoted(text)));
        }
        Unit::Bytes | Unit::BytesPerCall => parse_bytes(text).map(|bytes| bytes as f64),
        Unit::BitsPerSecond => parse_rate(text).map(|rate| rate as f64),
        Unit::Nanoseconds => parse_duration(text).map(|ns| ns as f64),
        Unit::Microseconds => parse_duration(text).map(|ns| ns as f64 / 1e3),
        Unit::Seconds | Unit::SecondsPerGigabyte | Unit::SecondsPerTransaction => {
            parse_duration(text).map(|ns| ns as f64 / 1e9)
        }
        Unit::Count | Unit::PerSecond => parse_count(text).map(|count| count as f64),
    };
    read.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
