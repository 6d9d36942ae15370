//! Documents of the Common Data Model, made of what the store has of a run and of its cells.
//!
//! The name of a document is a digest of its run and of its path within it. So a run that is written a second time
//! replaces its documents. Iterations, samples and periods keep the names that they have in the store.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Context, SHA256};
use linerate_measure::window::Span;
use serde_json::{Map, Number, Value, json};

use super::mapping::{NAMES, NUMBER_NAME, OTHER_NAME};
use super::{CdmVersion, DocumentKind};
use crate::points::{Point, SeriesHead, StoredSeries};
use crate::read::{IterationRow, RunDetails, SampleRow};
use crate::{Aggregation, StoreError};

/// A document, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its kind, which tells the index.
    pub kind: DocumentKind,
    /// Its name within the index.
    pub id: String,
    /// Its content: JSON on one line.
    pub body: String,
}

/// How the `source` of each run begins that this program wrote.
const PROGRAM: &str = "linerate";

/// What of a run's series is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    /// At most so many points a second; absent: all.
    pub hz: Option<f64>,
    /// These sources alone; empty: all.
    pub sources: Vec<String>,
}

impl Form {
    /// What the document of a run says of it. A run that was written in another form is replaced as a whole.
    pub fn name(&self) -> String {
        let mut name = PROGRAM.to_owned();
        if let Some(hz) = self.hz {
            name += &format!(" hz={hz}");
        }
        if !self.sources.is_empty() {
            name += &format!(" sources={}", self.sources.join(","));
        }
        name
    }

    fn has(&self, source: &str) -> bool {
        self.sources.is_empty() || self.sources.iter().any(|one| one == source)
    }
}

/// Whether the `source` of a run's document is that of a [`Form`].
pub(super) fn is_own(source: &str) -> bool {
    source.split(' ').next() == Some(PROGRAM)
}

/// Makes the documents of one run.
#[derive(Debug)]
pub struct Maker<'a> {
    version: CdmVersion,
    details: &'a RunDetails,
    form: &'a Form,
    /// The cell that is meant alone, by its place in the run's order.
    position: Option<u32>,
    /// The samples by the numbers of iteration and sample.
    owners: BTreeMap<(u32, u32), (&'a IterationRow, &'a SampleRow)>,
    /// How many series of each path there were, of one attempt at one cell.
    attempt: AttemptSeries,
}

/// The attempt whose series are written, by the numbers of iteration, sample and attempt, and how many there were of each
/// path.
#[derive(Debug, Default)]
struct AttemptSeries {
    numbers: Option<(u32, u32, u32)>,
    paths: BTreeMap<u128, u32>,
}

/// The tag that has the verdict of a run.
pub(super) const VERDICT: &str = "linerate-verdict";

/// The longest list of samples in it, in bytes.
const LONGEST_VERDICT: usize = 4000;

impl<'a> Maker<'a> {
    /// Of what the store has of the run.
    pub fn new(version: CdmVersion, details: &'a RunDetails, form: &'a Form) -> Self {
        let mut owners = BTreeMap::new();
        for iteration in &details.iterations {
            for sample in &iteration.samples {
                owners.insert((iteration.num, sample.num), (iteration, sample));
            }
        }
        Self { version, details, form, position: None, owners, attempt: AttemptSeries::default() }
    }

    /// Of the cell of this position alone.
    #[must_use]
    pub fn of_cell(self, position: u32) -> Self {
        Self { position: Some(position), ..self }
    }

    /// The run itself.
    pub fn run(&self) -> Document {
        let row = &self.details.row;
        let mut run = self.head();
        if let Some(fields) = run.as_object_mut() {
            fields.insert("source".to_owned(), self.form.name().into());
            if let Some(ended_ms) = row.ended_ms {
                fields.insert("end".to_owned(), ended_ms.into());
            }
            if self.version.has_aggregation() {
                fields.insert("partial".to_owned(), row.partial.into());
            }
        }
        self.document(DocumentKind::Run, &[], vec![(DocumentKind::Run, run)])
    }

