//! What is drawn by lot: hosts of a network, UUIDs, names of files.

use std::io;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// A number of 128 bits from the kernel's generator, which needs no device file (a root directory of
/// its own may have none).
pub(super) fn draw() -> io::Result<u128> {
    let mut bytes = [0u8; 16];
    loop {
        // Up to 256 bytes come whole (getrandom(2)); a signal can interrupt the wait for the first ones.
        match getrandom(&mut bytes, GetRandomFlags::empty()) {
            Ok(_) => return Ok(u128::from_be_bytes(bytes)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
