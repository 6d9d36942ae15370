//! The version of a file's tables, and the way from one version to the next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::identity::random_uuid;
use crate::{StoreError, outcome};

/// Marks the file as ours: `lnrt`.
const APPLICATION: i64 = 0x6c6e_7274;

/// What makes each version of the version before. The first makes an empty file a store. Never change one that was
/// released: add another, and the file of the version before to the tests.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/1.sql"),
    include_str!("../migrations/2.sql"),
    include_str!("../migrations/3.sql"),
];

/// The first version that has what samples came to. Files of earlier ones have it in their documents alone.
const WITH_OUTCOMES: i64 = 3;

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
        keep_copy(connection, path, version)?;
    }
    migrate(connection, path)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
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
        if done > 0 && done + 1 == WITH_OUTCOMES {
            outcome::remove_counted_twice(&step)?;
            outcome::read_outcomes(&step)?;
        }
        step.pragma_update(None, "application_id", APPLICATION)?;
        step.pragma_update(None, "user_version", done + 1)?;
        step.commit()?;
    }
}

/// Makes a copy of a file of this version, `FILE.version-N`, unless a whole one is there. It has that name only when it
/// is whole and on the disk.
fn keep_copy(connection: &Connection, path: &Path, version: i64) -> Result<(), StoreError> {
    let beside = |end: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let copy = beside(format!(".version-{version}"));
    if is_whole(&copy, version) {
        return Ok(());
    }
    let unusable = |error: io::Error| StoreError::Unusable {
        path: path.to_owned(),
        why: format!("no copy {} of it can be made: {error}", copy.display()),
    };
    let new = beside(format!(".version-{version}.{}", process::id()));
    remove(&new).map_err(unusable)?;
    let made = connection.execute("VACUUM INTO ?1", [new.to_string_lossy()]);
    let done = made.map_err(StoreError::from).and_then(|_| {
        // Another process may have brought the file up to date before the copy was made.
        if !is_whole(&new, version) {
            return Ok(());
        }
        let facts = fs::metadata(path).map_err(unusable)?;
        fs::set_permissions(&new, facts.permissions()).map_err(unusable)?;
        File::open(&new).and_then(|file| file.sync_all()).map_err(unusable)?;
        fs::rename(&new, &copy).map_err(unusable)?;
        super::place::sync_directory(path).map_err(unusable)
    });
    let removed = remove(&new).map_err(unusable);
    done?;
    removed?;
    match find(connection, path)? {
        Found::Older(found) if found == version && !is_whole(&copy, version) => {
            Err(unusable(io::Error::other("what SQLite wrote is not whole")))
        }
        _ => Ok(()),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a whole store of this version lies there.
fn is_whole(path: &Path, version: i64) -> bool {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(copy) = Connection::open_with_flags(path, flags) else { return false };
    let check = |copy: &Connection| -> Result<String, rusqlite::Error> {
        copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
    };
    find(&copy, path).is_ok_and(|found| found == Found::Older(version))
        && check(&copy).is_ok_and(|said| said == "ok")
}

/// A copy in memory of a store of an earlier version, brought up to date.
pub(crate) fn bring_up_to_date_in_memory(
    connection: &Connection,
    path: &Path,
) -> Result<Connection, StoreError> {
    // Connections of this process that know the name share the memory.
    let name = format!("file:{}?mode=memory&cache=shared", random_uuid()?);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(&name, flags)?;
    connection.execute("VACUUM INTO ?1", [name])?;
    migrate(&mut copy, path)?;
    Ok(copy)
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
