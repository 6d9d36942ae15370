//! Where a result is written to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use linerate_engine::stdout_was_closed;

use crate::state_directory::FileBeside;

/// Why output did not come to its reader.
#[derive(Debug)]
pub enum Unwritten {
    /// The reader closed the pipe: no message is needed.
    ReaderGone,
    /// A sentence for the user.
    Failed(String),
}

/// Where a result is written to.
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file that appears whole when all is over, or not at all.
    Whole {
        /// Where it will be.
        path: PathBuf,
        /// What will be in it.
        content: Vec<u8>,
    },
    /// A device or a pipe: written as it comes.
    Device {
        /// Where it is.
        path: PathBuf,
        /// The open device.
        file: File,
    },
}

impl Destination {
    /// Standard output, or this file. A file is tried now by making one beside it.
    ///
    /// # Errors
    /// Where the file can't be written, or standard output was closed: a sentence for the user.
    pub fn open(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else {
            return match stdout_was_closed() {
                true => Err(Self::Stdout.cant_write(&closed_at_start())),
                false => Ok(Self::Stdout),
            };
        };
        let wrong = |error: &io::Error| cant_write(path, error);
        match fs::metadata(path) {
            Ok(facts) if facts.is_dir() => {
                Err(format!("can't write the result to {}: it is a directory", path.display()))
            }
            Ok(facts) if !facts.is_file() => {
                let file = OpenOptions::new().write(true).open(path).map_err(|e| wrong(&e))?;
                Ok(Self::Device { path: path.to_owned(), file })
            }
            found => {
                // A link keeps pointing at the file; the file is what is replaced.
                let path = match found {
                    Ok(_) => fs::canonicalize(path).map_err(|e| wrong(&e))?,
                    Err(_) => path.to_owned(),
                };
                FileBeside::create(&path, 0o666).map_err(|e| wrong(&e))?;
                Ok(Self::Whole { path, content: Vec::new() })
            }
        }
    }

    /// Writes text that a reader sees at once, but for a file that appears whole.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn put(&mut self, text: &str) -> Result<(), Unwritten> {
        let written = self.write_all(text.as_bytes()).and_then(|()| self.flush());
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Unwritten::ReaderGone,
            _ => Unwritten::Failed(self.cant_write(&error)),
        })
    }

    /// Makes the file appear.
    ///
    /// # Errors
    /// Where it can't be written; then what was at its place before is still there.
    pub fn commit(self) -> Result<(), String> {
        match self {
            Self::Stdout | Self::Device { .. } => Ok(()),
            Self::Whole { path, content } => {
                let write = || {
                    let mut file = FileBeside::create(&path, 0o666)?;
                    file.write(&content)?;
                    file.rename()
                };
                write().map_err(|error| cant_write(&path, &error))
            }
        }
    }

    /// What the user is told when writing failed.
    fn cant_write(&self, error: &io::Error) -> String {
        match self {
            Self::Stdout => format!("can't write the result to standard output: {error}"),
            Self::Whole { path, .. } | Self::Device { path, .. } => cant_write(path, error),
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            // The runtime has put /dev/null in its place.
            Self::Stdout if stdout_was_closed() => Err(closed_at_start()),
            Self::Stdout => io::stdout().write(bytes),
            Self::Whole { content, .. } => content.write(bytes),
            Self::Device { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().flush(),
            Self::Whole { .. } => Ok(()),
            Self::Device { file, .. } => file.flush(),
        }
    }
}

fn closed_at_start() -> io::Error {
    io::Error::other("it was closed when the program was started")
}

fn cant_write(path: &Path, error: &io::Error) -> String {
    format!("can't write the result to {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_whole_or_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        let mut destination = Destination::open(Some(&path)).unwrap();
        destination.write_all(b"whole").unwrap();
        assert_eq!(names_in(directory.path()), Vec::<String>::new());
        destination.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names_in(directory.path()), ["run.json"]);
    }

    #[test]
    fn the_file_before_stays_until_the_commit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        fs::write(&path, "before").unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut destination = Destination::open(Some(&link)).unwrap();
        destination.write_all(b"after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        destination.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn unwritable_destination_is_found_at_once() {
        let directory = tempfile::tempdir().unwrap();
        for path in [directory.path().to_owned(), directory.path().join("no/such"), "/".into()] {
            let error = Destination::open(Some(&path)).err().unwrap();
            assert!(error.starts_with("can't write the result to"), "{error}");
        }
        assert_eq!(names_in(directory.path()), Vec::<String>::new());
    }

    #[test]
    fn a_full_device_is_told() {
        let mut destination = Destination::open(Some(Path::new("/dev/full"))).unwrap();
        let Err(Unwritten::Failed(sentence)) = destination.put("x") else {
            panic!("it was written")
        };
        assert!(sentence.contains("No space left"), "{sentence}");
    }
}
