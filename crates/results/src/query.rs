//! What a metric was, in windows of time: one calculation behind every command that shows series.
//!
//! A window's value over a group of series is, by its [`Aggregation`]:
//!
//! * sum: the sum of value times milliseconds over all spans, divided by the window's length; time without data counts
//!   as zero, and [`Window::coverage`] tells how much that is;
//! * avg: the same sum, divided by the time that has data;
//! * max and min: the extreme of the values that hold for some time of the window.
//!
//! With [`SeriesQuery::compat`] the answer is that of the Common Data Model's query server, with what differs there:
//! [`QUIRKS`].

mod periods;
mod reader;

use std::collections::{BTreeMap, BTreeSet};

use linerate_measure::window::{MAX_WINDOWS, Span, Weights, windows};
use rusqlite::params;
use serde::Serialize;

use crate::breakout::Breakout;
pub use periods::Periods;
use reader::{Reader, damaged};

use crate::store::{RunId, Store};
use crate::{Aggregation, StoreError};

/// In what the original's answers differ, by name: `SeriesQuery::compat` has all of them.
pub const QUIRKS: [(&str, &str); 4] = [
    (
        "whole-run",
        "series of the whole run take part in a period's query, and `avg` divides by their number",
    ),
    ("edge", "a span that sticks out of a window counts a millisecond short there"),
    (
        "per-interval",
        "iperf's rx-lost/sec, rx-pps and tx-retry/sec are per interval, not per second",
    ),
    (
        "stretched",
        "each line of iperf's parallel streams and directions is taken for a later interval",
    ),
];

/// The most series that one query reads.
const MOST_SERIES: usize = 1_000_000;

/// The most windows times groups of an answer.
const MOST_VALUES: usize = 20_000_000;

/// What is asked.
#[derive(Clone, Debug)]
pub struct SeriesQuery {
    /// The run.
    pub run: RunId,
    /// One of its periods by name; absent: all of the run.
    pub period: Option<String>,
    /// Who measured.
    pub source: String,
    /// The metric.
    pub metric: String,
    /// From when (UTC, milliseconds since 1970); absent: from the period's or the data's begin.
    pub begin_ms: Option<i64>,
    /// To when, this millisecond included.
    pub end_ms: Option<i64>,
    /// How many windows, at least 1.
    pub resolution: u32,
    /// What is shown apart.
    pub breakouts: Vec<Breakout>,
    /// Which series are left out.
    pub filter: Option<Filter>,
    /// How several become one; absent: as the series say.
    pub aggregation: Option<Aggregation>,
    /// Whether the answer is the original's, quirks included.
    pub compat: bool,
}

impl SeriesQuery {
    /// All of a run's metric as one value.
    pub fn new(run: RunId, source: impl Into<String>, metric: impl Into<String>) -> Self {
        Self {
            run,
            period: None,
            source: source.into(),
            metric: metric.into(),
            begin_ms: None,
            end_ms: None,
            resolution: 1,
            breakouts: Vec::new(),
            filter: None,
            aggregation: None,
            compat: false,
        }
    }
}

/// Keeps the series whose first window compares so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    compare: Compare,
    number: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compare {
    Gt,
    Ge,
    Lt,
    Le,
}

impl Filter {
    /// Reads `gt:NUMBER`, `ge:`, `lt:` or `le:`.
    ///
    /// # Errors
    /// A sentence that names the words it can begin with.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let parsed = text.split_once(':').and_then(|(word, number)| {
            let compare = match word {
                "gt" => Compare::Gt,
                "ge" => Compare::Ge,
                "lt" => Compare::Lt,
                "le" => Compare::Le,
                _ => return None,
            };
            let number: f64 = number.parse().ok().filter(|number: &f64| number.is_finite())?;
            Some(Self { compare, number })
        });
        parsed.ok_or_else(|| {
            StoreError::NotFound(format!(
                "the filter '{text}' is none: give gt:, ge:, lt: or le: and a number"
            ))
        })
    }

    fn keeps(self, value: f64) -> bool {
        match self.compare {
            Compare::Gt => value > self.number,
            Compare::Ge => value >= self.number,
            Compare::Lt => value < self.number,
            Compare::Le => value <= self.number,
        }
    }
}

/// What a query came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The unit of all values.
    pub unit: String,
    /// The class of the metric.
    pub class: String,
    /// How several values became one.
    pub aggregation: Aggregation,
    /// The groups, by label.
    pub groups: Vec<Group>,
    /// Names of labels that could be broken out as well, sorted.
    pub remaining: Vec<String>,
    /// Whether the answer is the original's.
    pub compat: bool,
}

