//! Where a store may lie, and what its file system can do.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// How a store keeps what is not committed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// A log beside the file: readers and a writer don't wait for each other. It needs memory that processes share.
    Wal,
    /// A journal that is emptied: slower, and for file systems of a network, whose hosts share no memory.
    Truncate,
}

/// The types of file systems that other hosts may have mounted as well (`statfs(2)`): NFS, SMB, CIFS, SMB2, FUSE, 9P,
/// AFS, Coda, Ceph, Lustre, GFS2 and OCFS2.
const NETWORKED: [u32; 12] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x6573_5546,
    0x0102_1997,
    0x5346_414f,
    0x7375_7245,
    0x00c3_6400,
    0x0bd0_0bd0,
    0x0116_1970,
    0x7461_636f,
];

impl Journal {
    /// The one for a file here.
    pub(crate) fn for_path(path: &Path) -> Self {
        let facts = rustix::fs::statfs(path).or_else(|_| rustix::fs::statfs(parent(path)));
        // The field's width differs between architectures, and some types have the sign bit set.
        let networked = facts.is_ok_and(|facts| NETWORKED.contains(&(facts.f_type as u32)));
        if networked { Self::Truncate } else { Self::Wal }
    }

    /// SQLite's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Wal => "WAL",
            Self::Truncate => "TRUNCATE",
        }
    }

    /// What a user should know of it; `None` for the usual one.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Wal => None,
            Self::Truncate => Some(
                "the store lies on a file system of a network: it uses no write-ahead log, so readers and the writer \
                 wait for each other",
            ),
        }
    }
}

fn parent(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// Makes the directories above a file, open to their owner alone.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let parent = parent(path);
    match parent.is_dir() {
        true => Ok(()),
        false => DirBuilder::new().recursive(true).mode(0o700).create(parent),
    }
}

/// Brings the names of the files beside a file to the disk.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(parent(path))?.sync_all()
}

/// Whether a log with changes lies beside the file.
pub(crate) fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|facts| facts.len() > 0)
}

/// The file as one that nobody changes.
pub(crate) fn immutable_uri(path: &Path) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}

/// What SQLite says, without its numbers.
pub(crate) fn why(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    }
}
