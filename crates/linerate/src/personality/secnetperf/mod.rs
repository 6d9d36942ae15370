//! MsQuic's `secnetperf`: its options, its output, its exit codes.
//!
//! docs/compat/secnetperf.md says what is the same and what isn't. [`flags`] is the table of options,
//! [`options`] what they mean, [`client`] and [`server`] map that to the engine's plans, [`printer`] and
//! [`latency`] make the original's lines.

mod client;
mod document;
pub mod flags;
pub mod latency;
mod options;
mod printer;
mod resolve;
mod server;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use linerate_engine::event::Cancel;
use linerate_measure::plan::limits::QUIC_MTU_BYTES;
use linerate_measure::run::exit;

use self::options::{ClientOptions, Refusal, ServerOptions, SharedOptions};
use super::stdout::{self, say};
use crate::output::narrate;
use crate::signals::stop_on_signals;
use linerate_personality::colon_options::ColonOptions;

/// The original's statuses on Linux: errno numbers, which the process ends with.
mod status {
    pub(super) const OK: u8 = 0;
    pub(super) const FAILED: u8 = 5;
    pub(super) const INVALID: u8 = 22;
    pub(super) const UNSUPPORTED: u8 = 95;
    pub(super) const IN_USE: u8 = 98;
    pub(super) const REFUSED: u8 = 111;
}

/// Does what a command line of `secnetperf` says; its exit code.
pub(super) fn perform(_name: &str, words: &[String]) -> u8 {
    let options = ColonOptions::new(words);
    let speech = Speech::of(options, words);
    if options.value_of_first(&["driverName", "driverNamePriv"]).is_some() {
        let text = "Kernel mode main not supported on this platform".to_owned();
        let (status, points_to_help) = (status::UNSUPPORTED, false);
        speech.refuse(&Refusal { status, text, points_to_help });
        return status;
    }
    let cancel = Cancel::default();
    if let Err(error) = stop_on_signals(&cancel) {
        narrate(&format!("secnetperf: can't catch signals: {error}\n"));
    }
    let status = match begin(options, words, &speech, &cancel) {
        Ok(status) => status,
        Err(refusal) => {
            speech.refuse(&refusal);
            refusal.status
        }
    };
    let status = if status == status::OK && stdout::is_lost() { status::FAILED } else { status };
    if cancel.requested() {
        // As of a program that the signal ended.
        return exit::INTERRUPTED;
    }
    if !speech.bare && !speech.document {
        say(&format!("App Main returning status {status}\n"));
    }
    if status != status::OK && options.flag("abortOnFailure") {
        std::process::abort();
    }
    status
}

/// The longest UDP payload that a client's QUIC packets may have.
fn parse_mtu_limit(text: &str) -> Result<u16, Refusal> {
    let bounds = QUIC_MTU_BYTES;
    let bytes = text.parse().ok().filter(|bytes| bounds.contains(&u64::from(*bytes)));
    bytes.ok_or_else(|| {
        let (least, most) = (bounds.start(), bounds.end());
        let text =
            format!("'--mtu-limit' takes {least} to {most} bytes of UDP payload, not '{text}'!");
        Refusal::helping(text)
    })
}

fn begin(
    options: ColonOptions<'_>,
    words: &[String],
    speech: &Speech,
    cancel: &Cancel,
) -> Result<u8, Refusal> {
    // The original has `-help` alone, and takes these two for no option of its own.
    let is_habit = words.iter().any(|word| word == "--help" || word == "-h");
    if is_habit || options.flag("?") || options.flag("help") {
        say(&flags::render_help());
        return Ok(status::INVALID);
    }
    let processors = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let target = options::target(options);
    let mut shared = SharedOptions::parse(options)?;
    shared.quic.draft_29 = words.iter().any(|word| word == "--draft-29");
    let told = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
    shared.logs = told("--qlog:").map(PathBuf::from);
    shared.quic.mtu_most_bytes = told("--mtu-limit:").map(parse_mtu_limit).transpose()?;
    for note in flags::notes(options, target.is_some()) {
        narrate(&format!("secnetperf: {note}\n"));
    }
    for warning in &shared.warnings {
        speech.say(&format!("{warning}\n"));
    }
    if let Some(limit) = shared.watchdog {
        watch(limit);
    }
    match target {
        Some(target) => {
            let client = ClientOptions::parse(options, target, processors)?;
            client::run(&client, &shared, processors, speech, cancel)
        }
        None => {
            let server = ServerOptions::parse(options, processors)?;
            for warning in &server.warnings {
                speech.say(&format!("{warning}\n"));
            }
            let stop = words.iter().any(|word| word == "--remote-stop");
            server::run(&server, &shared, processors, stop, speech, cancel)
        }
    }
}

/// Ends the program the hard way after so long, as asked.
fn watch(limit: Duration) {
    let watching = thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        thread::sleep(limit);
        narrate("secnetperf: the watchdog's time is up\n");
        std::process::abort();
    });
    if let Err(error) = watching {
        narrate(&format!("secnetperf: can't start the watchdog: {error}\n"));
    }
}

/// What is said around the results.
struct Speech {
    /// Without the first and the last line.
    bare: bool,
    /// JSON, and nothing else: one document,
    document: bool,
    /// or one in a line of its own after each event.
    lines: bool,
}

impl Speech {
    fn of(options: ColonOptions<'_>, words: &[String]) -> Self {
        let has = |flag: &str| words.iter().any(|word| word == flag);
        let lines = has("--ndjson");
        Self { bare: options.flag("trimout"), document: lines || has("--json"), lines }
    }

    /// Says why it goes no further: on standard error where a document is wanted.
    fn refuse(&self, refusal: &Refusal) {
        let help = "\nPlease run 'secnetperf -help' for command line options.\n";
        let help = if refusal.points_to_help { help } else { "" };
        if !self.document {
            return say(&format!("{}\n{help}", refusal.text));
        }
        narrate(&format!("secnetperf: {}\n{help}", refusal.text));
        if self.lines {
            say(&document::render_refusal(refusal));
        }
    }

    /// Says something that isn't part of a document.
    fn say(&self, text: &str) {
        if !self.document {
            say(text);
        }
    }

    fn started(&self) {
        if !self.bare {
            self.say("Started!\n\n");
        }
    }
}
