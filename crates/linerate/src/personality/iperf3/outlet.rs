//! Where output goes, and what stands before each piece of it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use linerate_engine::event::Cancel;
use linerate_wire::visible::visible;

use super::moment::Stamp;
use crate::personality::stdout;

/// Where output goes. Several tests of a server share one.
#[derive(Debug)]
pub(super) struct Outlet {
    target: Mutex<Target>,
    stamp: Option<Stamp>,
    title: Option<String>,
    cancel: Cancel,
}

#[derive(Debug)]
enum Target {
    Stdout,
    File(File, PathBuf),
    Nowhere,
}

impl Outlet {
    /// Standard output, or the file of `--logfile`, which is added to.
    ///
    /// # Errors
    /// What the system says of the file.
    pub(super) fn open(
        file: Option<&Path>,
        stamp: Option<Stamp>,
        cancel: Cancel,
    ) -> io::Result<Self> {
        let target = match file {
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path)?;
                Target::File(file, path.to_owned())
            }
            None => Target::Stdout,
        };
        Ok(Self { target: Mutex::new(target), stamp, title: None, cancel })
    }

    /// With a title before each piece: a client's.
    pub(super) fn with_title(self, title: Option<String>) -> Self {
        Self { title, ..self }
    }

    /// From now on standard output has no reader.
    pub(super) fn leave_stdout(&self) {
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*target, Target::Stdout) {
            *target = Target::Nowhere;
        }
    }

    /// Prints pieces; what was printed.
    pub(super) fn print(&self, pieces: &[String]) -> String {
        let mut text = String::new();
        let lead = self.lead();
        for piece in pieces {
            text.push_str(&lead);
            text.push_str(piece);
        }
        self.write(&text);
        text
    }

    /// Prints one piece that comes in several.
    pub(super) fn print_long(&self, piece: impl Iterator<Item = String>) {
        self.write_pieces(std::iter::once(self.lead()).chain(piece));
    }

    /// What stands before each piece.
    fn lead(&self) -> String {
        let mut lead = self.stamp.as_ref().map(Stamp::render_now).unwrap_or_default();
        if let Some(title) = &self.title {
            lead.push_str(title);
            lead.push_str(":  ");
        }
        lead
    }

    /// Prints a text as it is.
    pub(super) fn write(&self, text: &str) {
        self.write_pieces(std::iter::once(text));
    }

    /// Prints a text that comes in pieces as it is, with nothing of others between them.
    pub(super) fn write_pieces<T: AsRef<str>>(&self, pieces: impl Iterator<Item = T>) {
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match &mut *target {
            Target::Stdout => {
                stdout::write(pieces).map_err(|error| ("standard output".to_owned(), error))
            }
            Target::File(file, path) => {
                write_file(file, pieces).map_err(|error| (format!("'{}'", path.display()), error))
            }
            Target::Nowhere => Ok(()),
        };
        let Err((target, error)) = written else { return };
        stdout::note(&target, &error);
        // Without a reader there is nothing to measure for.
        if error.kind() == ErrorKind::BrokenPipe {
            self.cancel.request();
        }
    }

    /// Says what went wrong, on standard error or in the log file.
    pub(super) fn complain(&self, text: &str) {
        let stamp = self.stamp.as_ref().map(Stamp::render_now).unwrap_or_default();
        let line = format!("{stamp}iperf3: {}\n", visible(text));
        let target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*target, Target::Stdout) {
            crate::output::narrate(&line);
            return;
        }
        drop(target);
        self.write(&line);
    }
}

fn write_file<T: AsRef<str>>(file: &mut File, pieces: impl Iterator<Item = T>) -> io::Result<()> {
    for piece in pieces {
        file.write_all(piece.as_ref().as_bytes())?;
    }
    file.flush()
}
