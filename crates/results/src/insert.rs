//! What goes into the tables, and out of them again. The caller has the transaction.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use linerate_measure::trust::Trust;
use linerate_measure::window::{Span, Timeline};
use rusqlite::{Connection, OptionalExtension, params};

use crate::chunk::{POINTS_IN_A_PART, encode_spans, encode_values};
use crate::export::outbox;
use crate::identity::{is_run_name, random_uuid};
use crate::model::{
    CellEnd, NewDocument, NewRun, NewSeries, RecordedCell, Resumed, RunEnd, RunStatus, Tick,
};
use crate::outcome::{SampleOutcome, insert_outcome};
use crate::{CellStatus, StoreError};

/// The most cells of a run.
pub(crate) const MOST_CELLS: usize = 1_000_000;

/// The most parts of a series: their number has 20 bits of a chunk's id.
pub(crate) const MOST_PARTS: usize = 1 << 20;

/// The name of the one period that a sample has.
const PERIOD: &str = "measurement";

fn unfit(what: impl Into<String>) -> StoreError {
    StoreError::Unfit(what.into())
}

/// Puts in a run with its hosts, iterations and waiting cells; its id.
pub(crate) fn insert_run(tables: &Connection, run: &NewRun) -> Result<i64, StoreError> {
    if !is_run_name(&run.uuid) {
        return Err(unfit(format!(
            "the run '{}': its name must be 1 to 100 letters, digits, '-' and '.'",
            run.uuid
        )));
    }
    if run.cells.len() > MOST_CELLS {
        let cells = run.cells.len();
        return Err(unfit(format!("a run of {cells} cells: the limit is {MOST_CELLS}")));
    }
    let origin = &run.origin;
    tables.execute(
        "INSERT INTO run (uuid, title, status, partial, created_ms, began_ms, plan, plan_hash, seed, version, \
         origin, harness, benchmarks, person, email) \
         VALUES (?1, ?2, ?3, 0, ?4, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            run.uuid,
            run.title,
            RunStatus::Running.name(),
            run.began_ms,
            run.plan,
            run.plan_hash,
            // A seed has all 64 bits; SQLite's numbers have a sign.
            run.seed.map(u64::cast_signed),
            origin.version,
            origin.command,
            origin.harness,
            origin.benchmarks,
            origin.person,
            origin.email,
        ],
    )?;
    let id = tables.last_insert_rowid();
    let mut tag =
        tables.prepare("INSERT OR REPLACE INTO tag (run, name, value) VALUES (?1, ?2, ?3)")?;
    for (name, value) in &run.tags {
        tag.execute(params![id, name, value])?;
    }
    let mut host = tables.prepare(
        "INSERT INTO host (run, name, transport, facts, offset_ns, bound_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for new in &run.hosts {
        let facts = &new.facts;
        host.execute(params![id, new.name, new.transport, facts, new.offset_ns, new.bound_ns])?;
    }
    let iterations = insert_iterations(tables, id, run)?;
    let mut sample = tables.prepare(
        "INSERT INTO sample (iteration, num, uuid, status, position, run) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (position, cell) in run.cells.iter().enumerate() {
        let Some(iteration) = iterations.get(cell.iteration as usize) else {
            return Err(unfit(format!("a cell of iteration {}: there is none", cell.iteration)));
        };
        let waiting = CellStatus::Waiting.name();
        let uuid = random_uuid()?;
        sample.execute(params![iteration, cell.sample, uuid, waiting, position as i64, id])?;
    }
    Ok(id)
}

