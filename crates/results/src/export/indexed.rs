//! A store of what a server has of runs, whoever wrote it there, so that all queries answer from it.

use std::collections::{BTreeMap, BTreeSet};

use linerate_measure::window::{Span, Timeline};
use rusqlite::params;
use serde_json::Value;

use super::client::{IDS, Index, IndexError};
use super::document::VERDICT;
use super::mapping::NUMBER_NAME;
use super::{CdmVersion, DocumentKind};
use crate::exchange::Exchange;
use crate::insert::{insert_all_series, insert_run};
use crate::model::{NewCell, NewIteration, NewParam, NewRun, NewSeries, Origin};
use crate::outcome::{SampleOutcome, insert_outcome, remove_counted_twice, verdict_of_name};
use crate::store::{RunId, Store};
use crate::{Aggregation, StoreError};

/// Which runs are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The run of this name.
    Run(String),
    /// The run of this period.
    Period(String),
    /// All whose documents have these words in these fields, such as `harness`.
    With(Vec<(&'static str, String)>),
}

/// Of which metrics the points are read. Of all others the names alone are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Points {
    /// Those that iterations are judged by.
    Primary,
    /// The metric of this source and type.
    Of(String, String),
}

/// The most runs that one question reads.
const MOST_RUNS: usize = 1000;

/// The most points that one question reads of a run.
const MOST_POINTS: usize = 50_000_000;

/// Reads runs into a store in memory. Names of runs, iterations, samples and periods are those of the index.
///
/// # Errors
/// Where the index has no such run, or breaks the model.
pub fn read_runs<E: Exchange>(
    index: &mut Index<E>,
    wanted: &Wanted,
    points: &Points,
) -> Result<Store, IndexError> {
    let store = Store::in_memory()?;
    let asked = index.version();
    let mut versions = index.versions()?;
    if versions.is_empty() {
        versions.push(asked);
    }
    let mut any = false;
    for version in versions {
        index.set_version(version);
        for name in names_of(index, wanted)? {
            any = true;
            if store.find_exactly(&name).is_err() {
                read_run(index, &store, &name, points)?;
            }
        }
        if any && !matches!(wanted, Wanted::With(_)) {
            break;
        }
    }
    match (any, wanted) {
        (true, _) => Ok(store),
        (_, Wanted::Run(run)) => Err(none(format!("no run of exactly the name '{run}'"))),
        (_, Wanted::Period(period)) => Err(none(format!("no period '{period}'"))),
        (_, Wanted::With(_)) => Err(none("no run with these words".to_owned())),
    }
}

fn none(what: String) -> IndexError {
    IndexError::Store(format!("the index has {what}"))
}

fn names_of<E: Exchange>(index: &mut Index<E>, wanted: &Wanted) -> Result<Vec<String>, IndexError> {
    let version = index.version();
    let of_run = version.id_path(DocumentKind::Run);
    let documents = match wanted {
        Wanted::Run(run) => {
            index.find(DocumentKind::Run, &[(&of_run, std::slice::from_ref(run))], &[&of_run])?
        }
        Wanted::Period(period) => {
            let id = version.id_path(DocumentKind::Period);
            index.find(DocumentKind::Period, &[(&id, std::slice::from_ref(period))], &[&id])?
        }
        Wanted::With(words) => {
            let paths: Vec<String> =
                words.iter().map(|(field, _)| format!("run.{field}")).collect();
            let terms: Vec<(&str, &[String])> = paths
                .iter()
                .zip(words)
                .map(|(path, (_, word))| (path.as_str(), std::slice::from_ref(word)))
                .collect();
            index.find(DocumentKind::Run, &terms, &[&of_run])?
        }
    };
    let field = version.id_field(DocumentKind::Run);
    let mut names: Vec<String> =
        documents.iter().map(|document| text(&document["run"], &field)).collect();
    names.dedup();
    if names.len() > MOST_RUNS {
        let why = format!("{} runs are more than {MOST_RUNS}: ask for fewer", names.len());
        return Err(IndexError::Store(why));
    }
    Ok(names)
}

/// A text of a document, or an empty one. Numbers and switches are texts, too.
fn text(object: &Value, field: &str) -> String {
    match &object[field] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A number of a document. Older writers have texts.
fn number(object: &Value, field: &str) -> Option<f64> {
    let value = &object[field];
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite())
}

fn whole(object: &Value, field: &str) -> Option<i64> {
    let value = &object[field];
    value.as_i64().or_else(|| number(object, field).map(|number| number as i64))
}

