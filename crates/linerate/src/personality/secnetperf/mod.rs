//! MsQuic's `secnetperf`: its options, its output, its exit codes.
//!
//! docs/compat/secnetperf.md says what is the same and what isn't. The crate `linerate-personality` has
//! the table of options and what they mean; [`client`] and [`server`] map that to the engine's plans,
//! [`printer`] and [`latency`] make the original's lines.

mod client;
mod document;
pub mod latency;
mod plan;
mod printer;
mod record;
mod resolve;
mod server;
mod server_record;

use std::path::Path;
use std::thread;
use std::time::Duration;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use linerate_measure::{Dialect, Role};
use linerate_personality::colon_options::ColonOptions;
use linerate_personality::secnetperf::options::{
    ClientOptions, Refusal, ServerOptions, SharedOptions, target,
};
use linerate_personality::secnetperf::{flags, status};

use self::server_record::PerfServer;
use super::recorder::{Recorder, ServerRecorder, command_line};
use super::stdout::{self, say};
use crate::output::narrate;
use crate::signals::stop_on_signals;

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
    let status = stdout::exit_code(status, status::FAILED);
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
    let named = target(options);
    let mut shared = SharedOptions::parse(options, |processor| {
        Path::new(&format!("/sys/devices/system/cpu/cpu{processor}")).exists()
    })?;
    shared.take_ours(words)?;
    for note in flags::notes(options, named.is_some()) {
        narrate(&format!("secnetperf: {note}\n"));
    }
    for warning in &shared.warnings {
        speech.say(&format!("{warning}\n"));
    }
    if let Some(limit) = shared.watchdog {
        watch(limit);
    }
    match named {
        Some(target) => {
            let client = ClientOptions::parse(options, target, processors)?;
            let Some(recorder) = recorder(Role::Client, words, cancel) else {
                return Ok(status::FAILED);
            };
            let mut record = recorder.begin(record::plan(&client));
            let ended = client::run(&client, &shared, processors, speech, cancel, &mut record);
            record::finish(record, &ended, cancel);
            ended
        }
        None => {
            let server = ServerOptions::parse(options, processors)?;
            for warning in &server.warnings {
                speech.say(&format!("{warning}\n"));
            }
            let stop = words.iter().any(|word| word == "--remote-stop");
            let Some(recorder) = recorder(Role::Server, words, cancel) else {
                return Ok(status::FAILED);
            };
            let observe = ServerRecorder::new(recorder, PerfServer).observer();
            server::run(&server, &shared, processors, stop, speech, cancel, observe)
        }
    }
}

/// What tests are recorded with; `None` where it can't be, which is told.
fn recorder(role: Role, words: &[String], cancel: &Cancel) -> Option<Recorder> {
    let typed = command_line("secnetperf", words);
    Recorder::of_environment(Dialect::Perf, role, typed, cancel)
        .map_err(|sentence| narrate(&format!("secnetperf: {sentence}\n")))
        .ok()
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