fn insert_iterations(tables: &Connection, run: i64, new: &NewRun) -> Result<Vec<i64>, StoreError> {
    let mut row = tables.prepare(
        "INSERT INTO iteration (run, num, uuid, status, primary_metric, primary_period) \
         VALUES (?1, ?2, ?3, '', ?4, ?5)",
    )?;
    let mut param = tables.prepare(
        "INSERT INTO param (iteration, position, benchmark, arg, value, role, engines) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut ids = Vec::with_capacity(new.iterations.len());
    for (num, iteration) in new.iterations.iter().enumerate() {
        let num = num as i64 + 1;
        row.execute(params![run, num, random_uuid()?, iteration.primary_metric, PERIOD])?;
        let id = tables.last_insert_rowid();
        for (place, new) in iteration.params.iter().enumerate() {
            let (place, engines) = (place as i64, &new.engines);
            param.execute(params![
                id,
                place,
                new.benchmark,
                new.arg,
                new.value,
                new.role,
                engines
            ])?;
        }
        ids.push(id);
    }
    Ok(ids)
}

/// A run that goes on: what a dead controller left running waits again. Its id, and how its cells stand. Nothing is
/// changed, and no cells are told, where its plan has another digest.
pub(crate) fn resume_run(
    tables: &Connection,
    uuid: &str,
    hash: &str,
) -> Result<(i64, Resumed), StoreError> {
    let found = tables
        .query_row("SELECT id, plan, plan_hash, seed FROM run WHERE uuid = ?1", [uuid], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, Option<i64>>(3)?))
        })
        .optional()?;
    let Some((run, plan, plan_hash, seed)) = found else {
        return Err(StoreError::NotFound(format!("the store has no run {uuid}")));
    };
    let mut resumed =
        Resumed { plan, plan_hash, seed: seed.map(i64::cast_unsigned), cells: vec![] };
    if resumed.plan_hash != hash {
        return Ok((run, resumed));
    }
    tables.execute(
        "UPDATE attempt SET status = 'failed', reason = 'the controller died' WHERE status = 'running' AND sample IN \
         (SELECT s.id FROM sample s JOIN iteration i ON s.iteration = i.id WHERE i.run = ?1)",
        [run],
    )?;
    tables.execute(
        "UPDATE sample SET status = 'waiting' WHERE status = 'running' AND iteration IN \
         (SELECT id FROM iteration WHERE run = ?1)",
        [run],
    )?;
    tables.execute(
        "UPDATE run SET status = ?2, ended_ms = NULL WHERE id = ?1",
        params![run, RunStatus::Running.name()],
    )?;
    resumed.cells = recorded_cells(tables, run)?;
    Ok((run, resumed))
}

/// A run's cells in the order in which they are run.
pub(crate) fn recorded_cells(
    tables: &Connection,
    run: i64,
) -> Result<Vec<RecordedCell>, StoreError> {
    let mut rows = tables.prepare(
        "SELECT s.position, i.num, s.num, s.status, (SELECT count(*) FROM attempt a WHERE a.sample = s.id) \
         FROM sample s JOIN iteration i ON s.iteration = i.id WHERE i.run = ?1 ORDER BY s.position LIMIT ?2",
    )?;
    let rows = rows.query_map(params![run, MOST_CELLS as i64], |row| {
        let status: String = row.get(3)?;
        let num: u32 = row.get(1)?;
        Ok((num, status, (row.get(0)?, row.get(2)?, row.get(4)?)))
    })?;
    let mut cells = Vec::new();
    for row in rows {
        let (num, status, (position, sample, attempts)) = row?;
        let status = CellStatus::of_name(&status)
            .ok_or_else(|| StoreError::Damaged(format!("a cell is '{status}'")))?;
        let iteration = num.saturating_sub(1);
        cells.push(RecordedCell { position, iteration, sample, status, attempts });
    }
    Ok(cells)
}

/// Begins an attempt at a cell; its id.
pub(crate) fn begin_cell(
    tables: &Connection,
    run: i64,
    position: u32,
    began_ms: i64,
) -> Result<i64, StoreError> {
    let sample: Option<i64> = tables
        .query_row(
            "SELECT id FROM sample WHERE run = ?1 AND position = ?2",
            params![run, position],
            |row| row.get(0),
        )
        .optional()?;
    let Some(sample) = sample else {
        return Err(StoreError::NotFound(format!("the run has no cell {position}")));
    };
    tables.execute("UPDATE sample SET status = 'running' WHERE id = ?1", [sample])?;
    tables.execute(
        "INSERT INTO attempt (sample, num, status, reason, began_ms) \
         SELECT ?1, 1 + coalesce(max(num), 0), 'running', '', ?2 FROM attempt WHERE sample = ?1",
        params![sample, began_ms],
    )?;
    Ok(tables.last_insert_rowid())
}

