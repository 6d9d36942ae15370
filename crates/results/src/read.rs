//! What a store has: runs, their iterations, samples and documents.

use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::DeflateDecoder;
use linerate_measure::window::Span;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use crate::StoreError;
use crate::insert::recorded_cells;
use crate::model::{NewHost, NewParam, RecordedCell};
use crate::store::{RunId, Store};

/// The most runs that a list has.
const MOST_RUNS: i64 = 100_000;

/// The most rows of one kind that a run may have: iterations, samples, attempts, documents.
const MOST_ROWS: i64 = 2_000_000;

/// A document may have so many bytes when it is inflated.
const MOST_DOCUMENT_BYTES: u64 = 256 << 20;

/// The row of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// Its id in this store.
    #[serde(skip)]
    pub id: RunId,
    /// Its name among all stores.
    pub run: String,
    /// The user's title, or empty.
    pub title: String,
    /// `running`, `complete`, `failed` or `stopped`.
    pub status: String,
    /// Whether cells or hosts are missing.
    pub partial: bool,
    /// When it began (UTC, milliseconds since 1970).
    pub began_ms: i64,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// What began it.
    pub command: String,
    /// Its harness and benchmarks.
    #[serde(flatten)]
    pub origin: RunOrigin,
    /// The version of the program that measured.
    pub version: String,
    /// Cells that are done.
    pub done: u32,
    /// Cells.
    pub cells: u32,
    /// How far its figures can be trusted, by the worst of its samples: `valid`, `doubtful` or `invalid`; empty where
    /// no document has a verdict.
    pub verdict: String,
}

/// Where a run comes from, in words of the Common Data Model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunOrigin {
    /// The harness.
    pub harness: String,
    /// The benchmarks, a list with commas.
    pub benchmarks: String,
}

/// How much a store has: what changes when a run comes, goes on or ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Runs.
    pub runs: i64,
    /// Runs that have ended.
    pub ended: i64,
    /// Cells of all runs that are done.
    pub done_cells: i64,
    /// Cells of all runs that are done or failed.
    pub ended_cells: i64,
    /// The name of the newest run, or empty.
    pub newest: String,
}

/// What else a run has, itself and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDetails {
    /// Its row.
    pub row: RunRow,
    /// Who ran it, or empty.
    pub person: String,
    /// Their address, or empty.
    pub email: String,
    /// The plan as JSON.
    pub plan: String,
    /// The user's marks, by name.
    pub tags: Vec<(String, String)>,
    /// Its hosts.
    pub hosts: Vec<NewHost>,
    /// Sentences about it and its cells, by the cell's position.
    pub notes: Vec<(Option<u32>, String)>,
    /// Its iterations, in order.
    pub iterations: Vec<IterationRow>,
}

/// An iteration of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct IterationRow {
    /// Its number, from 1.
    pub num: u32,
    /// Its name among all stores.
    pub uuid: String,
    /// Its verdict, or empty.
    pub status: String,
    /// The metric that it is judged by, as `source::type`, or empty.
    pub primary_metric: String,
    /// The name of its periods that count.
    pub primary_period: String,
    /// Its parameters, in order.
    pub params: Vec<NewParam>,
    /// Its samples, by number.
    pub samples: Vec<SampleRow>,
}

/// A sample of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRow {
    /// Its number, from 1.
    pub num: u32,
    /// Its name among all stores.
    pub uuid: String,
    /// `waiting`, `running`, `done` or `failed`.
    pub status: String,
    /// Its place in the run's order, from 0.
    pub position: u32,
    /// Why its last attempt failed, or empty.
    pub reason: String,
    /// The exit code of its last attempt.
    pub exit_code: Option<i32>,
    /// Its period that counts; `None` where nothing was measured.
    pub period: Option<PeriodRow>,
    /// What its documents come to; `None` where it has not ended.
    pub outcome: Option<OutcomeRow>,
}

impl SampleRow {
    /// Its verdict; empty where none is known.
    pub fn verdict(&self) -> &str {
        self.outcome.as_ref().map(|outcome| outcome.verdict.as_str()).unwrap_or_default()
    }

