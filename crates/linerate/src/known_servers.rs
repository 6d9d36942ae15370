//! The servers this user's clients have met, and the fingerprints of their keys: trust on first
//! use, as ssh has it.
//!
//! The list is a text file, `known_servers` in `$XDG_CONFIG_HOME/linerate` or `~/.config/linerate`.
//! A line is `HOST:PORT FINGERPRINT`; empty lines and lines that start with `#` are left alone.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use linerate_engine::event::{Event, Sink};
use rustix::fs::OFlags;

use crate::host::render_host_port;
use crate::state_directory::{FileBeside, config_directory, create_private};

/// Decides on a server's fingerprint; the `Err` is for the user. See
/// [`linerate_engine::access::Access::trust`].
pub type Trust = Box<dyn Fn(&str) -> Result<(), String> + Send>;

/// How long another client may hold the lock before the list is left as it is.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// The longest list that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Trusts the server's key if it is the one known for this host and port, or if none is known yet:
/// then it is remembered, and the sink is told.
pub fn trust_on_first_use(host: &str, port: u16, sink: Sink) -> Trust {
    let server = render_host_port(&host.to_ascii_lowercase(), port);
    Box::new(move |fingerprint| match config_directory() {
        Some(directory) => check(&directory.join("known_servers"), &server, fingerprint, &sink),
        None => {
            sink.offer(Event::Note(format!(
                "no home directory is set (HOME, XDG_CONFIG_HOME): the key {fingerprint} of {server} \
                 is trusted for this run and not remembered"
            )));
            Ok(())
        }
    })
}

/// Trusts this fingerprint (64 lower-case hexadecimal digits) and no other.
pub fn trust_only(pinned: String) -> Trust {
    Box::new(move |fingerprint| {
        if fingerprint.eq_ignore_ascii_case(&pinned) {
            Ok(())
        } else {
            Err(format!(
                "the server's key isn't the one of --server-key {pinned}: its fingerprint is \
                 {fingerprint}. Another program answers there, or the server has a new key"
            ))
        }
    })
}

/// The servers of the user's list, `HOST:PORT` each, in their order; none where it can't be read.
pub(crate) fn known_servers() -> Vec<String> {
    let list =
        config_directory().and_then(|directory| read_list(&directory.join("known_servers")).ok());
    entries(&list.unwrap_or_default()).map(|(server, _)| server.to_owned()).collect()
}

/// Looks the server up in the list in `path`, remembers it where it isn't there.
///
/// # Errors
/// Where another key is known for the server, and where the list can't be read.
pub fn check(path: &Path, server: &str, fingerprint: &str, sink: &Sink) -> Result<(), String> {
    let compare = |known: &str| match known.eq_ignore_ascii_case(fingerprint) {
        true => Ok(()),
        false => Err(changed_key(path, server, known, fingerprint)),
    };
    if let Some(known) = known_fingerprint(&read_list(path)?, server) {
        return compare(known);
    }
    let lock = lock_beside(path);
    // Another client may have remembered the server until the lock was had.
    let list = read_list(path)?;
    if let Some(known) = known_fingerprint(&list, server) {
        return compare(known);
    }
    let remembered = lock.and_then(|_lock| append(path, list, server, fingerprint));
    sink.offer(Event::Note(match remembered {
        Ok(()) => format!(
            "first time at {server}: trusted its key {fingerprint}, remembered in {}",
            path.display()
        ),
        Err(error) => format!(
            "trusted the key {fingerprint} of {server} for this run; it can't be remembered in {}: \
             {error}",
            path.display()
        ),
    }));
    Ok(())
}

/// Two clients that meet new servers at the same time must not undo each other's line. The lock
/// is a file of its own because the list itself is replaced. A lock that another program holds, or a
/// file of another kind in its place, costs a client the memory of a new key and not its test.
fn lock_beside(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        create_private(directory)?;
    }
    let path = lock_path(path);
    // A FIFO would be waited for, and a link's target may be another user's.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    options.write(true).create(true).truncate(false).custom_flags(flags.bits() as i32);
    let lock = options.open(&path).map_err(|error| named(&path, &error))?;
    if !lock.metadata()?.is_file() {
        return Err(named(&path, &"it is no regular file"));
    }
    let given_up = Instant::now() + LOCK_WAIT;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(error)) => return Err(named(&path, &error)),
            Err(TryLockError::WouldBlock) if Instant::now() < given_up => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(named(&path, &"another program holds its lock"));
            }
        }
    }
}

fn named(path: &Path, why: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {why}", path.display()))
}

fn lock_path(path: &Path) -> PathBuf {
    path.with_extension("lock")
}

fn read_list(path: &Path) -> Result<String, String> {
    let wrong = |why: &dyn std::fmt::Display| {
        format!("can't read the list of known servers {}: {why}", path.display())
    };
    match fs::metadata(path) {
        Ok(facts) if !facts.is_file() => Err(wrong(&"it is no regular file")),
        Ok(facts) if facts.len() > FILE_BYTES_MAX => Err(wrong(&"it is longer than 16 MiB")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(String::new())
        }
        _ => fs::read_to_string(path).map_err(|error| wrong(&error)),
    }
}

fn known_fingerprint<'list>(list: &'list str, server: &str) -> Option<&'list str> {
    entries(list).find(|(known, _)| *known == server).map(|(_, fingerprint)| fingerprint)
}

/// The list's servers and their fingerprints.
fn entries(list: &str) -> impl Iterator<Item = (&str, &str)> {
    list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next().unwrap_or("(none)")))
    })
}

fn append(path: &Path, mut list: String, server: &str, fingerprint: &str) -> io::Result<()> {
    if !list.is_empty() && !list.ends_with('\n') {
        list.push('\n');
    }
    list.push_str(&format!("{server} {fingerprint}\n"));
    // A list that is kept elsewhere and linked to stays there.
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if path.is_symlink() => return Err(error),
        Err(_not_there_yet) => path.to_owned(),
    };
    let mut file = FileBeside::create(&path, 0o600)?;
    file.write(list.as_bytes())?;
    file.rename()
}

fn changed_key(path: &Path, server: &str, known: &str, fingerprint: &str) -> String {
    format!(
        "the key of {server} has changed: its fingerprint is {fingerprint}, but {} has {known}. \
         Another machine may intercept the connection, or the server was set up again. If it was, \
         remove the line of {server} from that file; --server-key {fingerprint} trusts the new key for \
         this run alone",
        path.display()
    )
}

#[cfg(test)]
mod tests;