/// Stores what an attempt came to.
pub(crate) fn end_cell(tables: &Connection, attempt: i64, end: &CellEnd) -> Result<(), StoreError> {
    let (sample, run, position): (i64, i64, i64) = tables.query_row(
        "SELECT s.id, s.run, s.position FROM attempt a JOIN sample s ON a.sample = s.id WHERE a.id = ?1",
        [attempt],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let status = if end.status == CellStatus::Done { "done" } else { "failed" };
    tables.execute(
        "UPDATE attempt SET status = ?2, exit_code = ?3, reason = ?4, ended_ms = ?5, skew_p99_us = ?6 WHERE id = ?1",
        params![attempt, status, end.exit_code, end.reason, end.ended_ms, end.skew_p99_us],
    )?;
    let status = end.status.name();
    tables.execute("UPDATE sample SET status = ?2 WHERE id = ?1", params![sample, status])?;
    // A cell that failed may have measured another metric than those that follow.
    if end.status == CellStatus::Done {
        tables.execute(
            "UPDATE iteration SET primary_metric = ?2 WHERE primary_metric = '' \
             AND id = (SELECT iteration FROM sample WHERE id = ?1)",
            params![sample, end.primary_metric],
        )?;
    }
    insert_outcome(tables, sample, &outcome_of(end))?;
    for text in &end.notes {
        insert_note(tables, run, Some(position), text)?;
    }
    for document in &end.documents {
        insert_document(tables, attempt, document)?;
    }
    let period = insert_period(tables, sample, end.period)?;
    insert_all_series(tables, (run, Some(attempt), period), &end.timelines, &end.series)?;
    tables.execute("DELETE FROM tick WHERE attempt = ?1", [attempt])?;
    match end.status {
        CellStatus::Done | CellStatus::Failed => outbox::note_change(tables, run, position),
        CellStatus::Waiting | CellStatus::Running => Ok(()),
    }
}

/// What an attempt came to. One that failed without a document has no result.
fn outcome_of(end: &CellEnd) -> SampleOutcome {
    let mut outcome = end.outcome.clone();
    if end.status == CellStatus::Failed && outcome.verdict.is_none() {
        outcome.verdict = Some(Trust::Invalid);
        outcome.why.clone_from(&end.reason);
    }
    outcome
}

/// The id of the sample's period, in whose place an earlier attempt's goes.
fn insert_period(
    tables: &Connection,
    sample: i64,
    span: Option<Span>,
) -> Result<Option<i64>, StoreError> {
    let Some(span) = span else { return Ok(None) };
    let earlier = "period IN (SELECT id FROM period WHERE sample = ?1)";
    delete_series(tables, earlier, sample)?;
    tables.execute("DELETE FROM period WHERE sample = ?1", [sample])?;
    tables.execute(
        "INSERT INTO period (sample, name, uuid, begin_ms, end_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![sample, PERIOD, random_uuid()?, span.begin_ms, span.end_ms],
    )?;
    Ok(Some(tables.last_insert_rowid()))
}

/// Stores a sentence about a run or one of its cells.
pub(crate) fn insert_note(
    tables: &Connection,
    run: i64,
    position: Option<i64>,
    text: &str,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO note (run, position, text) VALUES (?1, ?2, ?3)";
    tables.execute(sql, params![run, position, text])?;
    Ok(())
}

fn insert_document(
    tables: &Connection,
    attempt: i64,
    document: &NewDocument,
) -> Result<(), StoreError> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let deflated = encoder.write_all(document.body.as_bytes()).and_then(|()| encoder.finish());
    let body = deflated.map_err(|error| unfit(format!("a document: {error}")))?;
    let sql = "INSERT INTO document (attempt, host, kind, body) VALUES (?1, ?2, ?3, ?4)";
    tables.execute(sql, params![attempt, document.host, document.kind, body])?;
    Ok(())
}

/// Stores a second of a collector.
pub(crate) fn insert_tick(
    tables: &Connection,
    attempt: i64,
    tick: &Tick,
) -> Result<(), StoreError> {
    tables.execute(
        "INSERT INTO tick (attempt, host, collector, at_ms, data) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![attempt, tick.host, tick.collector, tick.at_ms, tick.data],
    )?;
    Ok(())
}

/// Ends a run.
pub(crate) fn end_run(tables: &Connection, run: i64, end: &RunEnd) -> Result<(), StoreError> {
    tables.execute(
        "UPDATE run SET status = ?2, partial = ?3, ended_ms = ?4 WHERE id = ?1",
        params![run, end.status.name(), end.partial, end.ended_ms],
    )?;
    for (place, verdict) in &end.iterations {
        let sql = "UPDATE iteration SET status = ?3 WHERE run = ?1 AND num = ?2 + 1";
        tables.execute(sql, params![run, place, verdict])?;
    }
    outbox::note_run(tables, run)
}