    /// Whether its figure counts: a sample that failed has at most a part of one.
    pub fn counts(&self) -> bool {
        self.status == "done"
    }

    /// Whether a verdict speaks against its figure.
    pub fn is_doubted(&self) -> bool {
        !matches!(self.verdict(), "" | "valid")
    }
}

/// What the documents of a sample come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutcomeRow {
    /// `valid`, `doubtful` or `invalid`; empty where no document has a verdict.
    pub verdict: String,
    /// Why it is not valid, or empty.
    pub why: String,
    /// The metric of its figure, as `source::type`; empty where its documents have none.
    pub metric: String,
    /// The unit of its figure.
    pub unit: String,
    /// Its figure.
    pub value: Option<f64>,
}

/// The time of a sample that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodRow {
    /// Its name among all stores.
    pub uuid: String,
    /// Its time.
    pub span: Span,
}

/// A document of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRow {
    /// The position of its cell.
    pub position: u32,
    /// The number of its attempt at the cell, from 1.
    pub attempt: u32,
    /// The host that wrote it, or empty.
    pub host: String,
    /// Its format, such as `linerate.run/1`.
    pub kind: String,
    /// Its text.
    pub body: String,
}

const RUN_ROW: &str = "SELECT id, uuid, title, status, partial, began_ms, ended_ms, origin, harness, benchmarks, \
     version, (SELECT count(*) FROM sample s WHERE s.run = run.id), \
     (SELECT count(*) FROM sample s WHERE s.run = run.id AND s.status = 'done'), \
     (SELECT substr(max(CASE WHEN o.sample IS NULL AND s.status = 'failed' THEN '4invalid' \
      WHEN o.sample IS NULL OR o.verdict = '' THEN '0' WHEN o.verdict = 'valid' THEN '1valid' \
      WHEN o.verdict = 'doubtful' THEN '3doubtful' WHEN o.verdict = 'invalid' THEN '4invalid' \
      ELSE '2' || o.verdict END), 2) FROM sample s LEFT JOIN outcome o ON o.sample = s.id \
      WHERE s.run = run.id AND s.status IN ('done', 'failed')) FROM run ";

fn run_row(row: &Row<'_>) -> Result<RunRow, rusqlite::Error> {
    Ok(RunRow {
        id: RunId(row.get(0)?),
        run: row.get(1)?,
        title: row.get(2)?,
        status: row.get(3)?,
        partial: row.get(4)?,
        began_ms: row.get(5)?,
        ended_ms: row.get(6)?,
        command: row.get(7)?,
        origin: RunOrigin { harness: row.get(8)?, benchmarks: row.get(9)? },
        version: row.get(10)?,
        cells: row.get(11)?,
        done: row.get(12)?,
        verdict: row.get::<_, Option<String>>(13)?.unwrap_or_default(),
    })
}

