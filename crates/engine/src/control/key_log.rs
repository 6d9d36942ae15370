//! The secrets of a load's connections, for those who look at its packets.

use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::error::Error;

/// A file in the format of SSLKEYLOGFILE (RFC 9850), which Wireshark reads.
pub(crate) struct KeyLog(Mutex<File>);

impl KeyLog {
    /// Appends to the file, or makes it, for its owner alone.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let file = file.map_err(|error| {
            let path = path.display();
            Error::Host(format!(
                "can't write the key log {path}: {error}; give another --keylog or SSLKEYLOGFILE"
            ))
        })?;
        Ok(Self(Mutex::new(file)))
    }
}

/// What to say of a measurement whose secrets go to a file: the variable may have been set for other programs.
pub(crate) fn key_log_note(path: &Path) -> String {
    format!(
        "the secrets of its connections went to {} (--keylog or SSLKEYLOGFILE), which takes time of each \
         handshake",
        path.display()
    )
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLog")
    }
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
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk costs the log, not the measurement.
        let _lost = file.write_all(line.as_bytes());
    }
}
