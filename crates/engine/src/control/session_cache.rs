//! The sessions that a server's clients may resume, kept in a file across restarts.
//!
//! The threads of handshakes change [`SessionCache`] in memory. A [`CacheWriter`] has a thread that writes the file
//! after each change.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustls::ServerConfig;
use rustls::server::StoresServerSessions;

use super::session_file::{not_ours, read_kept, render_block, take_block, write_secret};
use crate::error::Error;

const MAGIC: &[u8] = b"linerate session cache 1\n";
/// Sessions that are kept; the oldest goes when there are more.
const MOST_SESSIONS: usize = 16;

/// Sessions by their ids.
pub(crate) struct SessionCache {
    path: PathBuf,
    state: Mutex<State>,
    /// There is something to write, or nothing more will come.
    changed: Condvar,
}

/// Sessions behind their ids, the newest last.
type Sessions = VecDeque<(Vec<u8>, Vec<u8>)>;

#[derive(Default)]
struct State {
    sessions: Sessions,
    /// Whether the file has other sessions.
    is_dirty: bool,
    /// Whether the last write failed.
    is_stale: bool,
    /// Whether the file's writer is to end.
    ends: bool,
    /// Why the file is not up to date.
    fault: Option<String>,
    /// Whether a fault was told.
    is_told: bool,
}

impl fmt::Debug for SessionCache {
    /// Without the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCache").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SessionCache {
    /// The sessions of a file, which needn't be there.
    ///
    /// # Errors
    ///
    /// Where the file can't be read, holds something else, or can't be written.
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>, Error> {
        let failed = |what: &str, error: std::io::Error| {
            Error::Host(format!("can't {what} the session cache {}: {error}", path.display()))
        };
        let mut sessions = VecDeque::new();
        if let Some(bytes) = read_kept(path, MAGIC).map_err(|error| failed("read", error))? {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let session = take_block(&mut rest).zip(take_block(&mut rest));
                sessions.push_back(session.ok_or_else(|| failed("read", not_ours()))?);
            }
        }
        write_secret(path, &render(&sessions)).map_err(|error| failed("write", error))?;
        let state = Mutex::new(State { sessions, ..State::default() });
        Ok(Arc::new(Self { path: path.to_owned(), state, changed: Condvar::new() }))
    }

    /// Has the clients of a server resume these sessions, with early data.
    pub(crate) fn serve(cache: &Arc<Self>, tls: &mut ServerConfig) {
        tls.session_storage = Arc::clone(cache) as Arc<_>;
        tls.send_tls13_tickets = 1;
        // QUIC has no other number (RFC 9001, section 4.6.1).
        tls.max_early_data_size = u32::MAX;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the sessions, which are then to be written.
    fn change<T>(&self, change: impl FnOnce(&mut Sessions) -> Option<T>) -> Option<T> {
        let mut state = self.state();
        let changed = change(&mut state.sessions)?;
        state.is_dirty = true;
        drop(state);
        self.changed.notify_one();
        Some(changed)
    }

    /// Writes the file after each change, until it is told to end.
    fn write_changes(&self) {
        loop {
            let is_idle = |state: &mut State| !state.is_dirty && !state.ends;
            let waited = self.changed.wait_while(self.state(), is_idle);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            // What could not be written is tried once more at the end.
            let is_due = state.is_dirty || state.ends && state.is_stale;
            if !is_due {
                return;
            }
            (state.is_dirty, state.is_stale) = (false, false);
            let is_last = state.ends;
            let bytes = render(&state.sessions);
            drop(state);
            let written = write_secret(&self.path, &bytes);
            let mut state = self.state();
            state.is_stale = written.is_err() && !is_last;
            let path = self.path.display();
            state.fault =
                written.err().map(|error| format!("can't write the session cache {path}: {error}"));
        }
    }
}

/// The thread that writes a cache's file. It ends, and the file is up to date, when this is dropped.
pub(crate) struct CacheWriter {
    cache: Arc<SessionCache>,
    thread: Option<JoinHandle<()>>,
}

impl CacheWriter {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// Where this machine refuses a thread.
    pub(crate) fn start(cache: &Arc<SessionCache>) -> Result<Self, Error> {
        let (cache, written) = (Arc::clone(cache), Arc::clone(cache));
        let work = move || written.write_changes();
        let spawned = thread::Builder::new().name("session cache".to_owned()).spawn(work);
        let thread = Some(spawned.map_err(|error| Error::no_thread(&error))?);
        Ok(Self { cache, thread })
    }

