//! netperf 2.7: its command line and its output. What differs, and why, is told in
//! `docs/compat/netperf.md`.

mod banner;
mod confidence;
mod debug_log;
mod document;
mod figures;
mod interim;
mod latency;
mod planning;
mod random;
mod reading;
mod recording;
mod release;
mod resolve;
mod run;
mod selection;
mod selector;
mod server;
mod table;
mod tcp_dump;
#[cfg(test)]
mod tests;
mod trouble;
mod watch;

use linerate_measure::plan::Family;

pub(super) use run::perform;
pub(super) use server::perform as perform_server;

/// The original's exit code -1.
const EXIT_FAILED: u8 = 255;

/// Whether a command line of netperf is something to do; else what is said, on either output.
///
/// # Errors
/// What is said of a command line that makes no sense, or asks for help.
pub fn check_command_line(words: &[String]) -> Result<(), String> {
    match reading::read("netperf", words) {
        reading::Read::Work(..) => Ok(()),
        reading::Read::Said(said) => Err(said.stdout + &said.stderr),
    }
}

/// How the original names a family.
fn family_name(family: Option<Family>) -> &'static str {
    match family {
        None => "AF_UNSPEC",
        Some(Family::Ipv4) => "AF_INET",
        Some(Family::Ipv6) => "AF_INET6",
    }
}
