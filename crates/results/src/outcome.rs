//! What a sample came to by its own documents: its figure, and how far that can be trusted.
//!
//! The figure is the run's own, as its document has it. Series are counts of single ends in whole intervals: what a query
//! makes of them is near the figure, and the figure is what lists, means and metrics show.

use std::collections::BTreeSet;

use linerate_measure::threshold::hunted;
use linerate_measure::trust::Trust;
use linerate_measure::{Role, Run};
use rusqlite::{Connection, params};
use serde::Deserialize as _;

use crate::StoreError;
use crate::convert::source_of;
use crate::model::CellStatus;

/// The longest reason that is kept, in characters.
const LONGEST_REASON: usize = 1000;

/// The figure that a document is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The metric that it is, as `source::type`.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// Absent: the metric was asked for, and nothing came of it.
    pub value: Option<f64>,
}

/// What a sample came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleOutcome {
    /// The verdict of its documents, the worst; `None` where no document has one.
    pub verdict: Option<Trust>,
    /// Why it is not valid, or empty.
    pub why: String,
    /// Its figure; `None` where no document has one. What the series come to is shown instead.
    pub figure: Option<Figure>,
}

/// The metric and the unit of rates of payload.
pub(crate) const RECEIVED: (&str, &str) = ("rx-Gbps", "Gbit/s");
/// Likewise, of what was sent, where nobody told what was received.
const SENT: (&str, &str) = ("tx-Gbps", "Gbit/s");
/// Likewise, of requests and of connections.
pub(crate) const TRANSACTIONS: (&str, &str) = ("transactions-sec", "transactions/s");

/// The figure of a document: of a hunt the rate that it found, else what its summary has.
pub fn figure_of_run(run: &Run) -> Option<Figure> {
    let of_bits = |bps: f64| bps / 1e9;
    let ((metric, unit), value) = match run.hunt.as_deref() {
        Some(hunt) => {
            let rate = hunt.outcome.rate().map(|rate| rate as f64);
            match hunted(hunt.goal.unit) == linerate_measure::metric::HUNT_RATE_BPS {
                true => (RECEIVED, rate.map(of_bits)),
                false => (TRANSACTIONS, rate),
            }
        }
        None => {
            let summary = &run.summary;
            let requests = summary.transactions_per_s.or(summary.connections_per_s);
            let received = summary.goodput_bps.map(of_bits);
            match (requests, received, summary.sent_bps.map(of_bits)) {
                (Some(rate), ..) => (TRANSACTIONS, Some(rate)),
                (None, Some(rate), _) => (RECEIVED, Some(rate)),
                (None, None, Some(rate)) => (SENT, Some(rate)),
                (None, None, None) => return None,
            }
        }
    };
    let value = value.filter(|value| value.is_finite());
    Some(Figure { metric: format!("{}::{metric}", source_of(run.dialect)), unit, value })
}

impl SampleOutcome {
    /// What the documents of a cell come to: those of its clients, or where there is none all of them. Figures of pairs
    /// are added; where one of them has none, or another metric, the cell has none.
    pub fn of_runs<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let all: Vec<&Run> = runs.into_iter().collect();
        let of_clients = || all.iter().filter(|run| run.written_by == Role::Client);
        let counting: Vec<&Run> = match of_clients().next() {
            Some(_) => of_clients().copied().collect(),
            None => all,
        };
        let verdict = counting.iter().map(|run| run.status.trust()).max();
        let mut reasons: Vec<&str> = Vec::new();
        let mut known = BTreeSet::new();
        for run in counting.iter().filter(|run| run.status.trust() != Trust::Valid) {
            let status = &run.status;
            let texts = status.reasons.iter().map(|reason| reason.text.as_str());
            let message = status.message.as_deref().filter(|_| status.reasons.is_empty());
            let new = texts.chain(message).filter(|text| known.insert(*text));
            reasons.extend(new);
        }
        let figures: Option<Vec<Figure>> = counting.iter().map(|run| figure_of_run(run)).collect();
        Self { verdict, why: shortened(&reasons.join("; ")), figure: figures.and_then(sum) }
    }

    /// Likewise, of a cell that the scheduler may have judged by more than its documents.
    #[must_use]
    pub fn judged(mut self, is_trusted: bool, reason: &str) -> Self {
        if !is_trusted {
            self.verdict = Some(Trust::Invalid);
            if !reason.is_empty() {
                self.why = shortened(reason);
            }
        }
        self
    }
}

/// What the figures of all pairs come to.
fn sum(figures: Vec<Figure>) -> Option<Figure> {
    let mut figures = figures.into_iter();
    let mut all = figures.next()?;
    for figure in figures {
        if figure.metric != all.metric {
            return None;
        }
        all.value = all.value.zip(figure.value).map(|(sum, value)| sum + value);
    }
    Some(all)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_REASON) {
        None => text.to_owned(),
        Some((end, _)) => format!("{} ...", text.get(..end).unwrap_or_default()),
    }
}

