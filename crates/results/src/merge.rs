//! Runs that go from one store to another, or away.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, TransactionBehavior, params};

use crate::StoreError;
use crate::identity::is_run_name;
use crate::insert::delete_series;
use crate::store::{RunId, RunLock, Store};

/// What a merge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Names of the runs that are new in the store.
    pub copied: Vec<String>,
    /// Names of those that were there already, with the same content.
    pub present: Vec<String>,
}

/// The columns of a table that hold content, where its rows hang, and in what order a run's stand.
struct Table {
    name: &'static str,
    /// All columns but ids, those that other stores number differently left out.
    columns: &'static str,
    /// From the table to its run.
    path: &'static str,
    /// A natural order, the same in each store.
    order: &'static str,
}

/// The content of a run, for comparison.
const CONTENT: [Table; 13] = [
    Table {
        name: "run t",
        columns: "title, status, partial, began_ms, ended_ms, plan, plan_hash, seed, version, origin, harness, \
                  benchmarks, person, email",
        path: "",
        order: "t.id",
    },
    Table { name: "tag t", columns: "t.name, t.value", path: "", order: "t.name" },
    Table {
        name: "host t",
        columns: "t.name, t.transport, t.facts, t.offset_ns, t.bound_ns",
        path: "",
        order: "t.name",
    },
    Table { name: "note t", columns: "t.position, t.text", path: "", order: "t.id" },
    Table {
        name: "iteration t",
        columns: "t.num, t.uuid, t.status, t.primary_metric, t.primary_period",
        path: "",
        order: "t.num",
    },
    Table {
        name: "param t",
        columns: "t.position, t.benchmark, t.arg, t.value, t.role, t.engines",
        path: "JOIN iteration i ON t.iteration = i.id",
        order: "i.num, t.position",
    },
    Table {
        name: "sample t",
        columns: "t.num, t.uuid, t.status, t.position",
        path: "JOIN iteration i ON t.iteration = i.id",
        order: "i.num, t.num",
    },
    Table {
        name: "outcome t",
        columns: "t.verdict, t.why, t.metric, t.unit, t.value",
        path: "JOIN sample s ON t.sample = s.id JOIN iteration i ON s.iteration = i.id",
        order: "s.position",
    },
    Table {
        name: "attempt t",
        columns: "t.num, t.status, t.exit_code, t.reason, t.began_ms, t.ended_ms, t.skew_p99_us",
        path: "JOIN sample s ON t.sample = s.id JOIN iteration i ON s.iteration = i.id",
        order: "s.position, t.num",
    },
    Table {
        name: "period t",
        columns: "t.name, t.uuid, t.begin_ms, t.end_ms",
        path: "JOIN sample s ON t.sample = s.id JOIN iteration i ON s.iteration = i.id",
        order: "s.position, t.name",
    },
    Table {
        name: "document t",
        columns: "t.host, t.kind, t.body",
        path: "JOIN attempt a ON t.attempt = a.id JOIN sample s ON a.sample = s.id \
               JOIN iteration i ON s.iteration = i.id",
        order: "s.position, a.num, t.id",
    },
    Table {
        name: "series t",
        columns: "t.source, t.type, t.class, t.unit, t.aggregation, \
                  (SELECT group_concat(name || '=' || value, ',') FROM (SELECT name, value FROM label \
                  WHERE series = t.id ORDER BY name)), \
                  (SELECT count(*) FROM timeline WHERE id = t.timeline)",
        path: "",
        order: "t.id",
    },
    Table {
        name: "series t",
        columns: "c.id & 1048575, c.count, c.data, l.begin_ms, l.end_ms, l.data",
        path: "CROSS JOIN chunk c ON c.id BETWEEN t.id << 20 AND (t.id << 20) + 1048575 \
               LEFT JOIN timeline l ON l.id = t.timeline AND l.part = c.id & 1048575",
        order: "c.id",
    },
];

impl Table {
    fn sql(&self) -> String {
        let Self { name, columns, path, order } = self;
        let run = match (*name, *path) {
            ("run t", _) => "t.id",
            (_, "") => "t.run",
            ("series t", _) => "t.run",
            _ => "i.run",
        };
        format!("SELECT {columns} FROM {name} {path} WHERE {run} = ?1 ORDER BY {order}")
    }
}

