//! Where runs are kept, and how the run of a command gets there.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use linerate_measure::{Kind, Plan, Run};
use linerate_results::{Recorded, Store, StoreError, Writer, single_run};

use crate::output::{narrate, render_json};
use crate::start_time::utc_now_ns;
use crate::state_directory::data_directory;

/// Names the file that runs are kept in, also by commands without `--store`.
pub(crate) const VARIABLE: &str = "LINERATE_STORE";

/// What stands for the usual file, in the variable and behind `--store=`.
pub(crate) const USUAL: &str = "default";

/// The file that a flag or the environment asks for; `None`: runs aren't kept.
///
/// # Errors
/// Where the usual file is asked for, and the user's home is unknown.
pub(crate) fn asked(flag: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let variable = env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = |path: &Path| if path == Path::new(USUAL) { usual() } else { Ok(path.to_owned()) };
    match (flag, variable) {
        // The flag alone means the variable's file, where there is one.
        (Some(flag), Some(variable)) if flag == Path::new(USUAL) => named(&variable).map(Some),
        (Some(path), _) => named(path).map(Some),
        (None, Some(path)) => named(&path).map(Some),
        (None, None) => Ok(None),
    }
}

/// The file of commands that need one: what is asked for, else the usual one.
///
/// # Errors
/// As [`asked`].
pub(crate) fn place(flag: Option<&Path>) -> Result<PathBuf, String> {
    match asked(flag)? {
        Some(path) => Ok(path),
        None => usual(),
    }
}

/// `$XDG_DATA_HOME/linerate/results.db`.
fn usual() -> Result<PathBuf, String> {
    let home = data_directory();
    home.map(|home| home.join("results.db")).ok_or_else(|| {
        format!("the usual store is unknown, for HOME is not set: name a file with --store=FILE or {VARIABLE}")
    })
}

/// Keeps the runs of a command in a store.
#[derive(Debug)]
pub(crate) struct Keeper {
    writer: Writer,
    path: PathBuf,
}

impl Keeper {
    /// Opens or makes the store.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let writer = Writer::open(path)?;
        if let Some(note) = writer.journal().note() {
            narrate(&format!("linerate: {}: {note}\n", path.display()));
        }
        Ok(Self { writer, path: path.to_owned() })
    }

    /// Keeps a run of a command of this name.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn keep(&self, run: &Run, command: &str) -> Result<(), StoreError> {
        let recorded = Recorded {
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            now_ms: utc_now_ns() / 1_000_000,
        };
        let (new, cell, end) = single_run(run, render_json(run), &recorded);
        self.writer.record(new, cell, end).map(|_| ())
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A store that is looked at again and again, and read only where it has changed. It need not be there yet.
#[derive(Debug)]
pub(crate) struct WatchedStore {
    path: PathBuf,
    open: Option<OpenStore>,
}

/// An open file, and what it was when it was looked at last.
#[derive(Debug)]
struct OpenStore {
    store: Store,
    file: FileState,
    change: i64,
}

/// What another file of the same name differs in, and one that is not open for changes when it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileState {
    fn read(path: &Path) -> Option<Self> {
        let facts = fs::metadata(path).ok()?;
        let changed = (facts.mtime(), facts.mtime_nsec());
        Some(Self { device: facts.dev(), inode: facts.ino(), bytes: facts.len(), changed })
    }
}

impl WatchedStore {
    /// The store at a path, not looked at yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The store, and whether it may have changed since the last look; `None` where there is no file.
    ///
    /// # Errors
    /// Where it can't be read. The next look opens it anew.
    pub(crate) fn look(&mut self) -> Result<Option<(&Store, bool)>, StoreError> {
        let Some(file) = FileState::read(&self.path) else {
            self.open = None;
            return Ok(None);
        };
        let known = self.open.take().filter(|open| open.file == file);
        let before = known.as_ref().map(|open| open.change);
        let store = match known {
            Some(open) => open.store,
            None => Store::open_to_read(&self.path)?,
        };
        let change = store.change()?;
        // Opening may have brought the file up to date.
        let file = FileState::read(&self.path).filter(|_| before.is_none()).unwrap_or(file);
        let open = self.open.insert(OpenStore { store, file, change });
        Ok(Some((&open.store, before != Some(change))))
    }
}

/// The native command that measures such a plan.
pub(crate) fn command_of(plan: &Plan) -> &'static str {
    match plan.workload.kind {
        Kind::Stream { media: Some(_), .. } => "linerate media",
        Kind::Stream { media: None, .. } => "linerate stream",
        Kind::Rr { .. } => "linerate rr",
        Kind::Connect { .. } => "linerate connect",
    }
}