/// Stores timelines and the series over them, which belong to these ids of run, attempt and period.
pub(crate) fn insert_all_series(
    tables: &Connection,
    (run, attempt, period): (i64, Option<i64>, Option<i64>),
    timelines: &[Timeline],
    series: &[NewSeries],
) -> Result<(), StoreError> {
    let mut ids = Vec::with_capacity(timelines.len());
    for timeline in timelines {
        ids.push(insert_timeline(tables, timeline)?);
    }
    let mut row = tables.prepare(
        "INSERT INTO series (run, attempt, period, source, type, class, unit, aggregation, timeline) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let mut label =
        tables.prepare("INSERT INTO label (series, name, value) VALUES (?1, ?2, ?3)")?;
    let mut chunk = tables.prepare(
        "INSERT INTO chunk (id, count, weighted, low, high, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for new in series {
        let (Some(timeline), Some(id)) = (timelines.get(new.timeline), ids.get(new.timeline))
        else {
            return Err(unfit(format!("the series {}: it has no timeline", new.metric)));
        };
        check_series(new, timeline)?;
        let period = period.filter(|_| new.in_period);
        let aggregation = new.aggregation.name();
        row.execute(params![
            run,
            attempt,
            period,
            new.source,
            new.metric,
            new.class,
            new.unit,
            aggregation,
            id
        ])?;
        let series = tables.last_insert_rowid();
        for (name, value) in &new.labels {
            label.execute(params![series, name, value])?;
        }
        let parts = new.values.chunks(POINTS_IN_A_PART);
        let spans = timeline.spans().chunks(POINTS_IN_A_PART);
        for (part, (values, spans)) in parts.zip(spans).enumerate() {
            let lengths = spans.iter().map(|span| span.length_ms() as f64);
            let weighted: f64 = values.iter().zip(lengths).map(|(v, ms)| v * ms).sum();
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let id = series << 20 | part as i64;
            let count = values.len() as i64;
            // A sum that is too great for a number is no reason to lose the values.
            let weighted = weighted.clamp(f64::MIN, f64::MAX);
            chunk.execute(params![id, count, weighted, low, high, encode_values(values)])?;
        }
    }
    Ok(())
}

fn check_series(new: &NewSeries, timeline: &Timeline) -> Result<(), StoreError> {
    let metric = &new.metric;
    let (values, spans) = (new.values.len(), timeline.spans().len());
    if values != spans {
        return Err(unfit(format!("the series {metric}: {values} values for {spans} times")));
    }
    if values.div_ceil(POINTS_IN_A_PART) > MOST_PARTS {
        return Err(unfit(format!("the series {metric}: {values} values are too many")));
    }
    match new.values.iter().all(|value| value.is_finite()) {
        true => Ok(()),
        false => Err(unfit(format!("the series {metric}: a value is not finite"))),
    }
}

fn insert_timeline(tables: &Connection, timeline: &Timeline) -> Result<i64, StoreError> {
    let id: i64 =
        tables.query_row("SELECT 1 + coalesce(max(id), 0) FROM timeline", [], |row| row.get(0))?;
    let mut row = tables.prepare(
        "INSERT INTO timeline (id, part, begin_ms, end_ms, count, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (part, spans) in timeline.spans().chunks(POINTS_IN_A_PART).enumerate() {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { continue };
        let (count, data) = (spans.len() as i64, encode_spans(spans));
        row.execute(params![id, part as i64, first.begin_ms, last.end_ms, count, data])?;
    }
    Ok(id)
}

/// Deletes the series that a condition on one id picks, with their chunks and the timelines that they had to
/// themselves.
pub(crate) fn delete_series(
    tables: &Connection,
    condition: &str,
    id: i64,
) -> Result<(), StoreError> {
    tables.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS gone (series INTEGER PRIMARY KEY, timeline INTEGER NOT NULL); \
         DELETE FROM temp.gone;",
    )?;
    let sql =
        format!("INSERT INTO temp.gone SELECT id, timeline FROM main.series WHERE {condition}");
    let gone = tables.execute(&sql, [id])?;
    if gone == 0 {
        return Ok(());
    }
    tables.execute_batch(
        "DELETE FROM chunk WHERE id IN (SELECT c.id FROM temp.gone g CROSS JOIN chunk c \
             ON c.id BETWEEN g.series << 20 AND (g.series << 20) + 1048575);
         DELETE FROM series WHERE id IN (SELECT series FROM temp.gone);
         DELETE FROM timeline WHERE id IN (SELECT timeline FROM temp.gone) \
             AND id NOT IN (SELECT timeline FROM series);",
    )?;
    Ok(())
}