/// All documents of a run, points left out, by their kind.
struct Documents {
    version: CdmVersion,
    name: String,
    kinds: BTreeMap<DocumentKind, Vec<Value>>,
    /// The places of documents by their kind, the kind of what they belong to, and its name.
    owned: BTreeMap<(DocumentKind, DocumentKind), BTreeMap<String, Vec<usize>>>,
}

/// What is asked for by what it belongs to.
const OWNED: [(DocumentKind, DocumentKind); 3] = [
    (DocumentKind::Sample, DocumentKind::Iteration),
    (DocumentKind::Param, DocumentKind::Iteration),
    (DocumentKind::Period, DocumentKind::Sample),
];

impl Documents {
    fn read<E: Exchange>(index: &mut Index<E>, name: &str) -> Result<Self, IndexError> {
        let version = index.version();
        let of_run = version.id_path(DocumentKind::Run);
        let mut kinds = BTreeMap::new();
        for kind in DocumentKind::ALL.into_iter().filter(|kind| *kind != DocumentKind::MetricData) {
            let name = name.to_owned();
            let order = match kind {
                DocumentKind::Tag => vec!["tag.name".to_owned(), "tag.val".to_owned()],
                DocumentKind::Param => vec![
                    version.id_path(DocumentKind::Iteration),
                    "param.arg".to_owned(),
                    "param.val".to_owned(),
                ],
                kind => vec![version.id_path(kind)],
            };
            let order: Vec<&str> = order.iter().map(String::as_str).collect();
            let documents = index.find(kind, &[(&of_run, &[name])], &order)?;
            kinds.insert(kind, documents);
        }
        let mut documents = Self { version, name: name.to_owned(), kinds, owned: BTreeMap::new() };
        for (kind, owner) in OWNED {
            let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (place, document) in documents.all(kind).iter().enumerate() {
                places.entry(documents.id(document, owner)).or_default().push(place);
            }
            documents.owned.insert((kind, owner), places);
        }
        Ok(documents)
    }

    fn all(&self, kind: DocumentKind) -> &[Value] {
        self.kinds.get(&kind).map(Vec::as_slice).unwrap_or_default()
    }

    /// The name that a document has for something of a kind, itself or what it belongs to.
    fn id(&self, document: &Value, kind: DocumentKind) -> String {
        text(&document[kind.name()], &self.version.id_field(kind))
    }

    /// Documents of a kind that belong to one of another kind, by their number.
    fn of(&self, kind: DocumentKind, owner: DocumentKind, id: &str) -> Vec<&Value> {
        let all = self.all(kind);
        let places = self.owned.get(&(kind, owner)).and_then(|owned| owned.get(id));
        let mut documents: Vec<&Value> =
            places.into_iter().flatten().filter_map(|place| all.get(*place)).collect();
        documents.sort_by_key(|document| whole(&document[kind.name()], "num"));
        documents
    }

    fn run(&self) -> Result<(NewRun, Plans), StoreError> {
        let nothing = Value::Null;
        let run = self.all(DocumentKind::Run).first().map_or(&nothing, |document| &document["run"]);
        let mut plans = Plans::default();
        let (mut iterations, mut cells) = (Vec::new(), Vec::new());
        let mut rows: Vec<&Value> = self.all(DocumentKind::Iteration).iter().collect();
        rows.sort_by_key(|document| whole(&document["iteration"], "num"));
        for document in rows {
            let id = self.id(document, DocumentKind::Iteration);
            let place = u32::try_from(iterations.len()).unwrap_or(u32::MAX);
            for (at, sample) in
                self.of(DocumentKind::Sample, DocumentKind::Iteration, &id).into_iter().enumerate()
            {
                let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
                cells.push(NewCell { iteration: place, sample: number });
                plans.samples.push(sample.clone());
            }
            let params = self.of(DocumentKind::Param, DocumentKind::Iteration, &id).into_iter();
            let params = params.map(|document| NewParam {
                arg: text(&document["param"], "arg"),
                value: text(&document["param"], "val"),
                ..NewParam::default()
            });
            let primary_metric = text(&document["iteration"], "primary-metric");
            iterations.push(NewIteration { params: params.collect(), primary_metric });
            plans.iterations.push(document.clone());
        }
        let tags = self.all(DocumentKind::Tag).iter();
        let tags =
            tags.map(|document| (text(&document["tag"], "name"), text(&document["tag"], "val")));
        let new = NewRun {
            uuid: self.name.clone(),
            title: text(run, "desc"),
            tags: tags.collect(),
            origin: Origin {
                harness: text(run, "harness"),
                benchmarks: text(run, "benchmark"),
                person: text(run, "name"),
                email: text(run, "email"),
                ..Origin::default()
            },
            began_ms: whole(run, "begin").unwrap_or(0),
            iterations,
            cells,
            ..NewRun::default()
        };
        plans.ended_ms = whole(run, "end");
        plans.is_partial = run["partial"] == true;
        Ok((new, plans))
    }
}

