//! Ctrl-C, SIGTERM and SIGHUP: the first asks to stop, the second Ctrl-C ends the program at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

/// What ends the program at the second SIGINT.
static SHUTDOWN: OnceLock<SigId> = OnceLock::new();
/// Whether the next SIGINT ends the program, where this is no matter of the request to stop alone.
static ENDS_AT_ONCE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Lets signals set the request to stop. The order of registration matters: the second Ctrl-C is
/// known by the flag that the first has set.
pub(crate) fn stop_on_signals(cancel: &Cancel) -> io::Result<()> {
    let code = i32::from(exit::INTERRUPTED);
    let shutdown = flag::register_conditional_shutdown(SIGINT, code, cancel.flag())?;
    // The first one is the one that counts; there is no other.
    let _is_first = SHUTDOWN.set(shutdown);
    flag::register(SIGINT, cancel.flag())?;
    flag::register(SIGTERM, cancel.flag())?;
    if !ignores(SIGHUP) {
        flag::register(SIGHUP, cancel.flag())?;
    }
    Ok(())
}

/// From now on the second SIGINT ends the program only while [`end_at_once`] allows it.
pub(crate) fn may_end_at_once() -> io::Result<()> {
    let flag = ENDS_AT_ONCE.get_or_init(Arc::default);
    let _was_registered = SHUTDOWN.get().map(|shutdown| low_level::unregister(*shutdown));
    flag::register_conditional_shutdown(SIGINT, i32::from(exit::INTERRUPTED), Arc::clone(flag))?;
    flag::register(SIGINT, Arc::clone(flag)).map(|_| ())
}

/// Whether the next SIGINT ends the program. Where not, that holds until a SIGINT has come.
pub(crate) fn end_at_once(is_allowed: bool) {
    ENDS_AT_ONCE.get_or_init(Arc::default).store(is_allowed, Ordering::SeqCst);
}

/// How often a wait looks for a request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What does not block is done within this time after a request to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Does what may block for ever, as opening a FIFO and reading a terminal do, and no longer than until somebody asks
/// to stop: None then.
pub(crate) fn unless_stopped<T: Send + 'static>(
    cancel: &Cancel,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (sender, done) = channel();
    thread::Builder::new().spawn(move || {
        // It isn't awaited after a request to stop.
        let _unheard_at_worst = sender.send(work());
    })?;
    loop {
        let wait = if cancel.requested() { GRACE } else { LOOK_EVERY };
        match done.recv_timeout(wait) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Timeout) if wait == LOOK_EVERY => {}
            Err(_) => return Ok(None),
        }
    }
}

/// Has SIGALRM ask to stop, too, which ends a test of the original netperf at once: scripts send it.
pub(crate) fn stop_on_alarm(cancel: &Cancel) -> io::Result<()> {
    flag::register(SIGALRM, cancel.flag()).map(|_| ())
}

/// Whether the parent process made this program ignore a signal, as nohup(1) does. Such a signal stays ignored
/// (proc(5): SigIgn).
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
