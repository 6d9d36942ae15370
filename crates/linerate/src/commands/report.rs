//! `report`: pages of runs and comparisons.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_engine::event::Cancel;
use linerate_measure::comparison::Comparison;
use linerate_measure::repeats::Repeats;
use linerate_measure::run::exit;
use linerate_measure::{Role, Run};
use linerate_report::{MatrixPage, Page, Source, extract, render_matrix};
use linerate_results::read::{IterationRow, RunDetails};
use linerate_results::values::{Measured, Values, split_metric};
use linerate_results::{Store, StoreError};
use serde::Deserialize;
use serde_json::json;

use super::results::run_json;
use super::{Failure, await_file, open_destination, run::read};
use crate::args::ReportArgs;
use crate::output::{
    Course, Destination, Document, KeptPair, MatrixDocument, file_name, matrix_page, render_json,
    render_page,
};
use crate::store;

/// The longest file. A document of 10,000 flows with samples is shorter.
const TEXT_BYTES: u64 = 1 << 30;
/// Windows of the small pictures of a matrix.
const COURSE_WINDOWS: u32 = 60;

/// A document and where it is from.
pub(super) struct Found {
    /// What the page calls its text.
    name: String,
    text: String,
    shown: Shown,
}

impl Found {
    /// Its page, for a file of this name.
    pub(super) fn page(&self, file: &str) -> Page {
        match &self.shown {
            Shown::Document(document) => document.page(file),
            Shown::Matrix(matrix) => render_matrix(matrix),
        }
    }

    /// The pairs of a matrix' cells have pages of their own below this path.
    pub(super) fn serve_at(&mut self, path: String) {
        if let Shown::Matrix(matrix) = &mut self.shown {
            matrix.served_at = Some(path);
        }
    }

    /// Its text.
    pub(super) fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text }
    }

    /// The runs that it is; `None` of a comparison or a matrix.
    pub(super) fn into_runs(self) -> Option<Vec<Run>> {
        match self.shown {
            Shown::Document(Document::Run(run)) => Some(vec![*run]),
            Shown::Document(Document::Runs(runs)) => Some(runs),
            Shown::Document(Document::Comparison(_)) | Shown::Matrix(_) => None,
        }
    }
}

/// What a page shows.
enum Shown {
    Document(Document),
    Matrix(Box<MatrixPage>),
}

/// Writes a page, or a part of it.
pub(super) fn write_page(args: &ReportArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let asked = args.clone();
    let text = await_file(cancel, move || text_of(&asked))?;
    let mut destination = open_destination(args.output.as_deref(), cancel)?;
    destination.put(&text)?;
    destination.commit().map_err(Failure::here)?;
    Ok(exit::VALID)
}

/// What is to be written.
fn text_of(args: &ReportArgs) -> Result<String, Failure> {
    let found = match file_of(&args.source)? {
        Some((text, name)) => {
            let is_page = text.trim_start().starts_with('<');
            let text = match is_page {
                true => extract(&text).map_err(|why| Failure::usage(format!("{name} {why}")))?,
                false => text,
            };
            // What a page has is given back whatever it is.
            if is_page && args.extract {
                return Ok(text);
            }
            of_document(text, &name)?
        }
        None => of_kept(&args.source, args.store.as_deref())?,
    };
    match args {
        ReportArgs { extract: true, .. } => Ok(found.text),
        ReportArgs { plan: true, .. } => plans_of(found),
        _ => {
            let file = args.output.as_deref().map(file_name);
            let page = found.page(&file.unwrap_or_else(|| "PAGE.html".to_owned()));
            Ok(page.render(Some(found.source()), &[]))
        }
    }
}

/// Text and name of the file that a word means; `None` where there is no such file.
fn file_of(source: &str) -> Result<Option<(String, String)>, Failure> {
    if source != "-" && !Path::new(source).exists() {
        return Ok(None);
    }
    read(Path::new(source), TEXT_BYTES).map(Some).map_err(Failure::here)
}

/// The run of the store that a word means.
fn of_kept(source: &str, flag: Option<&Path>) -> Result<Found, Failure> {
    let path = store::place(flag).map_err(Failure::here)?;
    if !path.exists() {
        return Err(Failure::usage(format!(
            "there is no file '{source}' and no store {}: name a file as --json prints it, or a store with --store",
            path.display()
        )));
    }
    of_store(&Store::open_to_read(&path)?, source).map_err(Failure::from)
}

