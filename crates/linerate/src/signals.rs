//! Ctrl-C and SIGTERM: the first asks to stop, the second Ctrl-C ends the program at once.

use std::io;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Lets signals set the request to stop. The order of registration matters: the second Ctrl-C is
/// known by the flag that the first has set.
pub(crate) fn stop_on_signals(cancel: &Cancel) -> io::Result<()> {
    flag::register_conditional_shutdown(SIGINT, i32::from(exit::INTERRUPTED), cancel.flag())?;
    flag::register(SIGINT, cancel.flag())?;
    flag::register(SIGTERM, cancel.flag())?;
    Ok(())
}
