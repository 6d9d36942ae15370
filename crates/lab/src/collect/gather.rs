//! Series from ticks.

use std::collections::{BTreeMap, HashMap};

use linerate_measure::collected::{Column, Rule, Source, Value, check_columns};

use super::{MOST_ROWS, Ticks};

/// Most series of one source of one host.
const MOST_SERIES: usize = 32_768;
/// Most values of one host that are kept in memory at one time.
const MOST_VALUES: usize = 32 * 1024 * 1024;

/// One metric of a host over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The metric's source in the Common Data Model: `mpstat`.
    pub source: String,
    /// The metric's type there: `Busy-CPU`.
    pub metric: String,
    /// What tells it from others of its type.
    pub names: BTreeMap<String, String>,
    /// The unit of the values.
    pub unit: String,
    /// Whether values add up over time (rates and shares), or are levels.
    pub is_throughput: bool,
    /// One value for each span of the source, NaN where it isn't known.
    pub values: Vec<f64>,
}

impl Series {
    fn without_values(&self) -> Self {
        Self {
            source: self.source.clone(),
            metric: self.metric.clone(),
            names: self.names.clone(),
            unit: self.unit.clone(),
            is_throughput: self.is_throughput,
            values: Vec::new(),
        }
    }

    /// Whether it is left out of results where it was zero all the time: drivers and protocols have hundreds of counters,
    /// of which few move in one test, and interrupts have one for each processor.
    pub fn is_idle(&self) -> bool {
        let is_of_many = ["protocols", "ethtool"].contains(&self.source.as_str())
            || ["interrupts-sec", "softirqs-sec"].contains(&self.metric.as_str());
        is_of_many && self.is_throughput && self.values.iter().all(|value| *value == 0.0)
    }

    /// Its class in the Common Data Model.
    pub fn class(&self) -> &'static str {
        if self.is_throughput { "throughput" } else { "count" }
    }
}

/// What one source of a host gave: series over the same spans of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    /// The source.
    pub source: Source,
    /// The readings a second at the end, less than asked where the budget required it.
    pub hz: f64,
    /// Begin and end of each value: nanoseconds since 1970, UTC, in the controller's time.
    pub spans_ns: Vec<(i64, i64)>,
    /// The series. Each has one value for each span, and at least one that is known.
    pub series: Vec<Series>,
}

impl Gathered {
    /// The same without gaps: series that are known at the same times stand together.
    pub fn without_gaps(self) -> Vec<Self> {
        let mut groups: BTreeMap<Vec<bool>, Vec<Series>> = BTreeMap::new();
        for series in self.series {
            let known = series.values.iter().map(|value| !value.is_nan()).collect();
            groups.entry(known).or_default().push(series);
        }
        let of_known = |known: &[bool], series: Vec<Series>| {
            let spans = self.spans_ns.iter().zip(known).filter(|(_, known)| **known);
            let series = series.into_iter().map(|mut series| {
                series.values.retain(|value| !value.is_nan());
                series
            });
            Self {
                source: self.source,
                hz: self.hz,
                spans_ns: spans.map(|(span, _)| *span).collect(),
                series: series.collect(),
            }
        };
        groups.into_iter().rev().map(|(known, series)| of_known(&known, series)).collect()
    }
}

/// A column of any layout that a source has had.
struct Known {
    column: Column,
    /// Its series, where it has one.
    series: Option<usize>,
    /// Its last value, where the last reading had it.
    last: Value,
}

/// What one source has given so far.
#[derive(Default)]
struct Progress {
    known: Vec<Known>,
    /// Where a column with these names stands in `known`.
    index: HashMap<String, usize>,
    /// Where each column of the present layout stands in `known`.
    layout: Vec<usize>,
    /// One moment on both clocks, by which the monotonic one becomes UTC: a step of UTC moves no value.
    anchor: Option<(u64, i64)>,
    /// The last reading.
    last_ns: Option<u64>,
    hz: f64,
    /// Begin and end of each value, on the monotonic clock.
    spans_ns: Vec<(u64, u64)>,
    series: Vec<Series>,
    failed: Option<String>,
}

/// Turns one host's ticks into series.
///
/// A counter that goes back, or begins anew, leaves a gap (NaN): there is no negative rate.
#[derive(Default)]
pub struct Gatherer {
    sources: BTreeMap<Source, Progress>,
    cpu_share: f64,
    values: usize,
    left_out: u64,
}

