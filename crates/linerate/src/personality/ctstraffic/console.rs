//! What TCP and UDP have in common: where lines go, and what is said of errors.

use linerate_personality::ctstraffic::options::{Options, Protocol};
use linerate_personality::ctstraffic::output::banner::{RunAddresses, render_banner};
use linerate_personality::ctstraffic::output::connection::Outcome;
use linerate_personality::ctstraffic::output::error;
use linerate_personality::ctstraffic::output::status::{HEAD_EVERY_ROWS, render_head};
use linerate_personality::ctstraffic::output::verbosity::Verbosity;
use linerate_wire::ctstraffic::Fault;

use super::document::{self, Document};
use super::files::Files;
use super::{NAME, say};
use crate::output::narrate;

/// The heads of rows, and what the columns mean.
pub(super) struct Heads {
    pub(super) legend: &'static str,
    pub(super) console: &'static str,
    pub(super) status: &'static str,
    pub(super) connections: &'static str,
}

/// Where the lines of a run go.
pub(super) struct Console<'a> {
    pub(super) options: &'a Options,
    pub(super) files: Files,
    pub(super) verbosity: Verbosity,
    /// In the place of the console's lines.
    pub(super) document: Option<Document>,
    heads: Heads,
    /// Rows of status on the console so far.
    rows: u64,
    /// Whether the run goes on: a run that was stopped prints nothing more.
    pub(super) goes_on: bool,
    /// Faults that were explained.
    explained: Vec<&'static str>,
}

impl<'a> Console<'a> {
    /// Writes what stands before everything else.
    pub(super) fn begin(
        options: &'a Options,
        files: Files,
        addresses: RunAddresses<'_>,
        heads: Heads,
    ) -> Self {
        let document = Document::of(options);
        let verbosity = Verbosity(options.verbosity());
        let (rows, goes_on, explained) = (0, true, Vec::new());
        let banner = render_banner(options, addresses);
        let above = heads.legend.to_owned() + &render_head(heads.console);
        if let Some(log) = &files.status {
            log.write(if log.is_csv { heads.status } else { &above });
        }
        if let Some(log) = &files.connections {
            log.write(if log.is_csv { heads.connections } else { &banner });
        }
        let console = Self { options, files, verbosity, document, heads, rows, goes_on, explained };
        console.say(&banner);
        if console.verbosity.shows_status() {
            console.say(&above);
        }
        console
    }

    /// Writes to the console, where no document takes its place.
    pub(super) fn say(&self, text: &str) {
        if self.document.is_none() {
            say(text);
        }
    }

    /// Whether anybody reads of single connections.
    pub(super) fn tells_connections(&self) -> bool {
        self.verbosity.shows_connections() || self.files.connections.is_some()
    }

    /// A line of a connection, and its row of csv where it is over.
    pub(super) fn tell_connection(&self, line: &str, row: Option<&str>) {
        if self.verbosity.shows_connections() {
            self.say(&format!("{line}\n"));
        }
        match (&self.files.connections, row) {
            (Some(log), Some(row)) if log.is_csv => log.write(row),
            (Some(log), _) if !log.is_csv => log.write(line),
            _ => {}
        }
    }

    /// A row of status.
    pub(super) fn tell_status(&mut self, row: &str, csv_row: &str) {
        if self.verbosity.shows_status() && self.goes_on {
            if self.rows > 0 && self.rows.is_multiple_of(HEAD_EVERY_ROWS) {
                self.say(&render_head(self.heads.console));
            }
            self.say(&format!("{row}\n"));
            self.rows += 1;
        }
        if let Some(log) = &self.files.status {
            log.write(if log.is_csv { csv_row } else { row });
        }
    }

    /// Data that is wrong.
    pub(super) fn tell_wrong_data(&self, time_ms: u64, text: &str) {
        if self.verbosity.shows_errors() {
            self.say(&format!("{text}\n"));
        }
        self.log_error(&error::timed(time_ms, text));
    }

    /// Why a connection failed. `call` is what failed where the system reports an error.
    pub(super) fn tell_fault(&mut self, time_ms: u64, fault: &Fault, call: &str) {
        let text = match Outcome::of(Some(*fault)) {
            Outcome::System(system) => error::failed_call(call, &system),
            _ => error::aborted(fault.protocol_error().unwrap_or_default()),
        };
        self.tell_error(time_ms, &text);
        // Once, since all connections have the same options.
        let is_udp = self.options.run.protocol == Protocol::Udp;
        let hint = fault.hint(is_udp).filter(|hint| !self.explained.contains(hint));
        if let Some(hint) = hint.filter(|_| self.verbosity.shows_errors()) {
            self.explained.push(hint);
            narrate(&format!("{NAME}: {hint}\n"));
        }
    }

    /// A line of an error, to standard error and to its file.
    pub(super) fn tell_error(&self, time_ms: u64, text: &str) {
        let text = error::timed(time_ms, text);
        self.log_error(&text);
        if self.verbosity.shows_errors() {
            narrate(&format!("{text}\n"));
        }
    }

    fn log_error(&self, line: &str) {
        if let Some(log) = &self.files.errors {
            log.write(line);
        }
    }

    pub(super) fn tell_time_limit(&self) {
        let limit_ms = self.options.run.time_limit_ms.unwrap_or_default();
        self.say(&error::time_limit_reached(limit_ms));
    }

    pub(super) fn tell_pause(&self) {
        let pause_ms = self.options.run.pause_at_end_ms.unwrap_or_default();
        self.say(&error::pausing(pause_ms));
    }

    /// The run was asked to stop: later events aren't printed.
    pub(super) fn stop(&mut self) {
        if std::mem::replace(&mut self.goes_on, false) {
            self.say(error::INTERRUPTED);
        }
    }

    /// A sentence for whoever runs this.
    pub(super) fn tell_note(&self, note: &str) {
        narrate(&format!("{NAME}: {note}\n"));
    }

    /// Writes what stands at the end. `lost` events were counted and have no line.
    pub(super) fn conclude(&self, summary: &str, lost: u64) {
        if self.document.as_ref().is_some_and(Document::is_cut) {
            self.tell_note(document::CUT);
        }
        if lost > 0 {
            narrate(&format!(
                "{NAME}: {lost} events have no line, as the output was too slow for them; the \
                 totals count them\n"
            ));
        }
        self.say(summary);
        if let Some(log) = self.files.connections.as_ref().filter(|log| !log.is_csv) {
            log.write(summary);
        }
    }
}
