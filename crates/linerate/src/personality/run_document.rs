//! The run document of another tool's test, and its records as they happen.
//!
//! Three environment variables ask for them, since the originals' command lines have no room for more:
//!
//! * [`DOCUMENT`] names a file, which appears whole when the test is over; or a directory, where each test leaves
//!   a file `RUN_ID.json`, at a server `RUN_ID.server.json`: both ends of a test may have the same run id.
//! * [`RECORDS`] names a file, a FIFO or a device, or as `fd:N` a descriptor that the program was started with.
//!   It takes the records of [`linerate_measure::record`] as they happen: `started`, `sample`, `finished`, `error`.
//!
//! * `LINERATE_STORE` names the store that keeps the runs ([`crate::store`]).
//!
//! A fourth, `LINERATE_VERDICT`, asks for a line on standard error where a run was bad ([`super::verdict_line`]).
//!
//! How a personality uses this:
//!
//! 1. `Recorder::of_environment`, once, before the test begins. An error is a sentence: say it on standard
//!    error, and end with the original's code for a failure.
//! 2. `Recorder::begin` for each test, with the nearest native [`Plan`]; at a server `ServerRecorder`. It gives a
//!    [`RunRecord`]. All its functions cost next to nothing where no variable is set.
//! 3. What happens goes to the record: [`RunRecord::draft`] for what becomes known (plan, options, run id,
//!    environment, notes), [`RunRecord::start`] when the load begins, [`RunRecord::record_sample`] for each interval
//!    of either end, [`Draft::record_report`] for what an end counted in all. Of a peer only what it told is known:
//!    begin its report with [`EndReport::nothing`](linerate_measure::EndReport::nothing).
//! 4. [`RunRecord::finish`] with the outcome and the original's exit code, also when the test failed, was refused
//!    or was interrupted. A record that is dropped without it leaves a document that says `failed`.
//!
//! Keep secrets out of the options: a passphrase on the command line, for one.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_engine::event::{Cancel, Event};
use linerate_engine::{host_facts, inherited_file, random_run_id};
use linerate_measure::run::Draft;
use linerate_measure::{Dialect, DialectOptions, Outcome, Plan, Role, Run, Sample};
use linerate_personality::getopt::{Flag, Lexeme, Lexer};
use serde_json::Value;

use super::stdout;
use super::verdict_line::{VerdictLine, tell_verdict};
use crate::output::{
    Destination, NdjsonPrinter, Printer, Unwritten, narrate, render_json, render_page,
};
use crate::signals::{GRACE, unless_stopped};
use crate::store::{self, Keeper};

/// Names the file or directory of run documents.
pub const DOCUMENT: &str = "LINERATE_RUN_DOCUMENT";
/// Names where records go.
pub const RECORDS: &str = "LINERATE_RUN_RECORDS";

/// Records that may wait for a slow reader; more are dropped and counted.
const RECORDS_WAITING_MAX: usize = 4096;
/// A server waits so long for room for a test's last record. Its other tests wait with it.
const SERVER_READER_LIMIT: Duration = Duration::from_secs(5);
/// How often a wait for a reader looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Flows in samples that a document keeps: some 200 MB. A test that has more loses the later samples.
const FLOW_SAMPLES_MAX: usize = 1_000_000;

/// Where the run documents and records of this process go.
#[derive(Debug, Default)]
pub struct RunOutput {
    document: Option<PathBuf>,
    records: Option<Records>,
    store: Option<PathBuf>,
    verdict_line: VerdictLine,
    /// A request to stop.
    cancel: Cancel,
}

impl RunOutput {
    /// What the environment asks for, of a client or of a server. Paths are tried now. A request to stop ends the
    /// wait for the reader of a FIFO, now and later.
    ///
    /// # Errors
    /// A sentence for the user, with the variable and the path.
    pub fn of_environment(role: Role, cancel: &Cancel) -> Result<Arc<Self>, String> {
        let store = try_store(cancel)?;
        let asked = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let output = Self::open(asked(DOCUMENT), asked(RECORDS), role, cancel)?;
        let verdict_line = VerdictLine::of_environment()?;
        Ok(Arc::new(Self { store, verdict_line, ..output }))
    }

