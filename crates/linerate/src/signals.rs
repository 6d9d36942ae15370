//! Ctrl-C, SIGTERM and SIGHUP: the first asks to stop, the second Ctrl-C ends the program at once.

use std::io;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Lets signals set the request to stop. The order of registration matters: the second Ctrl-C is
/// known by the flag that the first has set.
pub(crate) fn stop_on_signals(cancel: &Cancel) -> io::Result<()> {
    flag::register_conditional_shutdown(SIGINT, i32::from(exit::INTERRUPTED), cancel.flag())?;
    flag::register(SIGINT, cancel.flag())?;
    flag::register(SIGTERM, cancel.flag())?;
    if !ignores(SIGHUP) {
        flag::register(SIGHUP, cancel.flag())?;
    }
    Ok(())
}

/// Whether whoever started this program had it ignore a signal, as nohup(1) does: that stays so (proc(5): SigIgn).
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