/// The document of a file.
fn of_document(text: String, name: &str) -> Result<Found, Failure> {
    let document = read_document(&text).map(Shown::Document);
    let matrix = || read_matrix(&text).map(|matrix| Shown::Matrix(Box::new(matrix)));
    let shown = document.or_else(matrix).ok_or_else(|| {
        Failure::usage(format!(
            "{name} holds no run, no comparison and no matrix: give a file as `linerate stream --json`, \
             `linerate compare --json` or `linerate results show --json` prints it"
        ))
    })?;
    let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = format!("{}.json", stem.unwrap_or_else(|| "run".to_owned()));
    Ok(Found { name, text, shown })
}

/// Reads a document; `None` where it is none, or has no run.
fn read_document(text: &str) -> Option<Document> {
    let document = serde_json::from_str(text).ok().or_else(|| {
        let repeats: Repeats = serde_json::from_str(text).ok()?;
        Some(Document::Runs(repeats.documents))
    })?;
    match &document {
        Document::Runs(runs) if runs.is_empty() => None,
        _ => Some(document),
    }
}

/// Looks for the one document that has the whole of a cell. A cell keeps a document of each client, then of each server,
/// and those of earlier attempts before.
#[derive(Default)]
struct WholeDocument {
    attempt: u32,
    documents: usize,
    clients: usize,
    text: Option<String>,
}

impl WholeDocument {
    /// Takes the next document of the cell, of this attempt.
    fn push(&mut self, attempt: u32, text: String) {
        if attempt > self.attempt {
            *self = Self { attempt, ..Self::default() };
        }
        let is_client = written_by(&text) == Some(Role::Client);
        self.documents += 1;
        self.clients += usize::from(is_client);
        if is_client || self.documents == 1 {
            self.text = Some(text);
        }
    }

    /// The document of the only client, or the only document; `None` where several have a part each.
    fn into_text(self) -> Option<String> {
        self.text.filter(|_| self.clients == 1 || self.documents == 1)
    }
}

/// The document of a run that was kept: its own where it has one cell and one client, else what the store has of its
/// matrix.
pub(super) fn of_store(store: &Store, word: &str) -> Result<Found, StoreError> {
    let row = store.find(word)?;
    let name = format!("{}.json", row.run);
    let details = store.details(row.id)?;
    if row.cells == 1 {
        let mut whole = WholeDocument::default();
        store.each_document(row.id, |document| {
            if document.kind == Run::SCHEMA {
                whole.push(document.attempt, document.body);
            }
            Ok::<_, StoreError>(())
        })?;
        if let Some(text) = whole.into_text()
            && let Some(document) = read_document(&text)
        {
            return Ok(Found { name, text, shown: Shown::Document(document) });
        }
    }
    let values = Values::read(store, &details)?;
    let mut document = run_json(store, &details, &values)?;
    let iterations = document.get_mut("iterations").and_then(serde_json::Value::as_array_mut);
    let drawn = courses_of(store, &details)?.into_iter().zip(pairs_of(store, &details)?);
    for (iteration, (course, pairs)) in iterations.into_iter().flatten().zip(drawn) {
        if let Some(iteration) = iteration.as_object_mut() {
            iteration.insert("course".to_owned(), json!(course));
            if pairs.len() > 1 {
                iteration.insert("pairs".to_owned(), json!(pairs));
            }
        }
    }
    let text = render_json(&document) + "\n";
    match read_matrix(&text) {
        Some(matrix) => Ok(Found { name, text, shown: Shown::Matrix(Box::new(matrix)) }),
        None => Err(StoreError::Damaged(format!("the run {} has no page", details.row.run))),
    }
}

/// The page of a document of a matrix: what [`of_store`] makes, or `linerate results show --json` prints.
fn read_matrix(text: &str) -> Option<MatrixPage> {
    let matrix: MatrixDocument = serde_json::from_str(text).ok()?;
    Some(matrix_page(&matrix))
}

/// The course of the first measured sample of each iteration.
fn courses_of(store: &Store, details: &RunDetails) -> Result<Vec<Course>, StoreError> {
    let measured = Measured::read(store, details, &details.iterations, COURSE_WINDOWS)?;
    let of_iteration = |iteration: &IterationRow| {
        let mut samples = iteration.samples.iter().filter(|sample| sample.counts());
        let Some((windows, unit)) = samples.find_map(|sample| measured.windows(iteration, sample))
        else {
            return Course::default();
        };
        let values = windows.iter();
        let values = values.map(|window| window.value.filter(|_| window.coverage > 0.0));
        Course { values: values.map(|value| value.map(shortened)).collect(), unit: unit.to_owned() }
    };
    Ok(details.iterations.iter().map(of_iteration).collect())
}

