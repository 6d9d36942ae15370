//! The files of a run. Each line is written at once, so that others can read along.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;

use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::encoding::Encoding;
use linerate_personality::ctstraffic::{Refusal, is_csv};

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
            let path = PathBuf::from(name);
            if let Some(log) = opened.iter().find(|log| log.path == path) {
                return Ok(Some(log.clone()));
            }
            let log = Log::open(path, encoding)
                .map_err(|error| Refusal::new(format!("can't write to {name}: {error}")))?;
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
    fn open(path: PathBuf, encoding: Encoding) -> io::Result<Self> {
        let mut file = File::create(&path)?;
        file.write_all(encoding.mark())?;
        let is_csv = is_csv(&path.to_string_lossy());
        Ok(Self { file: Rc::new(RefCell::new(file)), path, encoding, is_csv })
    }

    /// Writes lines of text, each ended.
    pub(super) fn write(&self, lines: &str) {
        let written = self.file.borrow_mut().write_all(&self.encoding.encode(lines));
        if let Err(error) = written {
            stdout::note(&self.path.display().to_string(), &error);
        }
    }
}
