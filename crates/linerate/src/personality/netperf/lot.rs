//! What is drawn by lot: hosts of a network, UUIDs, names of files.

use std::fs::File;
use std::io::{self, Read as _};

/// The system's own source.
pub(super) const SOURCE: &str = "/dev/urandom";

/// A number of 128 bits.
pub(super) fn draw() -> io::Result<u128> {
    let mut bytes = [0u8; 16];
    File::open(SOURCE)?.read_exact(&mut bytes)?;
    Ok(u128::from_be_bytes(bytes))
}