    /// Its marks, and how far its figures can be trusted.
    pub fn tags(&self) -> Vec<Document> {
        let tag = |(name, value): &(String, String)| {
            let tag = json!({ "name": name, "val": value });
            let parts = vec![(DocumentKind::Run, self.head()), (DocumentKind::Tag, tag)];
            self.document(DocumentKind::Tag, &[name], parts)
        };
        let own = self.details.tags.iter().filter(|(name, _)| name != VERDICT);
        own.chain(&self.verdict()).map(tag).collect()
    }

    /// The mark that tells how far the figures can be trusted: the verdict of the run, then the numbers of iteration and
    /// sample of those that are not valid. The model has no field for it.
    fn verdict(&self) -> Option<(String, String)> {
        let worst = self.details.row.verdict.as_str();
        if worst.is_empty() {
            return None;
        }
        let mut text = worst.to_owned();
        for (iteration, sample) in self.all_samples().filter(|(_, sample)| is_settled(sample)) {
            if !sample.is_doubted() {
                continue;
            }
            if text.len() > LONGEST_VERDICT {
                text.push_str(" ...");
                break;
            }
            text.push_str(&format!(" {}-{}={}", iteration.num, sample.num, sample.verdict()));
        }
        Some((VERDICT.to_owned(), text))
    }

    /// Gives its iterations with their parameters to a function.
    ///
    /// # Errors
    /// The function's own.
    pub fn iterations<E>(&self, mut take: impl FnMut(Document) -> Result<(), E>) -> Result<(), E> {
        for row in &self.details.iterations {
            let num = row.num.to_string();
            let mut iteration = self.iteration(row);
            if let (Some(status), Some(fields)) = (status_of(row), iteration.as_object_mut()) {
                fields.insert("status".to_owned(), status.into());
            }
            let parts =
                vec![(DocumentKind::Run, self.head()), (DocumentKind::Iteration, iteration)];
            take(self.document(DocumentKind::Iteration, &[&num], parts))?;
            for (place, param) in row.params.iter().enumerate() {
                let value = json!({ "arg": param.arg, "val": param.value });
                let parts = vec![
                    (DocumentKind::Run, self.head()),
                    (DocumentKind::Iteration, self.iteration(row)),
                    (DocumentKind::Param, value),
                ];
                take(self.document(DocumentKind::Param, &[&num, &place.to_string()], parts))?;
            }
        }
        Ok(())
    }

    /// Gives samples that have ended, with their periods, to a function.
    ///
    /// # Errors
    /// The function's own.
    pub fn samples<E>(&self, mut take: impl FnMut(Document) -> Result<(), E>) -> Result<(), E> {
        for (iteration, row) in self.all_samples().filter(|(_, row)| is_settled(row)) {
            let (num, sample_num) = (iteration.num.to_string(), row.num.to_string());
            let parts = self.of_sample(iteration, row);
            take(self.document(DocumentKind::Sample, &[&num, &sample_num], parts))?;
            if let Some(parts) = self.of_period(iteration, row) {
                let path = [num.as_str(), &sample_num, &iteration.primary_period];
                take(self.document(DocumentKind::Period, &path, parts))?;
            }
        }
        Ok(())
    }

    /// A series and its points, equal neighbours as one, given to a function. Those of a cell without end, and of
    /// sources that are not asked for, are left out.
    ///
    /// # Errors
    /// Where the store can't be read, or the function's own.
    pub fn series<E: From<StoreError>>(
        &mut self,
        series: &StoredSeries<'_, '_>,
        take: impl FnMut(Document) -> Result<(), E>,
    ) -> Result<(), E> {
        self.series_of(&series.head, |give| series.each_part(give), take)
    }

