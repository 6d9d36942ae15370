//! The secrets of a load's connections, for tools that decrypt its packets.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A file in the format of SSLKEYLOGFILE (RFC 9850), which Wireshark reads.
///
/// Each line opens it anew: a thread may have a file table of its own, in which a number that was opened elsewhere
/// is a flow's socket.
#[derive(Debug)]
pub(crate) struct KeyLog(PathBuf);

impl KeyLog {
    /// Appends to the file, or makes it, for its owner alone. `given_by`: the options or variables that can have named
    /// the file.
    pub(crate) fn open(path: &Path, given_by: &str) -> Result<Self, Error> {
        append_to(path).map(|_file| Self(path.to_owned())).map_err(|error| {
            let path = path.display();
            Error::Host(format!("can't write the key log {path}: {error}; give another {given_by}"))
        })
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// What to say of a measurement whose secrets go to a file: the variable may have been set for other programs.
pub(crate) fn key_log_note(path: &Path) -> String {
    format!(
        "the secrets of its connections were written to {} (--keylog or SSLKEYLOGFILE), which makes \
         each handshake slower",
        path.display()
    )
}

impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = label.to_owned();
        for part in [client_random, secret] {
            line.push(' ');
            for byte in part {
                // Writing to text can't fail.
                let _written = write!(line, "{byte:02x}");
            }
        }
        line.push('\n');
        // A full disk costs the log, not the measurement.
        let _lost = append_to(&self.0).and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
