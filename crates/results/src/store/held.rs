//! Which process works on a run.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::StoreError;

/// The right to work on a run: a lock on a file beside the store, which names host and process. It ends with the
/// process.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

/// How often a lock is tried whose file disappears meanwhile.
const TRIES: u32 = 100;

impl RunLock {
    /// Takes the run, if no other process has it.
    ///
    /// # Errors
    /// Where another process has it, by host and number, or the file can't be made.
    pub(crate) fn take(store: &Path, run: &str) -> Result<Self, StoreError> {
        let mut name = store.as_os_str().to_owned();
        name.push(format!(".{run}.lock"));
        let path = PathBuf::from(name);
        let unusable = |error: std::io::Error| StoreError::Unusable {
            path: store.to_owned(),
            why: format!("the lock file {} can't be written: {error}", path.display()),
        };
        for _ in 0..TRIES {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(unusable)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                let mut holder = String::new();
                let _unreadable = file.take(200).read_to_string(&mut holder);
                let holder = holder.trim().to_owned();
                return Err(StoreError::Held { run: run.to_owned(), holder });
            }
            // The holder before may have removed the file between the two calls.
            let is_there = fs::metadata(&path).is_ok_and(|there| {
                file.metadata()
                    .is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
            });
            if is_there {
                let host = rustix::system::uname();
                let host = host.nodename().to_string_lossy();
                let written = file
                    .set_len(0)
                    .and_then(|()| file.rewind())
                    .and_then(|()| writeln!(file, "process {} on {host}", std::process::id()));
                written.map_err(unusable)?;
                return Ok(Self { path, _file: file });
            }
        }
        Err(StoreError::Held { run: run.to_owned(), holder: "which changes".to_owned() })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A file that stays behind holds nothing.
        let _left = fs::remove_file(&self.path);
    }
}
