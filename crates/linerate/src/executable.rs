//! This program's own executable, as a host of a lab is to have it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use linerate_lab::host::{Binaries, Executable};

/// This program's executable, even where its file was removed or replaced since it was started.
const RUNNING: &str = "/proc/self/exe";

/// Where this program's executable is. A file that was replaced since is reached through /proc.
pub fn own_path() -> PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => PathBuf::from(RUNNING),
    }
}

/// SHA-256 of this program's executable, 64 hexadecimal digits.
///
/// # Errors
/// Those of reading a file.
pub fn own_sha256() -> io::Result<String> {
    sha256_of(Path::new(RUNNING))
}

/// This program's executable and those for hosts of other architectures.
///
/// # Errors
/// A file that can't be read, a sentence.
pub fn binaries(others: &[(String, PathBuf)]) -> Result<Binaries, String> {
    let unreadable =
        |path: &Path, error: io::Error| format!("can't read {}: {error}", path.display());
    let own = Executable {
        path: own_path(),
        sha256: own_sha256().map_err(|error| unreadable(Path::new(RUNNING), error))?,
        arch: rustix::system::uname().machine().to_string_lossy().into_owned(),
    };
    let others = others
        .iter()
        .map(|(arch, path)| {
            let sha256 = sha256_of(path).map_err(|error| unreadable(path, error))?;
            Ok(Executable { path: path.clone(), sha256, arch: arch.clone() })
        })
        .collect::<Result<_, String>>()?;
    Ok(Binaries { own, others })
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Context::new(&SHA256);
    let mut bytes = vec![0; 64 << 10];
    loop {
        match file.read(&mut bytes)? {
            0 => break,
            count => digest.update(bytes.get(..count).unwrap_or_default()),
        }
    }
    let digest = digest.finish();
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_of(file.path()).unwrap(), expected);
    }
}