/// A group of series that are shown as one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The value of each breakout.
    pub labels: Vec<String>,
    /// How many different series it has.
    pub series: usize,
    /// Its windows, in order.
    pub windows: Vec<Window>,
}

impl Group {
    /// The labels as `<a>-<b>`; empty where nothing was broken out.
    pub fn label(&self) -> String {
        let parts: Vec<String> = self.labels.iter().map(|label| format!("<{label}>")).collect();
        parts.join("-")
    }
}

/// A group in a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// The first millisecond.
    pub begin_ms: i64,
    /// The last millisecond.
    pub end_ms: i64,
    /// The value; absent where an average or an extreme has no data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The share of the time for which the group's series have data, from 0 to 1.
    pub coverage: f64,
}

/// A series of the run that has the metric.
struct Selected {
    id: i64,
    timeline: i64,
    /// The period that it is of; absent: of the whole run.
    period: Option<i64>,
    labels: BTreeMap<String, String>,
}

/// What the series of a metric say of themselves.
struct Kind {
    unit: String,
    class: String,
    aggregation: Aggregation,
}

/// What a group has come to so far, window by window.
struct Sum {
    weighted: Vec<f64>,
    covered: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    rows: usize,
    identities: BTreeSet<BTreeMap<String, String>>,
}

impl Sum {
    fn new(windows: usize) -> Self {
        Self {
            weighted: vec![0.0; windows],
            covered: vec![0.0; windows],
            low: vec![f64::INFINITY; windows],
            high: vec![f64::NEG_INFINITY; windows],
            rows: 0,
            identities: BTreeSet::new(),
        }
    }

    fn add(&mut self, first_window: usize, weights: &Weights, values: &[f64], extremes: bool) {
        let ends = self.weighted.iter_mut().zip(&mut self.covered).skip(first_window);
        for (at, (weighted, covered)) in ends.take(weights.windows()).enumerate() {
            *weighted += weights.weighted(at, values);
            *covered += weights.covered_ms(at);
        }
        if !extremes {
            return;
        }
        let ends = self.low.iter_mut().zip(&mut self.high).skip(first_window);
        for (at, (low, high)) in ends.take(weights.windows()).enumerate() {
            for value in weights.values(at, values) {
                *low = low.min(*value);
                *high = high.max(*value);
            }
        }
    }

    /// Adds a chunk that one window has whole, by its own sum, least and greatest value.
    fn add_whole(
        &mut self,
        window: usize,
        covered_ms: f64,
        [weighted, low, high]: [f64; 3],
    ) -> Result<(), StoreError> {
        if ![weighted, low, high].iter().all(|figure| figure.is_finite()) || low > high {
            return Err(damaged("the sum of a chunk"));
        }
        let put = |figures: &mut Vec<f64>, change: &dyn Fn(f64) -> f64| {
            figures.get_mut(window).into_iter().for_each(|figure| *figure = change(*figure));
        };
        put(&mut self.weighted, &|sum| sum + weighted);
        put(&mut self.covered, &|sum| sum + covered_ms);
        put(&mut self.low, &|least| least.min(low));
        put(&mut self.high, &|greatest| greatest.max(high));
        Ok(())
    }

    fn window(&self, at: usize, span: Span, by: Aggregation, compat: bool) -> Window {
        let of = |values: &[f64]| values.get(at).copied().unwrap_or_default();
        let length = span.length_ms() as f64;
        let (weighted, covered) = (of(&self.weighted), of(&self.covered));
        let value = match by {
            Aggregation::Sum => Some(weighted / length),
            Aggregation::Avg if compat => Some(weighted / (length * self.rows as f64)),
            Aggregation::Avg => (covered > 0.0).then(|| weighted / covered),
            Aggregation::Max => Some(of(&self.high)).filter(|value| value.is_finite()),
            Aggregation::Min => Some(of(&self.low)).filter(|value| value.is_finite()),
        };
        let value = if compat { value.or(Some(0.0)) } else { value };
        let coverage = (covered / (length * self.identities.len() as f64)).min(1.0);
        Window { begin_ms: span.begin_ms, end_ms: span.end_ms, value, coverage }
    }
}