    /// Likewise, its points given part by part by a function.
    pub(super) fn series_of<E>(
        &mut self,
        series: &SeriesHead,
        read: impl FnOnce(&mut dyn FnMut(&[Point]) -> Result<(), E>) -> Result<(), E>,
        mut take: impl FnMut(Document) -> Result<(), E>,
    ) -> Result<(), E> {
        let owner = series.cell.filter(|_| self.form.has(&series.source));
        let owner = owner.and_then(|cell| self.owners.get(&cell).copied());
        let is_asked = |(_, sample): &(&IterationRow, &SampleRow)| {
            is_settled(sample) && self.position.is_none_or(|asked| asked == sample.position)
        };
        let Some((iteration, sample)) = owner.filter(is_asked) else { return Ok(()) };
        let [iteration_num, sample_num, attempt] =
            [iteration.num, sample.num, series.attempt].map(|number| number.to_string());
        let mut path = vec![iteration_num.as_str(), &sample_num, &attempt];
        path.extend([series.source.as_str(), &series.metric]);
        path.extend(series.labels.iter().flat_map(|(name, value)| [name.as_str(), value]));
        let first = self.digest(DocumentKind::MetricDesc, &path);
        let nth =
            self.attempt.count((iteration.num, sample.num, series.attempt), first).to_string();
        let path: Vec<&str> = path.into_iter().chain([nth.as_str()]).collect();
        let number = self.digest(DocumentKind::MetricDesc, &path);
        let uuid = uuid_of(number);
        let mut parts = vec![(DocumentKind::Run, self.head())];
        if series.in_period {
            parts = self.of_period(iteration, sample).unwrap_or(parts);
        }
        parts.push((DocumentKind::MetricDesc, self.description(series, &uuid)));
        take(self.document_of(DocumentKind::MetricDesc, number, parts))?;
        let mut thinning = Thinning::new(series.aggregation, self.form.hz);
        let mut give = |(span, value): Point| take(self.point(&uuid, span, value));
        read(&mut |points| points.iter().try_for_each(|point| thinning.push(*point, &mut give)))?;
        thinning.finish(&mut give)
    }

