//! What a netserver tells of what happens (`-d`), and the file that it tells in the background and under inetd.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::thread;

use linerate_engine::error::Error;
use linerate_engine::event::{Event, Sink};

use super::random::draw;
use crate::output::narrate;

/// Events that may wait for a slow terminal; more are dropped.
const EVENTS_WAITING_MAX: usize = 1024;

/// How its name begins; the original's.
const NAME: &str = "netserver.debug_";
/// Letters drawn at random for its end.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// How many.
const LENGTH: u32 = 6;

/// A file of this process alone.
pub(super) struct DebugLog {
    path: PathBuf,
    file: File,
}

impl DebugLog {
    /// Makes one where temporary files belong, which others can neither read nor have made before.
    fn create() -> io::Result<Self> {
        // A process in the background leaves the working directory, so the path must be absolute.
        let path = std::path::absolute(std::env::temp_dir().join(name(draw()?)))?;
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| {
            io::Error::new(error.kind(), format!("can't make {}: {error}", path.display()))
        })?;
        Ok(Self { path, file })
    }

    /// Removes it where nothing was told.
    fn end(self) {
        if self.file.metadata().is_ok_and(|facts| facts.len() == 0) {
            let _stays_at_worst = fs::remove_file(&self.path);
        }
    }
}

fn name(random: u128) -> String {
    let letter = |place: u32| {
        let index = (random >> (place * 5)) as usize % LETTERS.len();
        LETTERS.get(index).map_or('x', |letter| char::from(*letter))
    };
    NAME.chars().chain((0..LENGTH).map(letter)).collect()
}

/// Closes standard error, which may be a pipe whose reader waits for its end, or a client's connection. With -d the
/// log goes to a file of its own, whose name is printed before, if `says_where`.
pub(super) fn leave_terminal(debug: bool, says_where: bool) -> Result<Option<DebugLog>, Error> {
    if !debug {
        let _ = open_nowhere().map(|null| rustix::stdio::dup2_stderr(&null));
        return Ok(None);
    }
    let log = DebugLog::create().map_err(|error| {
        Error::Host(format!(
            "can't create a log file for -d: {error}; with -D the log goes to standard \
             error"
        ))
    })?;
    if says_where {
        narrate(&format!("netserver: {} is the log\n", log.path.display()));
    }
    rustix::stdio::dup2_stderr(&log.file)
        .map_err(|error| Error::Host(format!("can't leave standard error: {error}")))?;
    Ok(Some(log))
}

/// Lets go of standard output, likewise.
pub(super) fn leave_output() {
    let _ = open_nowhere().map(|null| rustix::stdio::dup2_stdout(&null));
}

fn open_nowhere() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}

/// Serves, and tells meanwhile what happens, where that was asked for.
pub(super) fn serve_telling(
    debug: bool,
    log: Option<DebugLog>,
    serve: impl FnOnce(&Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    let (sink, events) = Sink::bounded(EVENTS_WAITING_MAX);
    let served = thread::scope(|scope| {
        let tell = move || {
            for event in events {
                if debug {
                    narrate(&render_event(&event));
                }
            }
        };
        thread::Builder::new()
            .spawn_scoped(scope, tell)
            .map_err(|error| Error::no_thread(&error))?;
        let served = serve(&sink);
        drop(sink);
        served
    });
    // Why it failed is still to be told.
    if let Some(log) = log.filter(|_| served.is_ok()) {
        log.end();
    }
    served
}

fn render_event(event: &Event) -> String {
    match event {
        Event::Note(text) => format!("netserver: {text}\n"),
        Event::Refused { client, why } => format!("netserver: {client}: {why}\n"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_end_with_six_letters_drawn_by_lot() {
        assert_eq!(name(0), "netserver.debug_aaaaaa");
        assert_eq!(name(u128::MAX), "netserver.debug_777777");
        assert_eq!(name(1 | 2 << 5), "netserver.debug_bcaaaa");
    }
}