impl Store {
    /// The metrics of a run by their source, both sorted.
    ///
    /// # Errors
    /// Where the file can't be read.
    pub fn metrics(&self, run: RunId) -> Result<BTreeMap<String, Vec<String>>, StoreError> {
        let sql = "SELECT DISTINCT source, type FROM series WHERE run = ?1 ORDER BY source, type";
        let mut rows = self.connection.prepare(sql)?;
        let rows = rows.query_map([run.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut metrics: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in rows {
            let (source, metric): (String, String) = row?;
            metrics.entry(source).or_default().push(metric);
        }
        Ok(metrics)
    }

    /// Answers a query.
    ///
    /// # Errors
    /// Where source, metric, breakout or period are not there (the sentence lists what is), the range is empty, or the
    /// file breaks its format.
    pub fn query(&self, query: &SeriesQuery) -> Result<Answer, StoreError> {
        let period =
            query.period.as_deref().map(|uuid| self.period(query.run, uuid)).transpose()?;
        let (kind, selected) = self.select(query, period.map(|(id, _)| id))?;
        let range = self.range(query, period.map(|(_, span)| span), &selected)?;
        if !(1..=MAX_WINDOWS).contains(&query.resolution) {
            let why = format!("a resolution of {}: give 1 to {MAX_WINDOWS}", query.resolution);
            return Err(StoreError::NotFound(why));
        }
        let windows = windows(range, query.resolution);
        let aggregation = query.aggregation.unwrap_or(kind.aggregation);
        let groups = self.group(query, selected)?;
        if groups.groups.len().saturating_mul(windows.len()) > MOST_VALUES {
            return Err(StoreError::NotFound(format!(
                "{} groups of {} windows are more than {MOST_VALUES} values: ask for fewer",
                groups.groups.len(),
                windows.len()
            )));
        }
        let extremes = aggregation.is_extreme();
        let mut reader = Reader::new(self, query, &windows, extremes)?;
        let mut answered = Vec::with_capacity(groups.groups.len());
        for (labels, members) in groups.groups {
            let mut sum = Sum::new(windows.len());
            for series in members {
                sum.rows += 1;
                reader.add(&series, &mut sum)?;
                sum.identities.insert(series.labels);
            }
            let shown = windows.iter().enumerate();
            let shown = shown.map(|(at, span)| sum.window(at, *span, aggregation, query.compat));
            let shown: Vec<Window> = shown.collect();
            let first = shown.first().and_then(|window| window.value).unwrap_or_default();
            if query.filter.is_none_or(|filter| filter.keeps(first)) {
                answered.push(Group { labels, series: sum.identities.len(), windows: shown });
            }
        }
        Ok(Answer {
            unit: kind.unit,
            class: kind.class,
            aggregation,
            groups: answered,
            remaining: groups.remaining,
            compat: query.compat,
        })
    }

    fn period(&self, run: RunId, uuid: &str) -> Result<(i64, Span), StoreError> {
        if self.run_of_period(uuid)? != run {
            return Err(StoreError::NotFound(format!("the run has no period '{uuid}'")));
        }
        let sql = "SELECT id, begin_ms, end_ms FROM period WHERE uuid = ?1";
        let (id, begin, end) = self
            .connection
            .query_row(sql, [uuid], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let span = Span::new(begin, end)
            .ok_or_else(|| StoreError::Damaged(format!("the period {uuid} has no time")))?;
        Ok((id, span))
    }

    /// The series of the metric; of a period only those that are its own or a collector's.
    fn select(
        &self,
        query: &SeriesQuery,
        period: Option<i64>,
    ) -> Result<(Kind, Vec<Selected>), StoreError> {
        let of_run = query.compat || period.is_none();
        let sql = "SELECT s.id, s.timeline, s.unit, s.class, s.aggregation, l.name, l.value, s.period FROM series s \
                   LEFT JOIN label l ON l.series = s.id WHERE s.run = ?1 AND s.source = ?2 AND s.type = ?3 \
                   AND (?4 OR s.period IS NULL OR s.period = ?5) ORDER BY s.id";
        let mut rows = self.connection.prepare(sql)?;
        let mut rows =
            rows.query(params![query.run.0, query.source, query.metric, of_run, period])?;
        let mut kind = None;
        let mut found: Vec<Selected> = Vec::new();
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            if found.last().is_none_or(|last| last.id != id) {
                if found.len() == MOST_SERIES {
                    let why = format!("the metric has more than {MOST_SERIES} series");
                    return Err(StoreError::Damaged(why));
                }
                let labels = BTreeMap::new();
                found.push(Selected { id, timeline: row.get(1)?, period: row.get(7)?, labels });
            }
            if kind.is_none() {
                let aggregation: String = row.get(4)?;
                let aggregation = Aggregation::of_name(&aggregation).unwrap_or_default();
                kind = Some(Kind { unit: row.get(2)?, class: row.get(3)?, aggregation });
            }
            if let (Some(series), Some(name)) = (found.last_mut(), row.get(5)?) {
                series.labels.insert(name, row.get(6)?);
            }
        }
        match kind {
            Some(kind) => Ok((kind, found)),
            None => Err(self.no_such_metric(query)?),
        }
    }

    fn no_such_metric(&self, query: &SeriesQuery) -> Result<StoreError, StoreError> {
        let metrics = self.metrics(query.run)?;
        Ok(StoreError::NotFound(match metrics.get(&query.source) {
            Some(types) => format!(
                "the source '{}' has no metric '{}' there: it has {}",
                query.source,
                query.metric,
                types.join(", ")
            ),
            None if metrics.is_empty() => "the run has no series".to_owned(),
            None => format!(
                "the run has no source '{}': it has {}",
                query.source,
                metrics.into_keys().collect::<Vec<_>>().join(", ")
            ),
        }))
    }

    fn range(
        &self,
        query: &SeriesQuery,
        period: Option<Span>,
        selected: &[Selected],
    ) -> Result<Span, StoreError> {
        let whole = match (period, query.begin_ms, query.end_ms) {
            (Some(span), ..) => span,
            (None, Some(begin_ms), Some(end_ms)) => Span { begin_ms, end_ms },
            (None, ..) => self.data_range(selected)?,
        };
        let begin = query.begin_ms.unwrap_or(whole.begin_ms);
        let end = query.end_ms.unwrap_or(whole.end_ms);
        Span::new(begin, end).ok_or_else(|| {
            StoreError::NotFound(format!(
                "there is no time from {begin} to {end} (milliseconds since 1970)"
            ))
        })
    }

    fn data_range(&self, selected: &[Selected]) -> Result<Span, StoreError> {
        let sql = "SELECT min(begin_ms), max(end_ms) FROM timeline WHERE id = ?1";
        let mut row = self.connection.prepare(sql)?;
        let timelines: BTreeSet<i64> = selected.iter().map(|series| series.timeline).collect();
        let mut range: Option<(i64, i64)> = None;
        for timeline in timelines {
            let found: (Option<i64>, Option<i64>) =
                row.query_row([timeline], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if let (Some(begin), Some(end)) = found {
                let (first, last) = range.unwrap_or((begin, end));
                range = Some((first.min(begin), last.max(end)));
            }
        }
        let span = range.and_then(|(begin, end)| Span::new(begin, end));
        span.ok_or_else(|| StoreError::NotFound("the metric has no data".to_owned()))
    }

    fn group(&self, query: &SeriesQuery, selected: Vec<Selected>) -> Result<Groups, StoreError> {
        let names: BTreeSet<&String> =
            selected.iter().flat_map(|series| series.labels.keys()).collect();
        for breakout in &query.breakouts {
            if !names.contains(&breakout.name) {
                let all = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
                let name = &breakout.name;
                return Err(StoreError::NotFound(format!(
                    "the metric has no breakout '{name}': it has {all}"
                )));
            }
        }
        check_values(query, &selected)?;
        let used = |name: &str| query.breakouts.iter().any(|breakout| breakout.name == name);
        let remaining =
            names.into_iter().filter(|name| !used(name)).cloned().collect::<Vec<String>>();
        let mut groups: BTreeMap<Vec<String>, Vec<Selected>> = BTreeMap::new();
        for series in selected {
            let labels = query.breakouts.iter().map(|breakout| {
                series.labels.get(&breakout.name).and_then(|value| breakout.label_of(value))
            });
            if let Some(labels) = labels.collect::<Option<Vec<_>>>() {
                groups.entry(labels).or_default().push(series);
            }
        }
        if groups.is_empty() {
            let none = "no series of the metric has all that the breakouts ask for";
            return Err(StoreError::NotFound(none.to_owned()));
        }
        Ok(Groups { groups, remaining })
    }
}

/// Values of labels that a sentence lists.
const LISTED_VALUES: usize = 20;

/// Refuses a breakout by a value that no series has.
fn check_values(query: &SeriesQuery, selected: &[Selected]) -> Result<(), StoreError> {
    for breakout in &query.breakouts {
        let named = breakout.named_values();
        if named.is_empty() {
            continue;
        }
        let has = |series: &Selected| series.labels.get(&breakout.name).cloned();
        let known: BTreeSet<String> = selected.iter().filter_map(has).collect();
        if let Some(value) = named.iter().find(|value| !known.contains(*value)) {
            let listed: Vec<&str> = known.iter().take(LISTED_VALUES).map(String::as_str).collect();
            let more = if known.len() > LISTED_VALUES { ", ..." } else { "" };
            return Err(StoreError::NotFound(format!(
                "no series of the metric has {}={value}: there {} {}{more}",
                breakout.name,
                if known.len() == 1 { "is" } else { "are" },
                listed.join(", ")
            )));
        }
    }
    Ok(())
}

struct Groups {
    groups: BTreeMap<Vec<String>, Vec<Selected>>,
    remaining: Vec<String>,
}
