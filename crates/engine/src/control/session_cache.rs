//! The sessions that a server's clients may resume, kept in a file across restarts.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
}

#[derive(Default)]
struct State {
    sessions: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// Why the file is not up to date.
    fault: Option<String>,
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
        let state = Mutex::new(State { sessions, fault: None });
        Ok(Arc::new(Self { path: path.to_owned(), state }))
    }

    /// Why the file is not up to date, once.
    pub(crate) fn take_fault(&self) -> Option<String> {
        self.state().fault.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn render(sessions: &VecDeque<(Vec<u8>, Vec<u8>)>) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (id, session) in sessions {
        render_block(id, &mut bytes);
        render_block(session, &mut bytes);
    }
    bytes
}

impl StoresServerSessions for SessionCache {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        let mut state = self.state();
        if state.sessions.len() >= MOST_SESSIONS {
            state.sessions.pop_front();
        }
        state.sessions.push_back((id, session));
        if let Err(error) = write_secret(&self.path, &render(&state.sessions)) {
            let path = self.path.display();
            state.fault = Some(format!("can't write the session cache {path}: {error}"));
        }
        true
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let state = self.state();
        let found = state.sessions.iter().find(|(one, _)| one == id);
        found.map(|(_, session)| session.clone())
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        let mut state = self.state();
        let place = state.sessions.iter().position(|(one, _)| one == id)?;
        state.sessions.remove(place).map(|(_, session)| session)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_there_after_a_restart_the_last_ones_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let cache = SessionCache::open(&path).unwrap();
        for number in 0..=MOST_SESSIONS as u8 {
            assert!(cache.put(vec![number], vec![number; 3]));
        }
        assert_eq!((cache.get(&[0]), cache.take(&[1])), (None, Some(vec![1; 3])));
        assert_eq!(cache.take(&[1]), None, "a session is taken once");
        drop(cache);
        let again = SessionCache::open(&path).unwrap();
        assert_eq!(again.get(&[16]), Some(vec![16; 3]));
        assert_eq!(again.take_fault(), None);
        std::fs::write(&path, "something else").unwrap();
        assert!(SessionCache::open(&path).is_err());
        assert!(SessionCache::open(folder.path()).is_err());
    }
}
