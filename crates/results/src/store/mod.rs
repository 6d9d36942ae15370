//! The file: how it is opened, made, recognised and brought up to date.

mod held;
mod place;
mod version;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

pub use held::RunLock;
pub use place::Journal;

use crate::StoreError;
pub(crate) use place::immutable_uri;
use version::Found;
#[cfg(test)]
pub(crate) use version::VERSION;

/// Another process may hold the file so long before an operation fails.
const BUSY: Duration = Duration::from_secs(60);

/// Text or blob of a row may have so many bytes.
const MOST_BYTES_OF_A_VALUE: i32 = 256 << 20;

/// So much of the file is mapped to memory.
const MAPPED_BYTES: i64 = 1 << 30;

/// Names a run within one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub(crate) i64);

/// The path of a store without a file.
const IN_MEMORY: &str = ":memory:";

/// An open store.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    path: PathBuf,
    journal: Journal,
}

impl Store {
    /// Opens the file to read and write. A missing file is made, with the directories above it, and an older one is
    /// brought up to date after a copy of it was made beside it.
    ///
    /// # Errors
    /// Where the file can't be used, is newer than this program, or is no store.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let unusable = |why: String| StoreError::Unusable { path: path.to_owned(), why };
        place::make_directory(path).map_err(|error| unusable(error.to_string()))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags);
        let mut connection = connection.map_err(|error| unusable(place::why(&error)))?;
        connect(&connection)?;
        let journal = Journal::for_path(path);
        if version::find(&connection, path)? == Found::Nothing {
            version::patiently(|| connection.pragma_update(None, "page_size", 16384))?;
        }
        version::patiently(|| {
            connection.pragma_update_and_check(None, "journal_mode", journal.name(), |_| Ok(()))
        })
        .map_err(|error| unusable(place::why(&error)))?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        version::bring_up_to_date(&mut connection, path)?;
        version::check_tables(&connection)?;
        Ok(Self { connection, path: path.to_owned(), journal })
    }

    /// Opens the file to read it. An older one is brought up to date first; where that can't be, for want of permission
    /// or room, a copy of it in memory is.
    ///
    /// # Errors
    /// As [`Self::open`], and where there is no file.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let unusable = |why: String| StoreError::Unusable { path: path.to_owned(), why };
        if !path.exists() {
            return Err(unusable("there is no such file".to_owned()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection =
            Connection::open_with_flags(path, flags).map_err(|e| unusable(place::why(&e)))?;
        connect(&connection)?;
        let mut found = version::find(&connection, path);
        if matches!(&found, Err(StoreError::Sql(_))) && !place::has_log(path) {
            // Without permission to write beside it a file in WAL mode opens only as one that can't change.
            let uri = immutable_uri(path);
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            connection =
                Connection::open_with_flags(uri, flags).map_err(|e| unusable(place::why(&e)))?;
            connect(&connection)?;
            found = version::find(&connection, path);
        }
        match found.map_err(|error| match error {
            StoreError::Sql(error) => unusable(place::why(&error)),
            other => other,
        })? {
            Found::Current => {}
            Found::Nothing => return Err(StoreError::Foreign { path: path.to_owned() }),
            Found::Older(_) => match Self::open(path) {
                Ok(_) => return Self::open_to_read(path),
                Err(StoreError::Unusable { .. } | StoreError::Sql(_)) => {
                    connection = version::bring_up_to_date_in_memory(&connection, path)?;
                    guard(&connection)?;
                }
                Err(other) => return Err(other),
            },
        }
        version::check_tables(&connection)?;
        Ok(Self { connection, path: path.to_owned(), journal: Journal::for_path(path) })
    }

    /// A store without a file, for what is read from an index.
    ///
    /// # Errors
    /// Where SQLite fails.
    pub(crate) fn in_memory() -> Result<Self, StoreError> {
        let mut connection = Connection::open_in_memory()?;
        let path = PathBuf::from(IN_MEMORY);
        version::bring_up_to_date(&mut connection, &path)?;
        Ok(Self { connection, path, journal: Journal::Truncate })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has what was read from an index, whose values are final.
    pub(crate) fn is_of_index(&self) -> bool {
        self.path.as_os_str() == IN_MEMORY
    }

    /// How it keeps what is not committed yet.
    pub fn journal(&self) -> Journal {
        self.journal
    }

    /// Whether SQLite's own check finds the file whole.
    ///
    /// # Errors
    /// What the check found.
    pub fn check(&self) -> Result<(), StoreError> {
        let found: String =
            self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if found == "ok" { Ok(()) } else { Err(StoreError::Damaged(found)) }
    }
}

/// What every connection to a file has.
fn connect(connection: &Connection) -> Result<(), StoreError> {
    guard(connection)?;
    connection.pragma_update_and_check(None, "mmap_size", MAPPED_BYTES, |_| Ok(()))?;
    Ok(())
}

/// The file may be anybody's: its schema runs nothing, and its rows have a limit.
fn guard(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(BUSY)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_BYTES_OF_A_VALUE)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(())
}