    /// Why the file is not up to date. Of the first fault that is told once, and of none that follow.
    pub(crate) fn take_fault(&self) -> Option<String> {
        let mut state = self.cache.state();
        let fault = state.fault.take()?;
        (!std::mem::replace(&mut state.is_told, true)).then_some(fault)
    }

    /// Brings the file up to date; why it isn't.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.end_thread();
        self.take_fault()
    }

    fn end_thread(&mut self) {
        self.cache.state().ends = true;
        self.cache.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that broke off has nothing more to write.
            let _ended = thread.join();
        }
    }
}

impl Drop for CacheWriter {
    fn drop(&mut self) {
        self.end_thread();
    }
}

fn render(sessions: &Sessions) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (id, session) in sessions {
        render_block(id, &mut bytes);
        render_block(session, &mut bytes);
    }
    bytes
}

impl StoresServerSessions for SessionCache {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        let put = self.change(|sessions| {
            if sessions.len() >= MOST_SESSIONS {
                sessions.pop_front();
            }
            sessions.push_back((id, session));
            Some(())
        });
        put.is_some()
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let state = self.state();
        let found = state.sessions.iter().find(|(one, _)| one == id);
        found.map(|(_, session)| session.clone())
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.change(|sessions| {
            let place = sessions.iter().position(|(one, _)| one == id)?;
            sessions.remove(place).map(|(_, session)| session)
        })
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn sessions_are_there_after_a_restart_the_last_ones_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let cache = SessionCache::open(&path).unwrap();
        let writer = CacheWriter::start(&cache).unwrap();
        for number in 0..=MOST_SESSIONS as u8 {
            assert!(cache.put(vec![number], vec![number; 3]));
        }
        assert_eq!((cache.get(&[0]), cache.take(&[1])), (None, Some(vec![1; 3])));
        assert_eq!(cache.take(&[1]), None, "a session is taken once");
        assert_eq!(writer.finish(), None);
        let again = SessionCache::open(&path).unwrap();
        assert_eq!(again.get(&[16]), Some(vec![16; 3]));
        assert_eq!(again.take(&[1]), None, "nor is it there after a restart");
        std::fs::write(&path, "something else").unwrap();
        assert!(SessionCache::open(&path).is_err());
        assert!(SessionCache::open(folder.path()).is_err());
    }

    #[test]
    fn changes_are_written_as_they_come_and_faults_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("folder").join("cache");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let cache = SessionCache::open(&path).unwrap();
        let writer = CacheWriter::start(&cache).unwrap();
        let is_kept = || !read_kept(&path, MAGIC).unwrap().unwrap().is_empty();
        let until = |done: &dyn Fn() -> bool| {
            let end = Instant::now() + Duration::from_secs(20);
            while !done() {
                assert!(Instant::now() < end, "nothing came of it");
                thread::sleep(Duration::from_millis(5));
            }
        };
        cache.put(vec![1], vec![2]);
        until(&is_kept);
        cache.take(&[1]);
        until(&|| !is_kept());
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        cache.put(vec![1], vec![2]);
        let fault = writer.finish().unwrap();
        assert!(fault.starts_with("can't write the session cache "), "{fault}");
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let [kept, away] = ["kept", "away"].map(|name| folder.path().join(name));
        std::fs::create_dir(&kept).unwrap();
        let path = kept.join("cache");
        let cache = SessionCache::open(&path).unwrap();
        cache.put(vec![1], vec![2]);
        let writer = CacheWriter::start(&cache).unwrap();
        while cache.state().is_dirty || std::fs::read(&path).unwrap() == MAGIC {
            thread::sleep(Duration::from_millis(5));
        }
        std::fs::rename(&kept, &away).unwrap();
        assert_eq!(cache.take(&[1]), Some(vec![2]));
        let fault = std::iter::repeat_with(|| {
            thread::sleep(Duration::from_millis(5));
            writer.take_fault()
        });
        assert!(fault.flatten().next().is_some_and(|why| why.starts_with("can't write")));
        std::fs::rename(&away, &kept).unwrap();
        assert_eq!(writer.finish(), None);
        assert_eq!(SessionCache::open(&path).unwrap().get(&[1]), None, "a used session is gone");
    }
}