/// What the store gets that no new run has.
#[derive(Default)]
struct Plans {
    iterations: Vec<Value>,
    /// In the order of the cells.
    samples: Vec<Value>,
    ended_ms: Option<i64>,
    is_partial: bool,
}

fn read_run<E: Exchange>(
    index: &mut Index<E>,
    store: &Store,
    name: &str,
    points: &Points,
) -> Result<(), IndexError> {
    let documents = Documents::read(index, name)?;
    let (new, plans) = documents.run()?;
    let id = insert_run(&store.connection, &new)?;
    let periods = name_parts(store, id, &documents, &plans)?;
    let wanted: Vec<(String, String)> = match points {
        Points::Of(source, metric) => vec![(source.clone(), metric.clone())],
        Points::Primary => {
            let metrics = new.iterations.iter().flat_map(|one| one.primary_metric.split(','));
            let pairs = metrics.filter_map(|metric| metric.split_once("::"));
            pairs.map(|(source, metric)| (source.to_owned(), metric.to_owned())).collect()
        }
    };
    let is_wanted = |document: &&Value| {
        let described = &document["metric_desc"];
        let is = |(source, metric): &(String, String)| {
            described["source"] == **source && described["type"] == **metric
        };
        wanted.iter().any(is)
    };
    let all = documents.all(DocumentKind::MetricDesc);
    let ids: Vec<String> = all
        .iter()
        .filter(is_wanted)
        .map(|document| documents.id(document, DocumentKind::MetricDesc))
        .collect();
    let mut data = read_points(index, &ids)?;
    for document in all {
        let id_of_desc = documents.id(document, DocumentKind::MetricDesc);
        let (spans, values) = data.remove(&id_of_desc).unwrap_or_default().into_iter().unzip();
        let timeline = Timeline::new(spans).ok_or_else(|| {
            StoreError::Damaged(format!("times of the series {id_of_desc} in the index overlap"))
        })?;
        let period = periods.get(&documents.id(document, DocumentKind::Period)).copied();
        let series = series_of(&document["metric_desc"], period.is_some(), values);
        insert_all_series(&store.connection, (id, None, period), &[timeline], &[series])?;
    }
    remove_counted_twice(&store.connection)?;
    let verdict = new.tags.iter().find(|(name, _)| name == VERDICT);
    verdict.map_or(Ok(()), |(_, text)| Ok(put_verdicts(store, id, text)?))
}

/// Gives samples their verdicts, as the mark of the run tells them: see [`VERDICT`]. A mark that is cut tells those of the
/// first samples alone.
fn put_verdicts(store: &Store, run: i64, text: &str) -> Result<(), StoreError> {
    let tables = &store.connection;
    let mut words = text.split(' ');
    let (worst, is_whole) = (words.next().unwrap_or_default(), !text.ends_with(" ..."));
    let listed: BTreeMap<&str, &str> = words.filter_map(|word| word.split_once('=')).collect();
    let sql = "SELECT s.id, i.num, s.num FROM sample s JOIN iteration i ON s.iteration = i.id \
               WHERE s.run = ?1 AND s.status IN ('done', 'failed') ORDER BY s.position";
    let mut rows = tables.prepare(sql)?;
    let rows = rows.query_map([run], |row| {
        Ok((row.get::<_, i64>(0)?, format!("{}-{}", row.get::<_, u32>(1)?, row.get::<_, u32>(2)?)))
    })?;
    let samples = rows.collect::<Result<Vec<_>, _>>()?;
    for (sample, name) in samples {
        let own = listed.get(name.as_str()).copied();
        // A sample that a cut list doesn't name is not known to be better than the worst.
        let word = own.unwrap_or(if is_whole { "valid" } else { worst });
        let verdict = verdict_of_name(word);
        insert_outcome(tables, sample, &SampleOutcome { verdict, ..SampleOutcome::default() })?;
    }
    Ok(())
}