impl Store {
    /// The runs, the newest first.
    ///
    /// # Errors
    /// Where the file can't be read.
    pub fn runs(&self) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!("{RUN_ROW} ORDER BY began_ms DESC, id DESC LIMIT {MOST_RUNS}");
        let mut rows = self.connection.prepare(&sql)?;
        let rows = rows.query_map([], run_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// How much there is.
    ///
    /// # Errors
    /// Where the file can't be read.
    pub fn extent(&self) -> Result<Extent, StoreError> {
        let sql = "SELECT count(*), count(ended_ms), (SELECT count(*) FROM sample WHERE status = 'done'), \
                   (SELECT count(*) FROM sample WHERE status IN ('done', 'failed')), \
                   coalesce((SELECT uuid FROM run ORDER BY began_ms DESC, id DESC LIMIT 1), '') FROM run";
        let extent = self.connection.query_row(sql, [], |row| {
            Ok(Extent {
                runs: row.get(0)?,
                ended: row.get(1)?,
                done_cells: row.get(2)?,
                ended_cells: row.get(3)?,
                newest: row.get(4)?,
            })
        })?;
        Ok(extent)
    }

    /// The runs that have all these marks, the newest first.
    ///
    /// # Errors
    /// Where the file can't be read.
    pub fn runs_with(&self, tags: &[(String, String)]) -> Result<Vec<RunRow>, StoreError> {
        let mut runs = self.runs()?;
        let mut rows =
            self.connection.prepare("SELECT run FROM tag WHERE name = ?1 AND value = ?2")?;
        for (name, value) in tags {
            let marked = rows.query_map([name, value], |row| row.get(0).map(RunId))?;
            let marked = marked.collect::<Result<BTreeSet<RunId>, _>>()?;
            runs.retain(|run| marked.contains(&run.id));
        }
        Ok(runs)
    }

    /// A number that changes with the store, by whichever program: another one means that it may have changed.
    ///
    /// # Errors
    /// Where the file can't be read.
    pub fn change(&self) -> Result<i64, StoreError> {
        Ok(self.connection.query_row("PRAGMA data_version", [], |row| row.get(0))?)
    }

    /// The run that a word means: its name, the beginning of its name, its title, or `last`. A name or title as a
    /// whole goes before a beginning, and the run of a client before the one that its server kept.
    ///
    /// # Errors
    /// Where there is none, or several; the sentence names them.
    pub fn find(&self, word: &str) -> Result<RunRow, StoreError> {
        let runs = self.runs()?;
        if word == "last" {
            let none = || StoreError::NotFound("the store has no run yet".to_owned());
            return runs.into_iter().next().ok_or_else(none);
        }
        let pick = |test: &dyn Fn(&RunRow) -> bool| {
            runs.iter().filter(|row| test(row)).cloned().collect::<Vec<_>>()
        };
        let mut found = pick(&|row| row.run == word);
        if found.is_empty() {
            found = pick(&|row| !word.is_empty() && row.title == word);
        }
        if found.is_empty() {
            found = pick(&|row| !word.is_empty() && row.run.starts_with(word));
        }
        if let [one, other] = &found[..]
            && let Some(client) = client_of(one, other).or_else(|| client_of(other, one))
        {
            return Ok(client.clone());
        }
        match &found[..] {
            [one] => Ok(one.clone()),
            [] => Err(StoreError::NotFound(format!(
                "the store {} has no run '{word}': `linerate results list` shows those it has",
                self.path().display()
            ))),
            several => {
                let names: Vec<&str> = several.iter().take(5).map(|row| row.run.as_str()).collect();
                Err(StoreError::NotFound(format!(
                    "'{word}' means {} runs: give more of the name: {}",
                    several.len(),
                    names.join(", ")
                )))
            }
        }
    }

    /// The run of exactly this name.
    ///
    /// # Errors
    /// Where there is none.
    pub fn find_exactly(&self, name: &str) -> Result<RunRow, StoreError> {
        let sql = format!("{RUN_ROW} WHERE uuid = ?1");
        let row = self.connection.query_row(&sql, [name], run_row).optional()?;
        row.ok_or_else(|| {
            let why = format!("the store has no run of exactly the name '{name}'");
            StoreError::NotFound(why)
        })
    }

    /// The run that a period belongs to.
    ///
    /// # Errors
    /// Where there is no period of this name.
    pub fn run_of_period(&self, uuid: &str) -> Result<RunId, StoreError> {
        let sql = "SELECT i.run FROM period p JOIN sample s ON p.sample = s.id \
                   JOIN iteration i ON s.iteration = i.id WHERE p.uuid = ?1";
        let run = self.connection.query_row(sql, [uuid], |row| row.get(0)).optional()?;
        run.map(RunId)
            .ok_or_else(|| StoreError::NotFound(format!("the store has no period '{uuid}'")))
    }

    /// The row of a run.
    ///
    /// # Errors
    /// Where the file can't be read.
    pub fn row(&self, run: RunId) -> Result<RunRow, StoreError> {
        let sql = format!("{RUN_ROW} WHERE id = ?1");
        Ok(self.connection.query_row(&sql, [run.0], run_row)?)
    }

    /// All of a run but its documents and series.
    ///
    /// # Errors
    /// Where the file can't be read or breaks its format.
    pub fn details(&self, run: RunId) -> Result<RunDetails, StoreError> {
        let row = self.row(run)?;
        let sql = "SELECT plan, person, email FROM run WHERE id = ?1";
        let (plan, person, email) = self
            .connection
            .query_row(sql, [run.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let tags = self.rows(
            "SELECT name, value FROM tag WHERE run = ?1 ORDER BY name LIMIT ?2",
            run.0,
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let hosts = self.rows(
            "SELECT name, transport, facts, offset_ns, bound_ns FROM host WHERE run = ?1 ORDER BY id LIMIT ?2",
            run.0,
            |row| {
                Ok(NewHost {
                    name: row.get(0)?,
                    transport: row.get(1)?,
                    facts: row.get(2)?,
                    offset_ns: row.get(3)?,
                    bound_ns: row.get(4)?,
                })
            },
        )?;
        let notes = self.rows(
            "SELECT position, text FROM note WHERE run = ?1 ORDER BY id LIMIT ?2",
            run.0,
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let iterations = self.iterations(run, None)?;
        Ok(RunDetails { row, person, email, plan, tags, hosts, notes, iterations })
    }

    /// Of a run what belongs to the cell of this position in its order: its iteration alone. Marks, hosts and notes are
    /// left out.
    ///
    /// # Errors
    /// As [`Self::details`].
    pub(crate) fn details_of_cell(
        &self,
        run: RunId,
        position: u32,
    ) -> Result<RunDetails, StoreError> {
        let row = self.row(run)?;
        let sql = "SELECT person, email FROM run WHERE id = ?1";
        let (person, email) =
            self.connection.query_row(sql, [run.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (tags, hosts, notes, plan) = (Vec::new(), Vec::new(), Vec::new(), String::new());
        let iterations = self.iterations(run, Some(position))?;
        Ok(RunDetails { row, person, email, plan, tags, hosts, notes, iterations })
    }

    /// A run's cells in the order in which they are run.
    ///
    /// # Errors
    /// Where the file can't be read or breaks its format.
    pub fn cells(&self, run: RunId) -> Result<Vec<RecordedCell>, StoreError> {
        recorded_cells(&self.connection, run.0)
    }

    /// The iterations of a run, or the one of the cell of this position.
    fn iterations(
        &self,
        run: RunId,
        position: Option<u32>,
    ) -> Result<Vec<IterationRow>, StoreError> {
        let sql = "SELECT id, num, uuid, status, primary_metric, primary_period FROM iteration WHERE run = ?1 \
                   AND (?3 IS NULL OR id = (SELECT iteration FROM sample WHERE run = ?1 AND position = ?3)) \
                   ORDER BY num LIMIT ?2";
        let mut rows = self.connection.prepare(sql)?;
        let rows = rows.query_map(params![run.0, MOST_ROWS, position], |row| {
            let iteration = IterationRow {
                num: row.get(1)?,
                uuid: row.get(2)?,
                status: row.get(3)?,
                primary_metric: row.get(4)?,
                primary_period: row.get(5)?,
                params: Vec::new(),
                samples: Vec::new(),
            };
            Ok((row.get::<_, i64>(0)?, iteration))
        })?;
        let mut iterations = rows.collect::<Result<Vec<_>, _>>()?;
        for (id, iteration) in &mut iterations {
            iteration.params = self.rows(
                "SELECT benchmark, arg, value, role, engines FROM param WHERE iteration = ?1 \
                 ORDER BY position LIMIT ?2",
                *id,
                |row| {
                    Ok(NewParam {
                        benchmark: row.get(0)?,
                        arg: row.get(1)?,
                        value: row.get(2)?,
                        role: row.get(3)?,
                        engines: row.get(4)?,
                    })
                },
            )?;
            iteration.samples = self.samples(*id)?;
        }
        Ok(iterations.into_iter().map(|(_, iteration)| iteration).collect())
    }

    fn samples(&self, iteration: i64) -> Result<Vec<SampleRow>, StoreError> {
        let rows = self.rows(
            "SELECT s.num, s.uuid, s.status, s.position, coalesce(a.reason, ''), a.exit_code, \
             p.uuid, p.begin_ms, p.end_ms, o.verdict, o.why, o.metric, o.unit, o.value FROM sample s \
             LEFT JOIN outcome o ON o.sample = s.id \
             LEFT JOIN attempt a ON a.sample = s.id AND a.num = (SELECT max(num) FROM attempt WHERE sample = s.id) \
             LEFT JOIN period p ON p.sample = s.id WHERE s.iteration = ?1 ORDER BY s.num LIMIT ?2",
            iteration,
            |row| {
                let period: Option<String> = row.get(6)?;
                let times = (row.get::<_, Option<i64>>(7)?, row.get::<_, Option<i64>>(8)?);
                let sample = SampleRow {
                    num: row.get(0)?,
                    uuid: row.get(1)?,
                    status: row.get(2)?,
                    position: row.get(3)?,
                    reason: row.get(4)?,
                    exit_code: row.get(5)?,
                    period: None,
                    outcome: outcome_row(row, 9)?,
                };
                Ok((sample, period.zip(times.0.zip(times.1))))
            },
        )?;
        let samples = rows.into_iter().map(|(mut sample, period)| {
            if let Some((uuid, (begin, end))) = period {
                let span = Span::new(begin, end)
                    .ok_or_else(|| StoreError::Damaged(format!("the period {uuid} has no time")))?;
                sample.period = Some(PeriodRow { uuid, span });
            }
            Ok(sample)
        });
        samples.collect()
    }

    /// Gives each document of a run to a function, in the order of the cells.
    ///
    /// # Errors
    /// Where a document can't be read or breaks a limit, or the function's own.
    pub fn each_document<E: From<StoreError>>(
        &self,
        run: RunId,
        mut take: impl FnMut(DocumentRow) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT s.position, a.num, d.host, d.kind, d.body FROM document d \
                   JOIN attempt a ON d.attempt = a.id JOIN sample s ON a.sample = s.id \
                   JOIN iteration i ON s.iteration = i.id WHERE i.run = ?1 ORDER BY s.position, a.num, d.id LIMIT ?2";
        let mut rows = self.connection.prepare(sql).map_err(StoreError::from)?;
        let rows = rows.query_map(params![run.0, MOST_ROWS], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get::<_, Vec<u8>>(4)?))
        });
        for row in rows.map_err(StoreError::from)? {
            let (position, attempt, host, kind, body) = row.map_err(StoreError::from)?;
            let body = inflate(&body)?;
            take(DocumentRow { position, attempt, host, kind, body })?;
        }
        Ok(())
    }

    fn rows<T>(
        &self,
        sql: &str,
        id: i64,
        read: impl Fn(&Row<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let mut rows = self.connection.prepare(sql)?;
        let rows = rows.query_map(params![id, MOST_ROWS], |row| read(row))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// What a sample came to, from this column on.
fn outcome_row(row: &Row<'_>, first: usize) -> Result<Option<OutcomeRow>, rusqlite::Error> {
    let Some(verdict) = row.get(first)? else { return Ok(None) };
    Ok(Some(OutcomeRow {
        verdict,
        why: row.get(first + 1)?,
        metric: row.get(first + 2)?,
        unit: row.get(first + 3)?,
        value: row.get::<_, Option<f64>>(first + 4)?.filter(|value| value.is_finite()),
    }))
}

/// The first run, where the second is what its server kept of the same test.
fn client_of<'a>(one: &'a RunRow, other: &RunRow) -> Option<&'a RunRow> {
    (other.run.strip_suffix(".server") == Some(one.run.as_str())).then_some(one)
}

/// The text of a deflated document.
fn inflate(body: &[u8]) -> Result<String, StoreError> {
    inflate_up_to(body, MOST_DOCUMENT_BYTES)
}

/// The text of a deflated document that has at most `most_bytes`.
pub(crate) fn inflate_up_to(body: &[u8], most_bytes: u64) -> Result<String, StoreError> {
    let damaged = |why: String| StoreError::Damaged(format!("a document {why}"));
    let mut text = String::new();
    let mut decoder = DeflateDecoder::new(body).take(most_bytes + 1);
    let read = decoder.read_to_string(&mut text);
    let length = read.map_err(|error| damaged(format!("can't be inflated: {error}")))?;
    if length as u64 > most_bytes {
        return Err(damaged(format!("is longer than {most_bytes} bytes")));
    }
    Ok(text)
}