    fn open(
        document: Option<PathBuf>,
        records: Option<PathBuf>,
        role: Role,
        cancel: &Cancel,
    ) -> Result<Self, String> {
        let document = document.map(|path| try_document(&path, role, cancel)).transpose()?;
        let records = records.map(|path| Records::open(path, cancel)).transpose()?;
        let cancel = cancel.clone();
        Ok(Self { document, records, cancel, ..Self::default() })
    }

    /// Whether a document, records or a stored run are asked for.
    pub fn is_wanted(&self) -> bool {
        self.document.is_some() || self.records.is_some() || self.store.is_some()
    }

    /// Whether runs are judged: for what is asked for, or for the line on standard error of an end that has one test,
    /// or many.
    pub fn is_judged(&self, has_one_test: bool) -> bool {
        self.is_wanted() || self.verdict_line.is_told(has_one_test)
    }

    /// The record of a test that begins at an end that has one test, or many.
    pub fn begin(
        self: &Arc<Self>,
        dialect: Dialect,
        role: Role,
        plan: Plan,
        has_one_test: bool,
    ) -> RunRecord {
        let mut draft = Draft::new(random_run_id(), plan);
        draft.dialect = dialect;
        draft.written_by = role;
        if self.is_wanted() {
            let host = host_facts();
            match role {
                Role::Client => draft.environment.client = host,
                Role::Server => draft.environment.server = Some(host),
            }
        }
        RunRecord {
            output: Arc::clone(self),
            draft: Some(draft),
            tells_verdict: self.verdict_line.is_told(has_one_test),
            printer: NdjsonPrinter::default(),
            kept: 0,
            dropped: 0,
        }
    }

    /// Writes the document of a run that is over.
    fn write(&self, run: &Run) {
        if let Some(path) = &self.store {
            // Opened for each run: a server may have become another process since it began.
            let kept = Keeper::open(path).and_then(|keeper| keeper.keep(run, stdout::tool()));
            kept.unwrap_or_else(|error| complain(store::VARIABLE, &error.to_string()));
        }
        let Some(path) = &self.document else { return };
        let path = match path.is_dir() {
            true => path.join(document_name(run)),
            false => path.clone(),
        };
        let is_page = path.extension().is_some_and(|ending| ending == "html");
        let text = match is_page {
            true => render_page(vec![run.clone()], &path),
            false => render_json(run) + "\n",
        };
        let written = if is_file_or_nothing(&path) {
            write_document(&path, &text)
        } else {
            // A FIFO may have no reader, or one that has stopped.
            unless_stopped(&self.cancel, move || write_document(&path, &text))
                .unwrap_or_else(|error| Some(Err(Unwritten::Failed(error.to_string()))))
                .unwrap_or_else(|| {
                    Err(Unwritten::Failed("interrupted before it was read".to_owned()))
                })
        };
        if let Err(Unwritten::Failed(why)) = written {
            complain(DOCUMENT, &why);
        }
    }
}

/// The name of a document in a directory, which both ends of a test may share.
fn document_name(run: &Run) -> String {
    let end = if run.written_by == Role::Server { ".server" } else { "" };
    format!("{}{end}.json", run.run_id)
}

fn write_document(path: &Path, text: &str) -> Result<(), Unwritten> {
    let mut destination = Destination::open(Some(path)).map_err(Unwritten::Failed)?;
    destination.put(text)?;
    destination.commit().map_err(Unwritten::Failed)
}

/// Whether a write to the path waits for no reader.
fn is_file_or_nothing(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |facts| facts.is_file())
}

/// The path, made absolute, once a document can be written there.
fn try_document(path: &Path, role: Role, cancel: &Cancel) -> Result<PathBuf, String> {
    let wrong = |why: &str| format!("{DOCUMENT}: {why}");
    let path = std::path::absolute(path).map_err(|error| wrong(&error.to_string()))?;
    let tried = if path.is_dir() { path.join("run.json") } else { path.clone() };
    // A device or FIFO has its reader when the test is over.
    if is_file_or_nothing(&tried) {
        let open = move || Destination::open(Some(&tried)).map(drop);
        unless_stopped(cancel, open)
            .map_err(|error| wrong(&error.to_string()))?
            .unwrap_or_else(|| Err("interrupted".to_owned()))
            .map_err(|why| wrong(&why))?;
    } else if role == Role::Server {
        let path = path.display();
        return Err(wrong(&format!(
            "{path} is a FIFO or a device: give a server a directory or a file"
        )));
    }
    Ok(path)
}