/// Gives what was inserted the names that it has in the index; periods by their name.
fn name_parts(
    store: &Store,
    run: i64,
    documents: &Documents,
    plans: &Plans,
) -> Result<BTreeMap<String, i64>, StoreError> {
    let tables = &store.connection;
    let status = if plans.ended_ms.is_some() { "complete" } else { "running" };
    let sql = "UPDATE run SET status = ?2, ended_ms = ?3, partial = ?4 WHERE id = ?1";
    tables.execute(sql, params![run, status, plans.ended_ms, plans.is_partial])?;
    for (place, document) in plans.iterations.iter().enumerate() {
        let iteration = &document["iteration"];
        let uuid = documents.id(document, DocumentKind::Iteration);
        let sql = "UPDATE iteration SET uuid = ?3, status = ?4, primary_period = ?5 WHERE run = ?1 AND num = ?2";
        let (status, period) = (text(iteration, "status"), text(iteration, "primary-period"));
        tables.execute(sql, params![run, place as i64 + 1, uuid, status, period])?;
    }
    let mut periods = BTreeMap::new();
    for (position, document) in plans.samples.iter().enumerate() {
        let uuid = documents.id(document, DocumentKind::Sample);
        let status = match text(&document["sample"], "status").as_str() {
            "pass" => "done",
            "" => "running",
            _ => "failed",
        };
        let sql = "UPDATE sample SET uuid = ?3, status = ?4 WHERE run = ?1 AND position = ?2";
        tables.execute(sql, params![run, position as i64, uuid, status])?;
        let sql = "INSERT INTO period (sample, name, uuid, begin_ms, end_ms) \
                   SELECT s.id, ?2, ?3, ?4, ?5 FROM sample s JOIN iteration i ON s.iteration = i.id \
                   WHERE s.uuid = ?1 AND i.primary_period = ?2";
        for document in documents.of(DocumentKind::Period, DocumentKind::Sample, &uuid) {
            let period = &document["period"];
            let (begin, end) = (whole(period, "begin"), whole(period, "end"));
            let span = begin.zip(end).and_then(|(begin, end)| Span::new(begin, end));
            let Some(span) = span else { continue };
            let id = documents.id(document, DocumentKind::Period);
            let values = params![uuid, text(period, "name"), id, span.begin_ms, span.end_ms];
            if tables.execute(sql, values)? == 1 {
                periods.insert(id, tables.last_insert_rowid());
            }
        }
    }
    Ok(periods)
}

fn series_of(described: &Value, in_period: bool, values: Vec<f64>) -> NewSeries {
    let names = described["names"].as_object();
    let labels = names.into_iter().flatten().map(|(name, value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            // A whole number is written as such by whoever wrote it as a text.
            Value::Number(number) if name == NUMBER_NAME => match number.as_f64() {
                Some(number) => number.to_string(),
                None => number.to_string(),
            },
            other => other.to_string(),
        };
        (name.clone(), value)
    });
    let source = text(described, "source");
    let aggregation = Aggregation::of_name(&text(described, "default-aggregation"));
    NewSeries {
        in_period,
        metric: text(described, "type"),
        class: text(described, "class"),
        // No document has it.
        unit: String::new(),
        source,
        aggregation: aggregation.unwrap_or_default(),
        labels: labels.collect(),
        timeline: 0,
        values,
    }
}

/// Points by their series.
type PointsBySeries = BTreeMap<String, Vec<(Span, f64)>>;

fn read_points<E: Exchange>(
    index: &mut Index<E>,
    ids: &[String],
) -> Result<PointsBySeries, IndexError> {
    let path = index.version().id_path(DocumentKind::MetricDesc);
    let field = index.version().id_field(DocumentKind::MetricDesc);
    let mut points = PointsBySeries::new();
    let mut count = 0;
    for ids in ids.chunks(IDS) {
        let order = [path.as_str(), "metric_data.begin"];
        let asked: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        index.each(DocumentKind::MetricData, &[(&path, ids)], &order, |document| {
            let data = &document["metric_data"];
            let id = text(&document["metric_desc"], &field);
            if !asked.contains(id.as_str()) {
                let why = "it has points of a series that was not asked for";
                return Err(IndexError::Strange(why.to_owned()));
            }
            let span = whole(data, "begin").zip(whole(data, "end"));
            let span = span.and_then(|(begin, end)| Span::new(begin, end));
            if let Some(point) = span.zip(number(data, "value")) {
                points.entry(id).or_default().push(point);
            }
            count += 1;
            match count {
                0..=MOST_POINTS => Ok(()),
                _ => {
                    Err(IndexError::Store(format!("the metric has more than {MOST_POINTS} points")))
                }
            }
        })?;
    }
    Ok(points)
}

/// The one run of a store that was read for one.
///
/// # Errors
/// Where there is none.
pub fn only_run(store: &Store) -> Result<RunId, StoreError> {
    store.find("last").map(|row| row.id)
}
