//! The files of a run. Each line is written at once, so that others can read along.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::encoding::Encoding;
use linerate_personality::ctstraffic::{Refusal, SHARED_CSV, is_csv};

use crate::personality::stdout;

/// The files of a run.
#[derive(Default)]
pub(super) struct Files {
    /// Rows of status.
    pub(super) status: Option<Log>,
    /// Connections.
    pub(super) connections: Option<Log>,
    /// Errors.
    pub(super) errors: Option<Log>,
    /// Frames of a media stream.
    pub(super) jitter: Option<Log>,
    /// What the kernel knows of connections.
    pub(super) tcp_info: Option<Log>,
}

/// A file that an option names. Several options may name one.
#[derive(Clone)]
pub(super) struct Log {
    file: Rc<RefCell<File>>,
    path: PathBuf,
    /// Its device and its number there.
    identity: (u64, u64),
    encoding: Encoding,
    /// Whether it has rows of csv rather than text.
    pub(super) is_csv: bool,
}

impl Files {
    /// Opens the files, which are emptied.
    ///
    /// # Errors
    /// One can't be written.
    pub(super) fn open(options: &Options) -> Result<Self, Refusal> {
        let encoding = if options.own.utf16 { Encoding::Utf16 } else { Encoding::Utf8 };
        let mut opened: Vec<Log> = Vec::new();
        let mut open = |name: &Option<String>| -> Result<Option<Log>, Refusal> {
            let Some(name) = name else { return Ok(None) };
            let unwritable = |error| Refusal::new(format!("can't write to {name}: {error}"));
            // One that another option names too isn't emptied again.
            let mut options = OpenOptions::new();
            let file = options.write(true).create(true).truncate(false).open(name);
            let file = file.map_err(unwritable)?;
            let metadata = file.metadata().map_err(unwritable)?;
            let (identity, is_csv) = ((metadata.dev(), metadata.ino()), is_csv(name));
            // One file may have several names.
            if let Some(log) = opened.iter().find(|log| log.identity == identity) {
                return match metadata.is_file() && (is_csv || log.is_csv) {
                    true => Err(Refusal::new(SHARED_CSV)),
                    false => Ok(Some(Log { is_csv, ..log.clone() })),
                };
            }
            if metadata.is_file() {
                file.set_len(0).map_err(unwritable)?;
            }
            let path = PathBuf::from(name);
            let file = Rc::new(RefCell::new(file));
            let log = Log { file, path, identity, encoding, is_csv };
            log.file.borrow_mut().write_all(encoding.mark()).map_err(unwritable)?;
            opened.push(log.clone());
            Ok(Some(log))
        };
        let output = &options.output;
        Ok(Self {
            status: open(&output.status_file)?,
            connections: open(&output.connection_file)?,
            errors: open(&output.error_file)?,
            jitter: open(&output.jitter_file)?,
            tcp_info: open(&output.tcp_info_file)?,
        })
    }
}

impl Log {
    /// Writes lines of text, each ended.
    pub(super) fn write(&self, lines: &str) {
        let written = self.file.borrow_mut().write_all(&self.encoding.encode(lines));
        if let Err(error) = written {
            stdout::note(&self.path.display().to_string(), &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_personality::ctstraffic::options::OutputOptions;

    use super::*;

    fn open(status: &str, connections: &str) -> Result<Files, Refusal> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "").unwrap();
        std::os::unix::fs::symlink("a.csv", folder.path().join("link.csv")).unwrap();
        let path = |name: &str| Some(format!("{}/{name}", folder.path().display()));
        let output = OutputOptions {
            status_file: path(status),
            connection_file: path(connections),
            ..OutputOptions::default()
        };
        Files::open(&Options { output, ..Options::default() })
    }

    #[test]
    fn a_csv_file_of_two_names_is_refused_and_a_text_file_shared() {
        for (a, b) in [("a.csv", "./a.csv"), ("link.csv", "a.csv")] {
            assert_eq!(open(a, b).map(drop).unwrap_err().text, SHARED_CSV, "{a} {b}");
        }
        let files = open("all.txt", "./all.txt").unwrap();
        let (status, connections) = (files.status.unwrap(), files.connections.unwrap());
        assert!(Rc::ptr_eq(&status.file, &connections.file));
        assert!(open("a.csv", "b.csv").is_ok());
    }
}
