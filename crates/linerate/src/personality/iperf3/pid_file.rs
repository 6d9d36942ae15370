//! The file of `-I`: which process has it, for as long as that runs.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

use linerate_personality::iperf3::amount::parse_leading_integer;

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
        let mut file = open(path)?;
        let number = std::process::id().to_string();
        if let Err(error) = file.write_all(number.as_bytes()) {
            // The present content names no process. A device is no file of ours.
            if file.metadata().is_ok_and(|facts| facts.is_file()) {
                let _ = remove_file(path);
            }
            return Err(Denied::Unwritten(error));
        }
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another process may have it by now: one that took this one's place, or one that saw no file where somebody
        // had removed this.
        if read_pid(&self.0).is_some_and(is_own) {
            // What can't be removed stays; the process it names is gone.
            let _ = remove_file(&self.0);
        }
    }
}

/// Opens the file, empty, unless it is that of another process which runs. Of two that find none, one makes it and the
/// other finds it.
fn open(path: &Path) -> Result<File, Denied> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(Denied::Unwritten),
    }
    if read_pid(path).is_some_and(|pid| !is_own(pid) && runs(pid)) {
        return Err(Denied::Taken);
    }
    // Made where there is only a link, to what isn't there.
    options.create(true).truncate(true).open(path).map_err(Denied::Unwritten)
}

fn is_own(pid: i32) -> bool {
    u32::try_from(pid) == Ok(std::process::id())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_with_the_process_whose_number_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        let own = PidFile::write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string());
        drop(own);
        assert!(!path.exists());
        // Another's, which has written over it or was given the name since.
        let own = PidFile::write(&path).unwrap();
        std::fs::write(&path, "1").unwrap();
        drop(own);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1");
    }

    #[test]
    fn pid_file_that_is_no_regular_file_is_written_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        drop(PidFile::write(&path).unwrap());
        assert!(path.exists());
        remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        assert!(matches!(PidFile::write(&path), Err(Denied::Unwritten(_))));
        assert!(path.exists());
        // A link to what isn't there is followed.
        remove_file(&path).unwrap();
        std::os::unix::fs::symlink(folder.path().join("pid"), &path).unwrap();
        let own = PidFile::write(&path).unwrap();
        assert!(folder.path().join("pid").exists());
        drop(own);
        assert!(!path.exists());
    }
}