/// The pairs of a run's plan; empty: it is no plan of a matrix.
fn planned_pairs(details: &RunDetails) -> Vec<KeptPair> {
    #[derive(Deserialize)]
    struct Planned {
        pairs: Vec<KeptPair>,
    }
    serde_json::from_str::<Planned>(&details.plan).map_or(Vec::new(), |planned| planned.pairs)
}

/// Of each iteration what its pairs came to; none where there is one pair.
fn pairs_of(store: &Store, details: &RunDetails) -> Result<Vec<Vec<KeptPair>>, StoreError> {
    /// The label that a pair's series have: its number.
    const PAIR: &str = "csid";
    let planned = planned_pairs(details);
    let nothing = || details.iterations.iter().map(|_| Vec::new()).collect();
    if planned.len() < 2 {
        return Ok(nothing());
    }
    let mut metrics: BTreeMap<&str, BTreeMap<(String, String), f64>> = BTreeMap::new();
    for iteration in &details.iterations {
        let name = iteration.primary_metric.as_str();
        let Some(metric) = split_metric(name).filter(|_| !metrics.contains_key(name)) else {
            continue;
        };
        match store.query_periods_by(details.row.id, metric, PAIR) {
            Ok(values) => drop(metrics.insert(name, values)),
            // All samples may have failed before they measured it.
            Err(StoreError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let of_iteration = |iteration: &IterationRow| {
        let values = metrics.get(iteration.primary_metric.as_str());
        let periods: Vec<&str> = iteration
            .samples
            .iter()
            .filter(|sample| sample.counts())
            .filter_map(|sample| Some(sample.period.as_ref()?.uuid.as_str()))
            .collect();
        let pair = |pair: &KeptPair| {
            let number = pair.number.to_string();
            let known = periods
                .iter()
                .filter_map(|period| values?.get(&((*period).to_owned(), number.clone())).copied());
            let known: Vec<f64> = known.collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            KeptPair { value: (!known.is_empty()).then_some(mean), ..pair.clone() }
        };
        planned.iter().map(pair).collect()
    };
    Ok(details.iterations.iter().map(of_iteration).collect())
}

/// The document of the client of a pair, by its number, in the cell of this position.
pub(super) fn of_pair(
    store: &Store,
    word: &str,
    position: u32,
    number: u32,
) -> Result<Found, StoreError> {
    let row = store.find(word)?;
    let details = store.details(row.id)?;
    let planned = planned_pairs(&details);
    let (mut last_attempt, mut clients) = (0, Vec::new());
    store.each_document(row.id, |document| {
        if document.position != position || document.kind != Run::SCHEMA {
            return Ok::<_, StoreError>(());
        }
        if document.attempt > last_attempt {
            last_attempt = document.attempt;
            clients.clear();
        }
        if written_by(&document.body) == Some(Role::Client) {
            clients.push(document.body);
        }
        Ok(())
    })?;
    // Clients' documents stand in the order of their pairs. Where one is missing, whose the others are is not known.
    let place = planned.iter().position(|pair| pair.number == number);
    let place = place.filter(|_| clients.len() == planned.len());
    let text = place.map(|place| clients.swap_remove(place));
    let found = text.and_then(|text| Some((read_document(&text)?, text)));
    let (document, text) = found.ok_or_else(|| {
        let why = format!("the cell {position} of the run {word} has no document of pair {number}");
        StoreError::NotFound(why)
    })?;
    let name = format!("{}-{position}-{number}.json", row.run);
    Ok(Found { name, text, shown: Shown::Document(document) })
}

/// Which end wrote a document of a run.
fn written_by(text: &str) -> Option<Role> {
    /// Documents of clients may be without it.
    #[derive(Deserialize)]
    struct Written {
        written_by: Option<Role>,
    }
    let written = serde_json::from_str::<Written>(text).ok()?;
    Some(written.written_by.unwrap_or(Role::Client))
}

/// A value as exact as a small picture shows it, so that its text is short.
fn shortened(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// The plans of a document, as `linerate run` reads them. A start is left out: it has passed.
fn plans_of(found: Found) -> Result<String, Failure> {
    let runs = found.into_runs().ok_or_else(|| {
        Failure::usage(
            "--plan is for runs: a comparison's page has its command, a matrix is measured from its own plan",
        )
    })?;
    let plans: Vec<_> = runs
        .into_iter()
        .map(|run| {
            let mut plan = run.plan.clone();
            plan.start_at_utc_ns = None;
            json!({ "plan": plan })
        })
        .collect();
    Ok(match &plans[..] {
        [plan] => render_json(plan) + "\n",
        plans => render_json(&plans) + "\n",
    })
}

/// The page that a measuring command writes beside its result, where it is asked for one.
pub(super) struct PageFile {
    asked: Option<(PathBuf, Destination)>,
    runs: Vec<Run>,
}

impl PageFile {
    /// Opens the file before anything is measured.
    pub(super) fn open(path: Option<&Path>, cancel: &Cancel) -> Result<Self, Failure> {
        let destination = path.map(|path| open_destination(Some(path), cancel)).transpose()?;
        Ok(Self { asked: path.map(Path::to_owned).zip(destination), runs: Vec::new() })
    }

    /// Takes a run.
    pub(super) fn push(&mut self, run: &Run) {
        if self.asked.is_some() {
            self.runs.push(run.clone());
        }
    }

    /// Writes the page of all runs.
    pub(super) fn write(mut self) -> Result<(), Failure> {
        let runs = std::mem::take(&mut self.runs);
        self.put(|path| render_page(runs, path))
    }

    /// Writes the page of a comparison.
    pub(super) fn write_comparison(self, comparison: &Comparison) -> Result<(), Failure> {
        self.put(|path| Document::Comparison(Box::new(comparison.clone())).render(path))
    }

    fn put(self, render: impl FnOnce(&Path) -> String) -> Result<(), Failure> {
        let Some((path, mut destination)) = self.asked else { return Ok(()) };
        destination.put(&render(&path))?;
        destination.commit().map_err(Failure::here)
    }
}

#[cfg(test)]
mod tests {
    use linerate_measure::repeats::{Asked, RepeatedRun};

    use super::*;
    use crate::output::run_of_nothing;

    #[test]
    fn runs_and_repeats_are_read_whatever_their_number() {
        let runs = vec![run_of_nothing(); 300];
        let asked = Asked { most_runs: runs.len(), precision: None };
        let mut repeats = Repeats::of(&asked, runs.iter().map(RepeatedRun::of).collect());
        assert!(read_document(&render_json(&repeats)).is_none(), "no document of a run");
        repeats.documents = runs.clone();
        for text in [render_json(&runs), render_json(&repeats)] {
            let Some(Document::Runs(read)) = read_document(&text) else { panic!("{text}") };
            assert_eq!(read, runs);
        }
        assert!(read_document("[]").is_none());
    }

    #[test]
    fn the_document_of_a_cell_is_that_of_its_only_client() {
        let text = |(_, role, name): &(u32, &str, &str)| {
            format!("{{\"written_by\":\"{role}\",\"run_id\":\"{name}\"}}")
        };
        let (client, server) = ("client", "server");
        for (documents, chosen) in [
            (vec![], None),
            (vec![(1, client, "a")], Some(0)),
            (vec![(1, server, "a")], Some(0)),
            (vec![(1, client, "a"), (1, server, "b")], Some(0)),
            (vec![(1, server, "a"), (1, client, "b")], Some(1)),
            (vec![(1, client, "a"), (1, server, "b"), (1, server, "c")], Some(0)),
            (vec![(1, client, "a"), (1, client, "b")], None),
            (vec![(1, client, "a"), (1, client, "b"), (1, server, "c"), (1, server, "d")], None),
            (vec![(1, server, "a"), (1, server, "b")], None),
            (vec![(1, client, "a"), (1, server, "b"), (2, client, "c"), (2, server, "d")], Some(2)),
            (vec![(1, client, "a"), (2, client, "b"), (2, client, "c")], None),
        ] {
            let mut whole = WholeDocument::default();
            documents.iter().for_each(|document| whole.push(document.0, text(document)));
            let chosen = chosen.and_then(|place: usize| documents.get(place)).map(text);
            assert_eq!(whole.into_text(), chosen, "{documents:?}");
        }
    }
}
