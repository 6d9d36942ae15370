//! Which signal ended the program, as iperf3 tells it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_engine::event::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// The signals that end a test, with their names.
const NAMES: [(i32, &str); 3] =
    [(SIGINT, "Interrupt"), (SIGTERM, "Terminated"), (SIGHUP, "Hangup")];

/// Asks for the end when a signal comes, and remembers which; a second one ends the program at
/// once.
#[derive(Debug)]
pub(super) struct Signals {
    last: Arc<AtomicUsize>,
}

impl Signals {
    /// From now on.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn listen(cancel: &Cancel) -> io::Result<Self> {
        let last = Arc::new(AtomicUsize::new(0));
        for (signal, _) in NAMES {
            flag::register_conditional_shutdown(signal, 1, cancel.flag())?;
            flag::register_usize(signal, Arc::clone(&last), usize::try_from(signal).unwrap_or(0))?;
            flag::register(signal, cancel.flag())?;
        }
        Ok(Self { last })
    }

    /// `Interrupt(2)`; None where no signal came.
    pub(super) fn last(&self) -> Option<String> {
        let number = self.last.load(Ordering::Relaxed);
        let (_, name) = NAMES.iter().find(|(signal, _)| usize::try_from(*signal) == Ok(number))?;
        Some(format!("{name}({number})"))
    }
}
