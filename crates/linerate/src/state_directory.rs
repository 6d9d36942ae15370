//! Where this machine's user keeps things (XDG Base Directory Specification 0.8), and how a file
//! gets there whole.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// `$XDG_CONFIG_HOME/linerate`, or `~/.config/linerate`; `None` where the home is unknown.
pub(crate) fn config_directory() -> Option<PathBuf> {
    directory("XDG_CONFIG_HOME", ".config")
}

/// `$XDG_STATE_HOME/linerate`, or `~/.local/state/linerate`; `None` where the home is unknown.
pub(crate) fn state_directory() -> Option<PathBuf> {
    directory("XDG_STATE_HOME", ".local/state")
}

/// `$XDG_DATA_HOME/linerate`, or `~/.local/share/linerate`; `None` where the home is unknown.
pub(crate) fn data_directory() -> Option<PathBuf> {
    directory("XDG_DATA_HOME", ".local/share")
}

/// Makes the directory and those above it, open to its owner alone.
pub(crate) fn create_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// A new file beside `path` that is removed again unless [`renamed`](Self::rename) or
/// [`linked`](Self::link_new) to it.
pub(crate) struct FileBeside {
    file: File,
    path: PathBuf,
    target: PathBuf,
}

impl FileBeside {
    /// Makes the file with these permissions, less the process's mask.
    pub(crate) fn create(target: &Path, mode: u32) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let Some(name) = target.file_name() else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{}-{number}.tmp", name.to_string_lossy(), process::id());
        let path = target.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        Ok(Self { file, path, target: target.to_owned() })
    }

    /// Writes all of it, through to the disk.
    pub(crate) fn write(&mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)?;
        self.file.sync_all()
    }

    /// Puts it in the target's place, whether or not there was one.
    pub(crate) fn rename(self) -> io::Result<()> {
        fs::rename(&self.path, &self.target)?;
        self.sync_directory()
    }

    /// Gives it the target's name; fails with `AlreadyExists` where there is a target.
    pub(crate) fn link_new(self) -> io::Result<()> {
        fs::hard_link(&self.path, &self.target)?;
        self.sync_directory()
    }

    /// So that the name survives a power cut too. A file system that can't do it has done what it
    /// can.
    fn sync_directory(&self) -> io::Result<()> {
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Ok(directory) = File::open(parent.unwrap_or(Path::new("."))) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

impl Drop for FileBeside {
    fn drop(&mut self) {
        // After a rename there is nothing left by this name.
        let _ = fs::remove_file(&self.path);
    }
}

fn directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    // The specification says to ignore a relative path.
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)))?;
    Some(base.join("linerate"))
}
