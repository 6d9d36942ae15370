//! The key that a client and a server share, from a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use linerate_engine::access::SharedKey;

/// The longest key.
pub const KEY_BYTES_MAX: usize = 4096;

/// Reads a shared key: everything in the file but the line end that an editor leaves at its end.
///
/// # Errors
/// Where the file can't be read, holds nothing, or holds more than [`KEY_BYTES_MAX`].
pub fn read_shared_key(path: &Path) -> Result<SharedKey, String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    // Two more for the line end, one more to see that there is too much: a device file may have
    // no end.
    let limit = KEY_BYTES_MAX as u64 + 3;
    File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|error| format!("can't read the shared key {shown}: {error}"))?;
    let key =
        bytes.strip_suffix(b"\n").map_or(&*bytes, |line| line.strip_suffix(b"\r").unwrap_or(line));
    match key.len() {
        0 => {
            Err(format!("the shared key {shown} is empty: put 1 to {KEY_BYTES_MAX} bytes into it"))
        }
        1..=KEY_BYTES_MAX => Ok(SharedKey(key.to_vec())),
        _ => Err(format!("the shared key {shown} is longer than {KEY_BYTES_MAX} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8]) -> Result<Vec<u8>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, content).unwrap();
        read_shared_key(&path).map(|key| key.0)
    }

    #[test]
    fn one_line_end_is_not_part_of_the_key() {
        assert_eq!(read(b"secret\n").unwrap(), b"secret");
        assert_eq!(read(b"secret\r\n").unwrap(), b"secret");
        assert_eq!(read(b"secret\n\n").unwrap(), b"secret\n");
        assert_eq!(read(b" \0\xff").unwrap(), b" \0\xff");
        assert_eq!(read(&[b'x'; 4096]).unwrap().len(), 4096);
    }

    #[test]
    fn empty_long_and_missing_keys_are_refused() {
        assert!(read(b"").unwrap_err().contains("is empty"));
        assert!(read(b"\n").unwrap_err().contains("is empty"));
        assert!(read(&[b'x'; 4097]).unwrap_err().contains("longer than 4096"));
        assert!(read_shared_key(Path::new("/dev/zero")).unwrap_err().contains("longer"));
        assert!(read_shared_key(Path::new("/nonexistent/key")).unwrap_err().contains("can't read"));
    }
}