impl Gatherer {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a message. What is wrong with one leaves everything as it was before.
    ///
    /// # Errors
    ///
    /// When no collector sends such a message: what is wrong, as one sentence.
    pub fn handle_ticks(&mut self, ticks: Ticks) -> Result<(), String> {
        let name = ticks.source.name();
        let progress = self.sources.entry(ticks.source).or_default();
        let room = MOST_VALUES.saturating_sub(self.values);
        progress.check(&ticks, room).map_err(|reason| format!("ticks of {name}: {reason}"))?;
        if ticks.cpu_share.is_finite() && ticks.cpu_share >= 0.0 {
            self.cpu_share = ticks.cpu_share;
        }
        progress.hz = ticks.hz;
        if let Some(columns) = ticks.columns {
            self.values += progress.adopt(columns);
        }
        progress.failed = ticks.failed.or(progress.failed.take());
        for row in ticks.rows {
            // A span of time counts, too.
            let more = progress.series.len() + 1;
            if self.values.saturating_add(more) > MOST_VALUES {
                self.left_out += 1;
                continue;
            }
            self.values += progress.add(row.monotonic_ns, row.utc_ns, &row.values);
        }
        Ok(())
    }

    /// Processor time that collecting has cost this host, as a share of one processor.
    pub fn cpu_share(&self) -> f64 {
        self.cpu_share
    }

    /// What a reader of the series has to know, as sentences: sources that were read less often than asked, that could
    /// not be read, or of which readings were left out.
    pub fn notes(&self, asked_hz: f64) -> Vec<String> {
        let mut notes = Vec::new();
        for (source, progress) in &self.sources {
            let name = source.name();
            if let Some(reason) = &progress.failed {
                notes.push(format!("{name} could not be collected: {reason}"));
            } else if progress.hz < asked_hz {
                notes.push(format!(
                    "{name} was read {} times a second at the end instead of {asked_hz}, so that collecting stays \
                     under {} % of one processor",
                    progress.hz,
                    super::BUDGET * 100.0,
                ));
            }
        }
        if self.left_out > 0 {
            let count = self.left_out;
            notes.push(format!(
                "{count} readings were left out: one host can have {MOST_VALUES} values at once"
            ));
        }
        notes
    }

    /// Takes out the series of all sources since the last call, in the controller's time. `offset_ns` is by how much the
    /// host's clock of UTC is ahead of the controller's.
    ///
    /// The last readings stay, so that what comes next begins where these series end.
    pub fn take(&mut self, offset_ns: i64) -> Vec<Gathered> {
        self.values = 0;
        let sources = self.sources.iter_mut();
        let gathered = sources.map(|(source, progress)| progress.take(*source, offset_ns));
        gathered.filter(|gathered| !gathered.spans_ns.is_empty()).collect()
    }
}

impl Progress {
    /// `room`: how many values more can be kept.
    fn check(&self, ticks: &Ticks, room: usize) -> Result<(), String> {
        let columns = match &ticks.columns {
            Some(columns) => {
                check_columns(columns)?;
                self.check_new(columns, room)?;
                columns.len()
            }
            None => self.layout.len(),
        };
        if ticks.rows.len() > MOST_ROWS {
            return Err(format!(
                "{} rows, and at most {MOST_ROWS} can come at once",
                ticks.rows.len()
            ));
        }
        if !ticks.hz.is_finite() || ticks.hz <= 0.0 {
            return Err("the readings a second are no positive number".to_owned());
        }
        let mut last_ns = self.last_ns;
        for row in &ticks.rows {
            if row.values.len() != columns {
                return Err(format!("a row has {} values for {columns} columns", row.values.len()));
            }
            if last_ns.is_some_and(|last_ns| row.monotonic_ns <= last_ns) {
                return Err("the time of a row is not after that of the row before".to_owned());
            }
            last_ns = Some(row.monotonic_ns);
        }
        Ok(())
    }

    fn check_new(&self, columns: &[Column], room: usize) -> Result<(), String> {
        let mut seen = HashMap::new();
        let mut added = 0;
        for column in columns {
            let key = key(column);
            match self.index.get(&key) {
                Some(at) if !same(&self.known[*at].column, column) => {
                    return Err(format!("the column {} became another one", column.metric));
                }
                Some(_) => {}
                None => added += 1,
            }
            if seen.insert(key, ()).is_some() {
                return Err(format!("a column {} comes twice", column.metric));
            }
        }
        if self.known.len() + added > MOST_SERIES {
            return Err(format!("more than {MOST_SERIES} series"));
        }
        // A new series has a gap for each span that is over.
        if added.saturating_mul(self.spans_ns.len()) > room {
            return Err(format!(
                "{added} new series, and one host can have {MOST_VALUES} values at once"
            ));
        }
        Ok(())
    }

    /// Begins a layout of columns. Returns how many values the new series have.
    fn adopt(&mut self, columns: Vec<Column>) -> usize {
        let known_before = self.known.len();
        let mut layout = Vec::with_capacity(columns.len());
        let mut is_present = vec![false; self.known.len()];
        for column in columns {
            let key = key(&column);
            let at = match self.index.get(&key) {
                Some(at) => {
                    self.known[*at].column = column;
                    *at
                }
                None => {
                    let at = self.know(column);
                    self.index.insert(key, at);
                    at
                }
            };
            if let Some(is_present) = is_present.get_mut(at) {
                *is_present = true;
            }
            layout.push(at);
        }
        // What went away and comes back later may have begun anew.
        for (known, _) in self.known.iter_mut().zip(&is_present).filter(|(_, present)| !**present) {
            known.last = Value::Absent;
        }
        self.layout = layout;
        (self.known.len() - known_before) * self.spans_ns.len()
    }