    fn all_samples(&self) -> impl Iterator<Item = (&'a IterationRow, &'a SampleRow)> + use<'a> {
        let position = self.position;
        let iterations = self.details.iterations.iter();
        let all = iterations
            .flat_map(|iteration| iteration.samples.iter().map(move |one| (iteration, one)));
        all.filter(move |(_, sample)| position.is_none_or(|asked| asked == sample.position))
    }

    fn point(&self, uuid: &str, span: Span, value: f64) -> Document {
        let desc = self.version.id_field(DocumentKind::MetricDesc);
        let mut document = Map::new();
        let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
        put("cdm", json!({ "ver": self.version.name() }));
        if self.version.data_has_run() {
            let field = self.version.id_field(DocumentKind::Run);
            put("run", json!({ field: self.details.row.run }));
        }
        put("metric_desc", json!({ desc: uuid }));
        put(
            "metric_data",
            json!({
                "begin": span.begin_ms,
                "end": span.end_ms,
                "duration": span.length_ms(),
                "value": value,
            }),
        );
        let number = self.digest(DocumentKind::MetricData, &[uuid, &span.begin_ms.to_string()]);
        Document {
            kind: DocumentKind::MetricData,
            id: format!("{number:032x}"),
            body: Value::Object(document).to_string(),
        }
    }

    fn description(&self, series: &SeriesHead, uuid: &str) -> Value {
        let names = names_of(&series.labels);
        let mut description = json!({
            "source": series.source,
            "type": series.metric,
            "class": series.class,
            "names-list": names.keys().collect::<Vec<_>>(),
            "names": names,
        });
        if let Some(fields) = description.as_object_mut() {
            fields.insert(self.version.id_field(DocumentKind::MetricDesc), uuid.into());
            if self.version.has_aggregation() {
                fields.insert("default-aggregation".to_owned(), series.aggregation.name().into());
            }
        }
        description
    }

    /// What all documents say of the run.
    fn head(&self) -> Value {
        let RunDetails { row, person, email, .. } = self.details;
        let mut run = json!({ "begin": row.began_ms });
        if let Some(fields) = run.as_object_mut() {
            fields.insert(self.version.id_field(DocumentKind::Run), row.run.clone().into());
            let texts = [
                ("harness", &row.origin.harness),
                ("benchmark", &row.origin.benchmarks),
                ("name", person),
                ("email", email),
                ("desc", &row.title),
            ];
            for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
                fields.insert(name.to_owned(), text.clone().into());
            }
        }
        run
    }

    fn iteration(&self, row: &IterationRow) -> Value {
        let mut iteration = json!({
            self.version.id_field(DocumentKind::Iteration): row.uuid,
            "num": row.num,
            "primary-period": row.primary_period,
        });
        if let (false, Some(fields)) = (row.primary_metric.is_empty(), iteration.as_object_mut()) {
            fields.insert("primary-metric".to_owned(), row.primary_metric.clone().into());
        }
        iteration
    }

    fn of_sample(&self, iteration: &IterationRow, row: &SampleRow) -> Vec<(DocumentKind, Value)> {
        let id = self.version.id_field(DocumentKind::Sample);
        let mut sample = json!({ id: row.uuid, "num": row.num });
        if let (true, Some(fields)) = (is_settled(row), sample.as_object_mut()) {
            let status = if row.status == "done" { "pass" } else { "fail" };
            fields.insert("status".to_owned(), status.into());
        }
        vec![
            (DocumentKind::Run, self.head()),
            (DocumentKind::Iteration, self.iteration(iteration)),
            (DocumentKind::Sample, sample),
        ]
    }

    fn of_period(
        &self,
        iteration: &IterationRow,
        row: &SampleRow,
    ) -> Option<Vec<(DocumentKind, Value)>> {
        let period = row.period.as_ref()?;
        let mut parts = self.of_sample(iteration, row);
        let period = json!({
            self.version.id_field(DocumentKind::Period): period.uuid,
            "name": iteration.primary_period,
            "begin": period.span.begin_ms,
            "end": period.span.end_ms,
        });
        parts.push((DocumentKind::Period, period));
        Some(parts)
    }

    fn document(
        &self,
        kind: DocumentKind,
        path: &[&str],
        parts: Vec<(DocumentKind, Value)>,
    ) -> Document {
        self.document_of(kind, self.digest(kind, path), parts)
    }

    fn document_of(
        &self,
        kind: DocumentKind,
        number: u128,
        parts: Vec<(DocumentKind, Value)>,
    ) -> Document {
        let mut document = Map::new();
        document.insert("cdm".to_owned(), json!({ "ver": self.version.name() }));
        document.extend(parts.into_iter().map(|(kind, value)| (kind.name().to_owned(), value)));
        Document { kind, id: format!("{number:032x}"), body: Value::Object(document).to_string() }
    }

    /// A number that no other path of any run has.
    fn digest(&self, kind: DocumentKind, path: &[&str]) -> u128 {
        let mut context = Context::new(&SHA256);
        for part in [self.details.row.run.as_str(), kind.name()].iter().chain(path) {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part.as_bytes());
        }
        let digest = context.finish();
        digest.as_ref().first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes))
    }
}

/// Whether no attempt at the sample will follow.
pub(crate) fn is_settled(sample: &SampleRow) -> bool {
    ["done", "failed"].contains(&sample.status.as_str())
}

/// `pass` where a sample is done and no threshold was missed, `fail` otherwise; `None` before the end of all samples.
fn status_of(row: &IterationRow) -> Option<&'static str> {
    let any = row.samples.iter().any(|sample| sample.status == "done");
    let all_settled = row.samples.iter().all(is_settled);
    match (row.status.as_str(), any, all_settled) {
        ("fail", ..) => Some("fail"),
        (_, true, true) => Some("pass"),
        (_, false, true) => Some("fail"),
        (_, _, false) => None,
    }
}

/// The digest as a UUID of version 8 (RFC 9562, section 5.8).
fn uuid_of(number: u128) -> String {
    crate::identity::format_uuid(number, 8)
}