/// The store that the environment asks for, once it can be opened.
fn try_store(cancel: &Cancel) -> Result<Option<PathBuf>, String> {
    let wrong = |why: String| format!("{}: {why}", store::VARIABLE);
    let Some(path) = store::asked(None).map_err(wrong)? else { return Ok(None) };
    let path = std::path::absolute(path).map_err(|error| wrong(error.to_string()))?;
    let tried = path.clone();
    unless_stopped(cancel, move || Keeper::open(&tried).map(drop))
        .map_err(|error| wrong(error.to_string()))?
        .unwrap_or(Ok(()))
        .map_err(|error| wrong(error.to_string()))?;
    Ok(Some(path))
}

/// Tells on standard error what couldn't be written. The test goes on, and the exit code stays.
fn complain(variable: &str, why: &str) {
    narrate(&format!("{}: {variable}: {why}\n", stdout::tool()));
}

/// Lines on their way to the reader of records, written by a thread of their own.
#[derive(Debug)]
struct Records {
    sender: Option<SyncSender<String>>,
    writing: Option<JoinHandle<()>>,
    /// A request to stop.
    cancel: Cancel,
}

impl Records {
    fn open(path: PathBuf, cancel: &Cancel) -> Result<Self, String> {
        let wrong = |why: &str| format!("{RECORDS}: {why}");
        let opened = unless_stopped(cancel, move || open_records(&path));
        let destination = opened
            .map_err(|error| wrong(&error.to_string()))?
            .unwrap_or_else(|| Err("interrupted before there was a reader".to_owned()))
            .map_err(|why| wrong(&why))?;
        let (sender, lines) = sync_channel(RECORDS_WAITING_MAX);
        let write = move || write_lines(destination, &lines);
        let writing = thread::Builder::new().name("records".to_owned()).spawn(write);
        let writing = writing.map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { sender: Some(sender), writing: Some(writing), cancel: cancel.clone() })
    }

    /// Hands a line over where there is room for it; whether it was lost.
    fn offer(&self, line: String) -> bool {
        let sent = self.sender.as_ref().map(|sender| sender.try_send(line));
        matches!(sent, Some(Err(TrySendError::Full(_))))
    }

    /// Hands over a line that mustn't be lost, as soon as there is room for it; or tells that it is lost.
    fn deliver(&self, mut line: String, limit: Option<Duration>) {
        let began = Instant::now();
        // A writer that couldn't go on has told why.
        while let Some(Err(TrySendError::Full(unsent))) =
            self.sender.as_ref().map(|sender| sender.try_send(line))
        {
            line = unsent;
            let is_late = limit.is_some_and(|limit| began.elapsed() > limit);
            if is_late || self.cancel.requested() && began.elapsed() > GRACE {
                return complain(
                    RECORDS,
                    "the reader has stopped: the record of the test's end is lost",
                );
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Records {
    /// Waits until all is written, or until a request to stop finds no reader.
    fn drop(&mut self) {
        self.sender = None;
        let Some(writing) = self.writing.take() else { return };
        let began = Instant::now();
        while !writing.is_finished() {
            if self.cancel.requested() && began.elapsed() > GRACE {
                return complain(RECORDS, "the reader has stopped: its last records are lost");
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn open_records(path: &Path) -> Result<Destination, String> {
    let failed = |error| format!("can't write records to {}: {error}", path.display());
    let inherited = path.to_str().and_then(|text| text.strip_prefix("fd:"));
    let file = match inherited.map(str::parse::<u16>) {
        Some(Ok(number)) => inherited_file(number.into()).map_err(failed)?,
        Some(Err(_)) => {
            return Err(format!("'{}' is no descriptor: give one, such as fd:3", path.display()));
        }
        None => {
            OpenOptions::new().write(true).create(true).truncate(true).open(path).map_err(failed)?
        }
    };
    Ok(Destination::Device { path: path.to_owned(), file })
}

fn write_lines(mut destination: Destination, lines: &Receiver<String>) {
    for line in lines {
        match destination.put(&line) {
            Ok(()) => {}
            Err(Unwritten::ReaderGone) => return,
            Err(Unwritten::Failed(why)) => return complain(RECORDS, &why),
        }
    }
}

/// What was asked in the original's words. A value is the option's text, or true where it takes none; what is given
/// several times has its last value.
pub fn options_of<M>(name: &str, words: &[String], flags: &[Flag<M>]) -> DialectOptions {
    let mut by_name = BTreeMap::new();
    for lexeme in Lexer::new(flags, words).flatten() {
        let Lexeme::Flag(flag, value) = lexeme else { continue };
        let letter = flag.short.map(String::from).unwrap_or_default();
        let called = if flag.long.is_empty() { letter } else { flag.long.to_owned() };
        by_name.insert(called, value.map_or(Value::Bool(true), Value::String));
    }
    let command_line = std::iter::once(name.to_owned()).chain(words.iter().cloned()).collect();
    DialectOptions { command_line, by_name, ..DialectOptions::default() }
}

/// What is known of a test so far, on its way to a document and to records.
pub struct RunRecord {
    output: Arc<RunOutput>,
    /// None once it is finished.
    draft: Option<Draft>,
    /// Whether a bad run is told on standard error.
    tells_verdict: bool,
    printer: NdjsonPrinter,
    /// Flows in the samples kept.
    kept: usize,
    /// Records that came faster than they were read.
    dropped: u64,
}

impl RunRecord {
    /// Whether a document or records are asked for.
    pub fn is_wanted(&self) -> bool {
        self.output.is_wanted()
    }

    /// Whether what happens goes to the draft.
    pub fn is_judged(&self) -> bool {
        self.is_wanted() || self.tells_verdict
    }

    /// What becomes known.
    pub fn draft(&mut self) -> Option<&mut Draft> {
        let is_judged = self.is_judged();
        self.draft.as_mut().filter(|_| is_judged)
    }

    /// The load begins, at this time (UTC, nanoseconds since 1970). The draft's plan and run id stand by now.
    pub fn start(&mut self, utc_ns: i64) {
        let Some(draft) = self.draft() else { return };
        draft.environment.started_utc_ns = Some(utc_ns);
        let (run_id, plan) = (draft.run_id.clone(), Box::new(draft.plan.clone()));
        self.offer(&Event::Started { run_id, plan, utc_ns });
    }

    /// An interval of an end is over.
    pub fn record_sample(&mut self, sample: &Sample) {
        if !self.is_judged() {
            return;
        }
        self.offer(&Event::Sample(Box::new(sample.clone())));
        let flows = sample.flows.len().max(1);
        let has_room = self.kept.saturating_add(flows) <= FLOW_SAMPLES_MAX;
        let Some(draft) = self.draft.as_mut() else { return };
        if has_room {
            self.kept += flows;
            draft.samples.push(sample.clone());
        } else if self.kept != usize::MAX {
            // A document ends early, but has no gap.
            self.kept = usize::MAX;
            let end_s = sample.from_ns as f64 / 1e9;
            draft.notes.push(format!("the document has no samples after {end_s:.0} s"));
        }
    }

    /// The test is over. `exit_code` is the original's.
    pub fn finish(mut self, outcome: Outcome, exit_code: u8, message: Option<String>) {
        self.conclude(outcome, exit_code, message);
    }

    fn conclude(&mut self, outcome: Outcome, exit_code: u8, message: Option<String>) {
        let is_judged = self.is_judged();
        let Some(draft) = self.draft.take().filter(|_| is_judged) else { return };
        let run = draft.into_run(outcome, exit_code, message);
        if self.tells_verdict {
            tell_verdict(&run);
        }
        if let Some(records) = &self.output.records {
            let limit = (run.written_by == Role::Server).then_some(SERVER_READER_LIMIT);
            records.deliver(self.printer.render_run(&run, self.dropped), limit);
        }
        self.output.write(&run);
    }

    fn offer(&mut self, event: &Event) {
        if let Some(records) = &self.output.records {
            let line = self.printer.render_event(event);
            self.dropped += u64::from(records.offer(line));
        }
    }
}

impl Drop for RunRecord {
    fn drop(&mut self) {
        let message = "the test ended without a result; standard error says why".to_owned();
        self.conclude(Outcome::Failed, 1, Some(message));
    }
}

#[cfg(test)]
mod tests;