/// The word that the store has for a verdict; empty where there is none.
pub fn verdict_name(verdict: Option<Trust>) -> &'static str {
    match verdict {
        None => "",
        Some(Trust::Valid) => "valid",
        Some(Trust::Doubtful) => "doubtful",
        Some(Trust::Invalid) => "invalid",
    }
}

/// The verdict of a word of the store.
pub fn verdict_of_name(name: &str) -> Option<Trust> {
    serde_json::from_value(name.into()).ok()
}

/// Stores what a sample came to, in the place of what an earlier attempt did.
pub(crate) fn insert_outcome(
    tables: &Connection,
    sample: i64,
    outcome: &SampleOutcome,
) -> Result<(), StoreError> {
    let figure = outcome.figure.as_ref();
    let metric = figure.map(|figure| figure.metric.as_str()).unwrap_or_default();
    let unit = figure.map(|figure| figure.unit).unwrap_or_default();
    let value = figure.and_then(|figure| figure.value);
    tables.execute(
        "INSERT OR REPLACE INTO outcome (sample, verdict, why, metric, unit, value) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![sample, verdict_name(outcome.verdict), outcome.why, metric, unit, value],
    )?;
    Ok(())
}

/// Removes series of requests that the server counted too: the client's are the run's. Stores of earlier versions have
/// both, and so has what they wrote to an index.
pub(crate) fn remove_counted_twice(tables: &Connection) -> Result<(), StoreError> {
    let condition = "?1 = 0 AND type = 'transactions-sec' AND EXISTS (SELECT 1 FROM label own \
         WHERE own.series = series.id AND own.name = 'cstype' AND own.value = 'server') \
         AND EXISTS (SELECT 1 FROM main.series other \
         JOIN label of ON of.series = other.id AND of.name = 'cstype' AND of.value = 'client' \
         WHERE other.run = series.run AND other.source = series.source AND other.type = series.type \
         AND other.attempt IS series.attempt AND other.period IS series.period \
         AND (SELECT value FROM label WHERE series = other.id AND name = 'csid') \
         IS (SELECT value FROM label WHERE series = series.id AND name = 'csid'))";
    crate::insert::delete_series(tables, condition, 0)
}

/// The documents of a store of an earlier version, one cell after the other.
const DOCUMENTS: &str = "SELECT s.id, s.status, a.reason, d.body FROM sample s \
     JOIN attempt a ON a.sample = s.id AND a.num = (SELECT max(num) FROM attempt WHERE sample = s.id) \
     JOIN document d ON d.attempt = a.id WHERE s.status IN ('done', 'failed') AND d.kind = ?1 \
     ORDER BY s.id, d.id";

/// A document of an earlier version is read up to this length. Of a longer one the verdict isn't known.
const MOST_EARLIER_BYTES: u64 = 64 << 20;

/// Works out what each sample of a store of an earlier version came to, from the documents that it has.
pub(crate) fn read_outcomes(tables: &Connection) -> Result<(), StoreError> {
    let mut statement = tables.prepare(DOCUMENTS)?;
    let mut rows = statement.query([Run::SCHEMA])?;
    let mut cell: Option<EarlierCell> = None;
    while let Some(row) = rows.next()? {
        let sample: i64 = row.get(0)?;
        if cell.as_ref().is_none_or(|cell| cell.sample != sample) {
            if let Some(done) = cell.take() {
                done.insert(tables)?;
            }
            let (status, reason) = (row.get(1)?, row.get(2)?);
            cell = Some(EarlierCell { sample, status, reason, runs: Vec::new(), is_whole: true });
        }
        let Some(cell) = &mut cell else { continue };
        let body = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
        let text = crate::read::inflate_up_to(body, MOST_EARLIER_BYTES).ok();
        match text.and_then(|text| read_run(&text)) {
            Some(run) => cell.runs.push(run),
            None => cell.is_whole = false,
        }
    }
    cell.map_or(Ok(()), |done| done.insert(tables))
}

/// A document without what no outcome is made of.
fn read_run(text: &str) -> Option<Run> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut run = Run::deserialize(&mut deserializer).ok()?;
    run.samples = Vec::new();
    run.reports = Vec::new();
    run.earlier_iterations = Vec::new();
    Some(run)
}

/// A cell of a store of an earlier version.
struct EarlierCell {
    sample: i64,
    status: String,
    reason: String,
    runs: Vec<Run>,
    /// Whether all its documents could be read.
    is_whole: bool,
}

impl EarlierCell {
    fn insert(self, tables: &Connection) -> Result<(), StoreError> {
        if !self.is_whole {
            return Ok(());
        }
        // A cell that was measured has a reason only where it is not to be trusted.
        let is_trusted = self.status != CellStatus::Done.name() || self.reason.is_empty();
        let outcome = SampleOutcome::of_runs(&self.runs).judged(is_trusted, &self.reason);
        insert_outcome(tables, self.sample, &outcome)
    }
}
