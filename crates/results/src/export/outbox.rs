//! What an index does not have yet of runs that go there while they are measured.
//!
//! The outbox names parts of runs: the run itself, or one of its cells. A part comes in with the transaction that stores
//! it, and leaves when the index has all its documents. Documents are made anew for each try, and their names don't
//! change, so that nothing is lost and nothing is there twice, whichever end was away or died.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use super::cells::{each_document, each_document_of_cell, each_document_of_run};
use super::client::{Index, IndexError};
use super::document::{Form, is_own};
use super::{CdmVersion, DocumentKind};
use crate::StoreError;
use crate::exchange::Exchange;
use crate::store::{RunId, Store};

/// The position that stands for the run itself.
const RUN_ITSELF: i64 = -1;

/// The most parts that are listed.
const MOST_PARTS: usize = 100_000;

/// A part of a run that an index does not have, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The run's name.
    pub run: String,
    /// The index's address.
    pub target: String,
    /// The cell's place in the run's order, from 0; absent: the run itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// `waiting`, or `refused` where the index will not take some of its documents.
    pub state: String,
    /// How often it was tried.
    pub tries: u32,
    /// What the index said the last time, or empty.
    pub reason: String,
    #[serde(skip)]
    key: Key,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Key {
    id: i64,
    run: i64,
    position: i64,
    /// A random number, another one each time that the part changes or comes again, so that a change during a try is
    /// not lost, even where two programs send.
    change: i64,
}

/// Notes that a run goes to an index from now on, with all that it has, in the version that is asked for. Where it was
/// noted before, nothing is done, unless another version is asked for: then all of it goes there in that one.
pub(crate) fn add_target(
    tables: &Connection,
    run: i64,
    target: &str,
    asked: Option<CdmVersion>,
) -> Result<(), StoreError> {
    let name = asked.map_or("", CdmVersion::name);
    let sql = "DELETE FROM export WHERE run = ?1 AND target = ?2 AND ?3 != '' AND version != ?3";
    tables.execute(sql, params![run, target, name])?;
    let sql = "INSERT OR IGNORE INTO export (run, target, version) VALUES (?1, ?2, ?3)";
    if tables.execute(sql, params![run, target, name])? == 0 {
        return Ok(());
    }
    note_change(tables, run, RUN_ITSELF)?;
    let sql = "INSERT INTO outbox (run, target, position, state, change, tries, reason) \
               SELECT i.run, ?2, s.position, 'waiting', random(), 0, '' FROM iteration i \
               JOIN sample s ON s.iteration = i.id WHERE i.run = ?1 AND s.status IN ('done', 'failed')";
    tables.execute(sql, params![run, target])?;
    Ok(())
}

/// Notes that the run itself has changed.
pub(crate) fn note_run(tables: &Connection, run: i64) -> Result<(), StoreError> {
    note_change(tables, run, RUN_ITSELF)
}

/// Notes that a part has changed, for each index that the run goes to.
pub(crate) fn note_change(tables: &Connection, run: i64, position: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO outbox (run, target, position, state, change, tries, reason) \
               SELECT run, target, ?2, 'waiting', random(), 0, '' FROM export WHERE run = ?1 \
               ON CONFLICT DO UPDATE SET state = 'waiting', change = random()";
    tables.execute(sql, params![run, position])?;
    Ok(())
}

/// The parts that wait or were refused, in the order in which they came.
///
/// # Errors
/// Where the store can't be read.
pub fn parts(store: &Store) -> Result<Vec<Part>, StoreError> {
    list(store, "", 0, MOST_PARTS)
}