/// Whether a run of one store has the content that a run of another has.
fn is_same(one: (&Connection, i64), other: (&Connection, i64)) -> Result<bool, StoreError> {
    for table in &CONTENT {
        let sql = table.sql();
        let (mut left, mut right) = (one.0.prepare(&sql)?, other.0.prepare(&sql)?);
        let columns = left.column_count();
        let (mut left, mut right) = (left.query([one.1])?, right.query([other.1])?);
        loop {
            match (left.next()?, right.next()?) {
                (None, None) => break,
                (Some(left), Some(right)) => {
                    for column in 0..columns {
                        if left.get_ref(column)? != right.get_ref(column)? {
                            return Ok(false);
                        }
                    }
                }
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// How the rows of a table are copied: the columns, and which of them are ids that the target numbers anew.
struct Copy {
    table: &'static str,
    columns: &'static str,
    /// Picks the rows of a run.
    of_run: &'static str,
    /// The place in `columns`, counted from 0, of each id, and whose it is.
    ids: &'static [(usize, &'static str)],
    /// Whether the first column is the row's own id, which the target gives.
    has_id: bool,
}

const OF_ITERATION: &str = "iteration IN (SELECT id FROM iteration WHERE run = ?1)";
const OF_SAMPLE: &str =
    "sample IN (SELECT s.id FROM sample s JOIN iteration i ON s.iteration = i.id WHERE i.run = ?1)";
const OF_ATTEMPT: &str = "attempt IN (SELECT a.id FROM attempt a JOIN sample s ON a.sample = s.id \
     JOIN iteration i ON s.iteration = i.id WHERE i.run = ?1)";

#[rustfmt::skip]
const COPIES: [Copy; 13] = [
    Copy { table: "run", columns: "id, uuid, title, status, partial, created_ms, began_ms, ended_ms, plan, plan_hash, \
        seed, version, origin, harness, benchmarks, person, email", of_run: "id = ?1", ids: &[], has_id: true },
    Copy { table: "tag", columns: "run, name, value", of_run: "run = ?1", ids: &[(0, "run")], has_id: false },
    Copy { table: "host", columns: "id, run, name, transport, facts, offset_ns, bound_ns", of_run: "run = ?1",
        ids: &[(1, "run")], has_id: true },
    Copy { table: "note", columns: "id, run, position, text", of_run: "run = ?1", ids: &[(1, "run")], has_id: true },
    Copy { table: "iteration", columns: "id, run, num, uuid, status, primary_metric, primary_period",
        of_run: "run = ?1", ids: &[(1, "run")], has_id: true },
    Copy { table: "param", columns: "iteration, position, benchmark, arg, value, role, engines", of_run: OF_ITERATION,
        ids: &[(0, "iteration")], has_id: false },
    Copy { table: "sample", columns: "id, iteration, num, uuid, status, position, run", of_run: OF_ITERATION,
        ids: &[(1, "iteration"), (6, "run")], has_id: true },
    Copy { table: "outcome", columns: "sample, verdict, why, metric, unit, value", of_run: OF_SAMPLE,
        ids: &[(0, "sample")], has_id: false },
    Copy { table: "attempt", columns: "id, sample, num, status, exit_code, reason, began_ms, ended_ms, skew_p99_us",
        of_run: OF_SAMPLE, ids: &[(1, "sample")], has_id: true },
    Copy { table: "period", columns: "id, sample, name, uuid, begin_ms, end_ms", of_run: OF_SAMPLE,
        ids: &[(1, "sample")], has_id: true },
    Copy { table: "document", columns: "id, attempt, host, kind, body", of_run: OF_ATTEMPT, ids: &[(1, "attempt")],
        has_id: true },
    Copy { table: "tick", columns: "id, attempt, host, collector, at_ms, data", of_run: OF_ATTEMPT,
        ids: &[(1, "attempt")], has_id: true },
    Copy { table: "series", columns: "id, run, attempt, period, source, type, class, unit, aggregation, timeline",
        of_run: "run = ?1", ids: &[(1, "run"), (2, "attempt"), (3, "period"), (9, "timeline")], has_id: true },
];

/// Ids of the source by table, and what they are in the target.
type Ids = std::collections::HashMap<(&'static str, i64), i64>;

impl Copy {
    fn perform(
        &self,
        from: &Connection,
        run: i64,
        to: &Connection,
        known: &mut Ids,
    ) -> Result<(), StoreError> {
        let Self { table, columns, of_run, .. } = self;
        // In the order of ids or of the key, which is that of writing.
        let order = columns.split(',').next().unwrap_or_default();
        let sql = format!("SELECT {columns} FROM {table} WHERE {of_run} ORDER BY {order}");
        let mut rows = from.prepare(&sql)?;
        let width = rows.column_count();
        let places = (1..=width).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
        let mut put = to.prepare(&format!("INSERT INTO {table} ({columns}) VALUES ({places})"))?;
        let mut rows = rows.query([run])?;
        while let Some(row) = rows.next()? {
            let values = (0..width).map(|column| row.get::<_, Value>(column));
            let mut values = values.collect::<Result<Vec<_>, _>>()?;
            for (place, of) in self.ids {
                let Some(value) = values.get_mut(*place) else { continue };
                if let Value::Integer(id) = value {
                    let new = known.get(&(*of, *id)).ok_or_else(|| {
                        StoreError::Damaged(format!(
                            "a row of {table} names {of} {id}, which is not there"
                        ))
                    })?;
                    *value = Value::Integer(*new);
                }
            }
            let own = values.first_mut().filter(|_| self.has_id);
            let own = own.map(|value| std::mem::replace(value, Value::Null));
            put.execute(rusqlite::params_from_iter(values))?;
            if let Some(Value::Integer(id)) = own {
                known.insert((table, id), to.last_insert_rowid());
            }
        }
        Ok(())
    }
}

/// Copies the timelines of a run, numbered anew, part by part and unread.
fn copy_timelines(
    from: &Connection,
    run: i64,
    to: &Connection,
    known: &mut Ids,
) -> Result<(), StoreError> {
    let sql = "SELECT DISTINCT timeline FROM series WHERE run = ?1 ORDER BY timeline";
    let mut rows = from.prepare(sql)?;
    let timelines: Vec<i64> = rows.query_map([run], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut read = from.prepare(
        "SELECT part, begin_ms, end_ms, count, data FROM timeline WHERE id = ?1 ORDER BY part",
    )?;
    let mut put = to.prepare(
        "INSERT INTO timeline (id, part, begin_ms, end_ms, count, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let next = "SELECT 1 + coalesce(max(id), 0) FROM timeline";
    let next: i64 = to.query_row(next, [], |row| row.get(0))?;
    for (next, timeline) in (next..).zip(timelines) {
        let mut parts = read.query([timeline])?;
        while let Some(part) = parts.next()? {
            put.execute(params![
                next,
                part.get::<_, i64>(0)?,
                part.get::<_, i64>(1)?,
                part.get::<_, i64>(2)?,
                part.get::<_, i64>(3)?,
                part.get::<_, Vec<u8>>(4)?
            ])?;
        }
        known.insert(("timeline", timeline), next);
    }
    Ok(())
}

/// Copies the labels and chunks of the series that were copied.
fn copy_series_parts(from: &Connection, to: &Connection, known: &Ids) -> Result<(), StoreError> {
    let mut labels = from.prepare("SELECT name, value FROM label WHERE series = ?1")?;
    let mut label = to.prepare("INSERT INTO label (series, name, value) VALUES (?1, ?2, ?3)")?;
    let mut chunks = from.prepare(
        "SELECT id & 1048575, count, weighted, low, high, data FROM chunk \
         WHERE id BETWEEN ?1 << 20 AND (?1 << 20) + 1048575",
    )?;
    let mut chunk = to.prepare(
        "INSERT INTO chunk (id, count, weighted, low, high, data) VALUES (?1 << 20 | ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for ((_, old), new) in known.iter().filter(|((table, _), _)| *table == "series") {
        let mut rows = labels.query([old])?;
        while let Some(row) = rows.next()? {
            label.execute(params![new, row.get::<_, String>(0)?, row.get::<_, String>(1)?])?;
        }
        let mut rows = chunks.query([old])?;
        while let Some(row) = rows.next()? {
            chunk.execute(params![
                new,
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, f64>(2)?,
                row.get::<_, f64>(3)?,
                row.get::<_, f64>(4)?,
                row.get::<_, Vec<u8>>(5)?
            ])?;
        }
    }
    Ok(())
}

fn copy_run(from: &Connection, run: i64, to: &Connection) -> Result<(), StoreError> {
    let mut known = Ids::new();
    for copy in &COPIES {
        if copy.table == "series" {
            copy_timelines(from, run, to, &mut known)?;
        }
        copy.perform(from, run, to, &mut known)?;
    }
    copy_series_parts(from, to, &known)
}

impl Store {
    /// Copies all runs of another store, each in one transaction. A run that is there with the same content is left.
    ///
    /// # Errors
    /// Where a run of the same name has other content, or either store fails. Runs copied before stay.
    pub fn merge(&mut self, other: &Self) -> Result<Merged, StoreError> {
        let mut merged = Merged::default();
        // The oldest first, so that what is listed by order of arrival is so too.
        for row in other.runs()?.into_iter().rev() {
            if !is_run_name(&row.run) {
                return Err(StoreError::Damaged("a run's name is none".to_owned()));
            }
            match self.take(other, row.id, &row.run)? {
                true => merged.copied.push(row.run),
                false => merged.present.push(row.run),
            }
        }
        Ok(merged)
    }

    /// Writes a store that has these runs alone, in one file that needs no log and no permission to write.
    ///
    /// # Errors
    /// Where the file is there already or can't be written.
    pub fn bundle(&self, runs: &[RunId], path: &Path) -> Result<(), StoreError> {
        let unusable =
            |why: &str| StoreError::Unusable { path: path.to_owned(), why: why.to_owned() };
        if path.exists() {
            return Err(unusable("it is there already: name a new file"));
        }
        let mut whole = path.as_os_str().to_owned();
        whole.push(".part");
        let part = Path::new(&whole);
        let clear = || {
            for left in ["", "-wal", "-shm"] {
                let mut name = whole.clone();
                name.push(left);
                // What is not there needs no removal.
                let _absent = std::fs::remove_file(Path::new(&name));
            }
        };
        // What an export that was killed has left has runs that nobody asked for now.
        clear();
        let made = self.bundle_by_way_of(runs, part, path);
        clear();
        made
    }

    fn bundle_by_way_of(&self, runs: &[RunId], part: &Path, path: &Path) -> Result<(), StoreError> {
        let mut bundle = Self::open(part)?;
        for run in runs {
            let name = self.details(*run)?.row.run;
            bundle.take(self, *run, &name)?;
        }
        let name = path.to_string_lossy().into_owned();
        bundle.connection.execute("VACUUM INTO ?1", [name])?;
        Ok(())
    }

    /// Copies one run of another store; false: it was there.
    fn take(&mut self, other: &Self, run: RunId, name: &str) -> Result<bool, StoreError> {
        let tables = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sql = "SELECT id FROM run WHERE uuid = ?1";
        let present: Option<i64> = {
            let mut rows = tables.prepare(sql)?;
            let mut rows = rows.query([name])?;
            rows.next()?.map(|row| row.get(0)).transpose()?
        };
        if let Some(present) = present {
            return match is_same((&tables, present), (&other.connection, run.0))? {
                true => Ok(false),
                false => Err(StoreError::Unfit(format!(
                    "the run {name} of {}: the store has a run of this name with other content",
                    other.path().display()
                ))),
            };
        }
        copy_run(&other.connection, run.0, &tables)?;
        tables.commit()?;
        Ok(true)
    }

    /// Removes a run with all that it has.
    ///
    /// # Errors
    /// Where another process works on it.
    pub fn remove(&mut self, run: RunId) -> Result<(), StoreError> {
        let name = self.details(run)?.row.run;
        let _lock = RunLock::take(self.path(), &name)?;
        let tables = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        delete_series(&tables, "run = ?1", run.0)?;
        tables.execute("DELETE FROM run WHERE id = ?1", [run.0])?;
        tables.commit()?;
        Ok(())
    }
}