    fn know(&mut self, column: Column) -> usize {
        let series = (column.rule != Rule::Whole).then(|| {
            self.series.push(Series {
                source: column.source.clone(),
                metric: column.metric.clone(),
                names: column.names.clone(),
                unit: column.unit.clone(),
                is_throughput: column.rule != Rule::Level,
                values: vec![f64::NAN; self.spans_ns.len()],
            });
            self.series.len() - 1
        });
        self.known.push(Known { column, series, last: Value::Absent });
        self.known.len() - 1
    }

    /// Adds a reading. Returns how many values it gave.
    fn add(&mut self, monotonic_ns: u64, utc_ns: i64, values: &[Value]) -> usize {
        self.anchor.get_or_insert((monotonic_ns, utc_ns));
        let mut count = 0;
        if let Some(last_ns) = self.last_ns {
            self.spans_ns.push((last_ns, monotonic_ns));
            let elapsed_s = monotonic_ns.saturating_sub(last_ns) as f64 / 1e9;
            for (at, value) in self.layout.iter().zip(values) {
                let result = self.metric(&self.known[*at], *value, values, elapsed_s);
                if let Some(series) = self.known[*at].series {
                    self.series[series].values.push(result);
                }
            }
            // Series that this layout lacks.
            for series in &mut self.series {
                series.values.resize(self.spans_ns.len(), f64::NAN);
            }
            count = self.series.len() + 1;
        }
        for (at, value) in self.layout.iter().zip(values) {
            self.known[*at].last = *value;
        }
        self.last_ns = Some(monotonic_ns);
        count
    }

    fn take(&mut self, source: Source, offset_ns: i64) -> Gathered {
        let (anchor_ns, utc_ns) = self.anchor.take().unwrap_or_default();
        let at = |ns: u64| {
            let since = i128::from(ns) - i128::from(anchor_ns);
            let at_ns = i128::from(utc_ns) + since - i128::from(offset_ns);
            i64::try_from(at_ns).unwrap_or(if at_ns < 0 { i64::MIN } else { i64::MAX })
        };
        let spans_ns = self.spans_ns.drain(..).map(|(from, to)| (at(from), at(to))).collect();
        // Series of earlier layouts end here.
        let known = std::mem::take(&mut self.known);
        let mut series = std::mem::take(&mut self.series);
        self.index.clear();
        for at in &mut self.layout {
            let old = &known[*at];
            let last = old.last;
            *at = self.known.len();
            self.index.insert(key(&old.column), *at);
            let new = self.series.len();
            let number = old.series.map(|number| {
                self.series.push(series[number].without_values());
                new
            });
            self.known.push(Known { column: old.column.clone(), series: number, last });
        }
        series.retain(|series| series.values.iter().any(|value| !value.is_nan()));
        Gathered { source, hz: self.hz, spans_ns, series }
    }

    /// The metric of a column over the time since the last reading; NaN where it isn't known.
    fn metric(&self, known: &Known, value: Value, row: &[Value], elapsed_s: f64) -> f64 {
        let result = match known.column.rule {
            Rule::Level => match value {
                Value::Level(level) => Some(level),
                Value::Count(count) => Some(count as f64),
                Value::Absent => None,
            },
            Rule::Rate => growth(known.last, value).map(|growth| growth as f64 / elapsed_s),
            Rule::Share(whole) => {
                let at = whole as usize;
                let before = self.layout.get(at).map(|at| self.known[*at].last);
                let whole = before.zip(row.get(at)).and_then(|(last, now)| growth(last, *now));
                let parts = growth(known.last, value).zip(whole.filter(|whole| *whole > 0));
                parts.map(|(part, whole)| part as f64 / whole as f64)
            }
            Rule::Whole => None,
        };
        let scaled = result.map(|result| result * known.column.scale);
        scaled.filter(|scaled| scaled.is_finite()).unwrap_or(f64::NAN)
    }
}

/// By how much a counter grew; none where it went back.
fn growth(before: Value, now: Value) -> Option<u64> {
    match (before, now) {
        (Value::Count(before), Value::Count(now)) => now.checked_sub(before),
        _ => None,
    }
}

/// What a column is known by. No part of it can be mistaken for another, whatever characters names have.
fn key(column: &Column) -> String {
    format!("{:?} {:?} {:?}", column.source, column.metric, column.names)
}

/// Whether two columns of one key are one. Shares may be of a whole that stands elsewhere in another layout.
fn same(a: &Column, b: &Column) -> bool {
    let is_same_rule = match (a.rule, b.rule) {
        (Rule::Share(_), Rule::Share(_)) => true,
        (a, b) => a == b,
    };
    is_same_rule && a.unit == b.unit && a.scale == b.scale
}