/// The parts after one; of a target, where it is not empty, those that wait.
fn list(store: &Store, target: &str, after: i64, most: usize) -> Result<Vec<Part>, StoreError> {
    let sql = "SELECT o.id, o.run, o.position, o.change, r.uuid, o.target, o.state, o.tries, o.reason \
               FROM outbox o JOIN run r ON o.run = r.id WHERE o.id > ?2 AND (?1 = '' OR (o.target = ?1 \
               AND o.state = 'waiting')) ORDER BY o.id LIMIT ?3";
    let mut rows = store.connection.prepare(sql)?;
    let rows = rows.query_map(params![target, after, most as i64], |row| {
        let position: i64 = row.get(2)?;
        let key = Key { id: row.get(0)?, run: row.get(1)?, position, change: row.get(3)? };
        Ok(Part {
            run: row.get(4)?,
            target: row.get(5)?,
            position: u32::try_from(position).ok(),
            state: row.get(6)?,
            tries: row.get(7)?,
            reason: row.get(8)?,
            key,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// How many parts wait for an index.
///
/// # Errors
/// Where the store can't be read.
pub fn count(store: &Store, target: &str) -> Result<u64, StoreError> {
    let sql = "SELECT count(*) FROM outbox WHERE target = ?1 AND state = 'waiting'";
    let count: i64 = store.connection.query_row(sql, [target], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// How many parts of a run wait for each index that has not got all of them.
///
/// # Errors
/// Where the store can't be read.
pub fn waiting_of(store: &Store, run: RunId) -> Result<Vec<(String, u64)>, StoreError> {
    let sql = "SELECT target, count(*) FROM outbox WHERE run = ?1 AND state = 'waiting' \
               GROUP BY target ORDER BY target";
    let mut rows = store.connection.prepare(sql)?;
    let rows = rows.query_map([run.0], |row| {
        let count: i64 = row.get(1)?;
        Ok((row.get(0)?, count.unsigned_abs()))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The version that an index has or shall have of a run; `None` where none was asked for, before the first document.
fn version_of(store: &Store, run: i64, target: &str) -> Result<Option<CdmVersion>, StoreError> {
    let sql = "SELECT version FROM export WHERE run = ?1 AND target = ?2";
    let name: Option<String> =
        store.connection.query_row(sql, params![run, target], |row| row.get(0)).optional()?;
    Ok(name.and_then(|name| CdmVersion::of_name(&name)))
}

/// What a delivery did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Parts that the index has now.
    pub parts: u64,
    /// Parts of which it refused documents for their content.
    pub refused: u64,
    /// New documents.
    pub created: u64,
    /// Documents that took the place of themselves.
    pub updated: u64,
    /// Why the first of the parts failed that wait on though the index is there.
    pub failure: Option<IndexError>,
}

/// Tries each part that waits for an index. Where one fails, those after it are tried.
///
/// # Errors
/// Where the index is away or refuses everything: the parts that are left wait on. What was written is told by the next
/// delivery as updated.
pub fn deliver<E: Exchange>(
    store: &Store,
    index: &mut Index<E>,
    target: &str,
) -> Result<Delivered, IndexError> {
    // Each run has a version of its own; this one is that of new runs.
    let usual = index.version();
    let delivered = deliver_parts(store, index, target);
    index.set_version(usual);
    delivered
}

fn deliver_parts<E: Exchange>(
    store: &Store,
    index: &mut Index<E>,
    target: &str,
) -> Result<Delivered, IndexError> {
    let usual = index.version();
    let mut delivered = Delivered::default();
    let mut unfit = BTreeSet::new();
    let mut after = 0;
    while let Some(part) = list(store, target, after, 1)?.into_iter().next() {
        let Key { id, run, change, .. } = part.key;
        after = id;
        if unfit.contains(&run) {
            continue;
        }
        let begun = begin_part(store, index, &part, usual);
        let is_unfit = begun.is_err();
        let done = begun.and_then(|()| deliver_part(store, index, &part, &mut delivered));
        let Err(error) = done else { continue };
        index.forget_waiting();
        let sql = "UPDATE outbox SET tries = tries + 1, reason = ?3 WHERE id = ?1 AND change = ?2";
        store
            .connection
            .execute(sql, params![id, change, error.to_string()])
            .map_err(StoreError::from)?;
        if error.is_for_all() {
            return Err(error);
        }
        if is_unfit {
            unfit.insert(run);
        }
        delivered.failure.get_or_insert(error);
    }
    Ok(delivered)
}

/// Makes the indices of a part's run, in the run's version. It is noted when they are there.
fn begin_part<E: Exchange>(
    store: &Store,
    index: &mut Index<E>,
    part: &Part,
    usual: CdmVersion,
) -> Result<(), IndexError> {
    let began_ms = store.row(RunId(part.key.run))?.began_ms;
    let version = version_of(store, part.key.run, &part.target)?;
    index.set_version(version.unwrap_or(usual));
    index.begin(began_ms)?;
    if version.is_none() {
        let sql = "UPDATE export SET version = ?3 WHERE run = ?1 AND target = ?2 AND version = ''";
        let values = params![part.key.run, part.target, usual.name()];
        let noted = store.connection.execute(sql, values).map_err(StoreError::from)?;
        // Another program may have begun with another version meanwhile.
        if noted == 0
            && let Some(version) = version_of(store, part.key.run, &part.target)?
        {
            index.set_version(version);
            index.begin(began_ms)?;
        }
    }
    Ok(())
}

/// Writes a part whose indices are there.
fn deliver_part<E: Exchange>(
    store: &Store,
    index: &mut Index<E>,
    part: &Part,
    delivered: &mut Delivered,
) -> Result<(), IndexError> {
    let run = RunId(part.key.run);
    let form = Form::default();
    index.take_written();
    match part.position {
        None => {
            let how = (index.version(), &form);
            each_document_of_run(store, run, how, |document| index.put(document))?;
        }
        Some(position) => {
            let how = (index.version(), &form);
            each_document_of_cell(store, run, position, how, |document| index.put(document))?;
        }
    }
    index.flush()?;
    let written = index.take_written();
    delivered.created += written.created;
    delivered.updated += written.updated;
    let changed = match written.refusals.first() {
        None => {
            delivered.parts += 1;
            let sql = "DELETE FROM outbox WHERE id = ?1 AND change = ?2";
            store.connection.execute(sql, params![part.key.id, part.key.change])
        }
        Some(first) => {
            delivered.refused += 1;
            let reason = format!("{} documents; the first: {first}", written.refused);
            let sql = "UPDATE outbox SET state = 'refused', tries = tries + 1, reason = ?3 \
                       WHERE id = ?1 AND change = ?2";
            store.connection.execute(sql, params![part.key.id, part.key.change, reason])
        }
    };
    changed.map_err(StoreError::from)?;
    Ok(())
}

/// Lets parts that were refused wait again.
///
/// # Errors
/// Where the store can't be written.
pub fn retry_refused(store: &Store, target: &str) -> Result<(), StoreError> {
    let sql = "UPDATE outbox SET state = 'waiting' WHERE target = ?1 AND state = 'refused'";
    store.connection.execute(sql, [target])?;
    Ok(())
}

/// Writes a whole run to an index, in this form. Where the index has it in another form, its series are replaced; where
/// another writer brought it there, nothing is changed.
///
/// # Errors
/// Those of an index.
pub fn write_run<E: Exchange>(
    store: &Store,
    index: &mut Index<E>,
    run: RunId,
    form: &Form,
) -> Result<(), IndexError> {
    let row = store.row(run)?;
    index.begin(row.began_ms)?;
    index.refresh()?;
    let id = index.version().id_path(DocumentKind::Run);
    let known = index.find(DocumentKind::Run, &[(&id, std::slice::from_ref(&row.run))], &[&id])?;
    let sources = || known.iter().map(|one| one["run"]["source"].as_str().unwrap_or_default());
    if let Some(other) = sources().find(|source| !is_own(source)) {
        let (run, other) = (&row.run, if other.is_empty() { "not told" } else { other });
        return Err(IndexError::Store(format!(
            "the index has the run {run} of another writer (its source: {other}); nothing was written or deleted"
        )));
    }
    if sources().any(|source| source != form.name()) {
        index.delete_series(&row.run)?;
    }
    let version = index.version();
    each_document(store, run, (version, form), |document| index.put(document))?;
    index.flush()?;
    index.refresh()
}