/// Labels by names that the mapping has. Other words go to the nearest name or, together, to one for all.
fn names_of(labels: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let mut names: BTreeMap<String, Value> = BTreeMap::new();
    let mut others = Vec::new();
    for (name, value) in labels {
        let near = match name.as_str() {
            "flow" => "stream",
            name => name,
        };
        let number = (near == NUMBER_NAME).then(|| value.parse::<Number>().ok()).flatten();
        let value_of = match number {
            Some(number) => Some(Value::Number(number)),
            None => NAMES.contains(&near).then(|| value.clone().into()),
        };
        match value_of.filter(|_| near == name || !labels.contains_key(near)) {
            Some(value) if near != OTHER_NAME => {
                names.insert(near.to_owned(), value);
            }
            _ if near == OTHER_NAME => others.push(value.clone()),
            _ => others.push(format!("{name}={value}")),
        }
    }
    if !others.is_empty() {
        names.insert(OTHER_NAME.to_owned(), others.join(" ").into());
    }
    names
}

impl AttemptSeries {
    /// How often there was a path of this attempt, this time included.
    fn count(&mut self, attempt: (u32, u32, u32), path: u128) -> u32 {
        if self.numbers != Some(attempt) {
            *self = Self { numbers: Some(attempt), paths: BTreeMap::new() };
        }
        let count = self.paths.entry(path).or_default();
        *count += 1;
        *count
    }
}

/// Makes neighbours with equal values one point, and gives at most a point each `least_ms`. Sums of value times
/// milliseconds stay as they are; of greatest and least values the extreme is kept.
#[derive(Debug)]
pub struct Thinning {
    aggregation: Aggregation,
    least_ms: f64,
    /// The point that takes in its neighbours until it is long enough.
    slow: Option<Point>,
    /// The point that takes in neighbours of its value.
    held: Option<Point>,
}

impl Thinning {
    /// One that has got no point; without `hz` as many points a second as there are.
    pub fn new(aggregation: Aggregation, hz: Option<f64>) -> Self {
        let least_ms = hz.filter(|hz| *hz > 0.0).map_or(0.0, |hz| 1000.0 / hz);
        Self { aggregation, least_ms, slow: None, held: None }
    }

    /// Takes the next point, and gives those before it that are whole.
    ///
    /// # Errors
    /// The function's own.
    pub fn push<E>(
        &mut self,
        (span, value): Point,
        give: &mut impl FnMut(Point) -> Result<(), E>,
    ) -> Result<(), E> {
        match &mut self.slow {
            Some((last, held))
                if touch(*last, span) && (last.length_ms() as f64) + 0.5 < self.least_ms =>
            {
                let (before, now) = (last.length_ms() as f64, span.length_ms() as f64);
                *held = match self.aggregation {
                    Aggregation::Max => held.max(value),
                    Aggregation::Min => held.min(value),
                    // Shares of both, so that no product grows out of range.
                    Aggregation::Sum | Aggregation::Avg => {
                        *held * (before / (before + now)) + value * (now / (before + now))
                    }
                };
                last.end_ms = span.end_ms;
                Ok(())
            }
            _ => match self.slow.replace((span, value)) {
                Some(whole) => self.merge(whole, give),
                None => Ok(()),
            },
        }
    }

    fn merge<E>(
        &mut self,
        (span, value): Point,
        give: &mut impl FnMut(Point) -> Result<(), E>,
    ) -> Result<(), E> {
        match &mut self.held {
            Some((last, held)) if touch(*last, span) && *held == value => {
                last.end_ms = span.end_ms;
                Ok(())
            }
            _ => self.held.replace((span, value)).map_or(Ok(()), give),
        }
    }

    /// Gives the points that are left.
    ///
    /// # Errors
    /// The function's own.
    pub fn finish<E>(mut self, give: &mut impl FnMut(Point) -> Result<(), E>) -> Result<(), E> {
        if let Some(last) = self.slow.take() {
            self.merge(last, give)?;
        }
        self.held.map_or(Ok(()), give)
    }
}

fn touch(one: Span, next: Span) -> bool {
    one.end_ms + 1 == next.begin_ms
}
