//! The file of `-I`: which process has it, for as long as that runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

use super::amount::parse_leading_integer;

/// More than any number of a process has.
const MOST_DIGITS: u64 = 16;

/// The file, which goes with this.
#[derive(Debug)]
pub(super) struct PidFile(PathBuf);

/// Why there is none.
#[derive(Debug)]
pub(super) enum Denied {
    /// It is another process's, which runs.
    Taken,
    /// It can't be written.
    Unwritten(io::Error),
}

impl PidFile {
    /// Writes this process's number: the digits alone, as the original does. The file of a process that has
    /// ended is written over.
    pub(super) fn write(path: &Path) -> Result<Self, Denied> {
        let own = std::process::id();
        if read_pid(path).is_some_and(|pid| u32::try_from(pid) != Ok(own) && runs(pid)) {
            return Err(Denied::Taken);
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path).map_err(Denied::Unwritten)?;
        // From here on it goes, however much of it was written.
        let written = Self(path.to_owned());
        (&file).write_all(own.to_string().as_bytes()).map_err(Denied::Unwritten)?;
        Ok(written)
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // What can't be removed stays; the process it names is gone.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The number that a file begins with, where there is a file and a number.
fn read_pid(path: &Path) -> Option<i32> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MOST_DIGITS).read_to_end(&mut text).ok()?;
    let number = parse_leading_integer(&String::from_utf8_lossy(&text))?;
    i32::try_from(number).ok().filter(|pid| *pid > 0)
}

/// Whether there is such a process that this one may signal. Another user's is taken for none, as by the original:
/// its file can't be written either.
fn runs(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok())
}
