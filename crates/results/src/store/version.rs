//! The version of a file's tables, and the way from one version to the next.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::StoreError;

/// Marks the file as ours: `lnrt`.
const APPLICATION: i64 = 0x6c6e_7274;

/// What makes each version of the version before. The first makes an empty file a store. Never change one that was
/// released: add another, and the file of the version before to the tests.
const MIGRATIONS: &[&str] =
    &[include_str!("../migrations/1.sql"), include_str!("../migrations/2.sql")];

/// The version that this program writes.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An empty file.
    Nothing,
    /// A store of this earlier version.
    Older(i64),
    /// A store of this program's version.
    Current,
}

/// Says what a file is.
///
/// # Errors
/// Where it is something else, or newer.
pub(crate) fn find(connection: &Connection, path: &Path) -> Result<Found, StoreError> {
    let number = |pragma: &str| {
        connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0))
    };
    let foreign = || StoreError::Foreign { path: path.to_owned() };
    let application =
        number("application_id").map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => foreign(),
            _ => error.into(),
        })?;
    let version = number("user_version")?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version) {
        (0, 0) if tables == 0 => Ok(Found::Nothing),
        (APPLICATION, VERSION) => Ok(Found::Current),
        (APPLICATION, found) if (1..VERSION).contains(&found) => Ok(Found::Older(version)),
        (APPLICATION, found) if found > VERSION => {
            Err(StoreError::Newer { path: path.to_owned(), found, known: VERSION })
        }
        _ => Err(foreign()),
    }
}

/// Makes the tables of an empty file, or those of an older version new. Before an older version is changed, a copy of
/// the file is made beside it.
pub(crate) fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    if let Found::Older(version) = find(connection, path)? {
        let mut copy = path.as_os_str().to_owned();
        copy.push(format!(".version-{version}"));
        let copy = PathBuf::from(copy);
        // A copy of an earlier try is as good.
        if !copy.exists() {
            let name = copy.to_string_lossy().into_owned();
            connection.execute("VACUUM INTO ?1", [name])?;
        }
    }
    loop {
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have done it meanwhile.
        let done = match find(&step, path)? {
            Found::Current => return Ok(()),
            Found::Nothing => 0,
            Found::Older(version) => version,
        };
        let Some(sql) = usize::try_from(done).ok().and_then(|done| MIGRATIONS.get(done)) else {
            return Ok(());
        };
        step.execute_batch(sql)?;
        step.pragma_update(None, "application_id", APPLICATION)?;
        step.pragma_update(None, "user_version", done + 1)?;
        step.commit()?;
    }
}

type Table = (String, String, String);

fn tables(connection: &Connection) -> Result<Vec<Table>, rusqlite::Error> {
    let sql = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

/// Refuses a file whose tables are not those of its version, or which does something by itself when rows change.
pub(crate) fn check_tables(connection: &Connection) -> Result<(), StoreError> {
    let damaged = |what: String| StoreError::Damaged(what);
    let model = Connection::open_in_memory()?;
    for sql in MIGRATIONS {
        model.execute_batch(sql)?;
    }
    let found = tables(connection)?;
    for expected in tables(&model)? {
        if !found.contains(&expected) {
            let (kind, name, _) = expected;
            return Err(damaged(format!("its {kind} {name} is not that of version {VERSION}")));
        }
    }
    match found.iter().find(|(kind, ..)| kind == "trigger") {
        Some((_, name, _)) => Err(damaged(format!("it has a trigger, {name}"))),
        None => Ok(()),
    }
}

/// Tries again while another process holds the file: SQLite's own waiting doesn't cover a change of the journal.
pub(crate) fn patiently<T>(
    mut work: impl FnMut() -> Result<T, rusqlite::Error>,
) -> Result<T, rusqlite::Error> {
    let began = Instant::now();
    loop {
        let done = work();
        let busy = done.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
        let is_busy = matches!(busy, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked));
        if !is_busy || began.elapsed() > super::BUSY {
            return done;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
