//! What a run looks like: one printer for each format, all readers of the same events and runs.
//!
//! A [`Printer`] only makes text. The [`Reporter`] brings the text to where it goes, keeps
//! narration on standard error apart, and deals with readers that have gone and disks that are
//! full.

mod comparison;
mod csv;
mod destination;
mod ends;
mod foot_line;
mod full_screen;
mod hunt;
mod json;
mod link;
mod live;
mod loaded;
mod narration;
mod ndjson;
mod own_machine;
mod page;
mod pairing;
mod proxy;
mod repeats;
mod results;
mod server_line;
mod server_log;
mod status_line;
mod table;
mod text;

pub use csv::CsvPrinter;
pub use destination::{Destination, Unwritten};
pub(crate) use foot_line::FootLine;
pub(crate) use full_screen::FullScreen;
pub use json::JsonPrinter;
pub use narration::Narration;
pub use ndjson::NdjsonPrinter;
pub use own_machine::OwnMachineTable;
pub use server_log::ServerLog;
pub use status_line::{StatusLine, Turn};
pub use table::Table;
pub use text::TextPrinter;

pub(crate) use comparison::{render_compared_run, render_comparison, render_comparison_records};
pub(crate) use hunt::{render_hunt_begin, render_trial, render_trial_head};
pub(crate) use json::render_json;
pub(crate) use link::{render_link_begin, render_link_report};
pub(crate) use loaded::{render_loaded, render_phase_begin};
pub(crate) use ndjson::render_error as render_error_record;
#[cfg(test)]
pub(crate) use page::run_of_nothing;
pub(crate) use page::{
    Course, Document, KeptPair, MatrixDocument, file_name, listed_run, matrix_page, ongoing_page,
    page_saying, render_page,
};
pub(crate) use proxy::{
    ProxyLine, ProxyWords, UntoldEvents, render_proxy_begin, render_proxy_event,
    render_proxy_summary,
};
pub(crate) use results::{
    csv_head, csv_row_head, push_shown, render_details, render_difference, render_document,
    render_run_list, render_stored,
};
pub(crate) use server_line::ServerLine;
pub(crate) use text::render_inquiry;

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use linerate_engine::event::{Cancel, Event};
use linerate_measure::repeats::Repeats;
use linerate_measure::{Plan, Run};
use rustix::termios::tcgetwinsize;

use crate::args::OutputArgs;
use full_screen::Held;

/// One format of results.
pub trait Printer: Send {
    /// What an event adds to the result; empty: nothing.
    fn render_event(&mut self, event: &Event) -> String;

    /// What a run adds to the result. `dropped_events` were never rendered because they came
    /// faster than they could be printed.
    fn render_run(&mut self, run: &Run, dropped_events: u64) -> String;

    /// What several runs of one plan come to, after the last of them.
    fn render_repeats(&mut self, repeats: &Repeats) -> String;

    /// What stands at the end, after all runs.
    fn render_end(&mut self) -> String;
}

/// The runs that a reporter will get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// So many, each of a plan of its own.
    Runs(usize),
    /// Runs of one plan, and what they come to.
    Repeats,
}

/// Whether text has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// No.
    Plain,
    /// Yes, by ANSI escapes (ECMA-48, SGR).
    Coloured,
}

impl Style {
    /// Colours only where a terminal reads them and `NO_COLOR` (no-color.org) is unset or empty.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if stream.is_terminal() && !unwanted && !dumb { Self::Coloured } else { Self::Plain }
    }

    /// For headings and results.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// For what must not be overlooked.
    pub fn warning(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// The columns of a terminal, or as many as most have.
pub(crate) fn columns_of(stream: &impl AsFd) -> usize {
    const USUAL: usize = 80;
    let told = tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    if told == 0 { USUAL } else { told }
}

/// How often a line on the screen that shows progress is looked after.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Brings events and runs to the user.
pub struct Reporter {
    printer: Box<dyn Printer>,
    destination: Destination,
    narration: Narration,
    status_line: Option<StatusLine>,
    full_screen: Option<FullScreen>,
    /// Whether the result itself moves something on the screen.
    on_screen: bool,
    /// Why no more of the result is written.
    trouble: Option<Unwritten>,
    cancel: Cancel,
}

impl Reporter {
    /// The reporter that the flags ask for, for these runs.
    pub fn for_flags(
        args: &OutputArgs,
        expected: Expected,
        destination: Destination,
        cancel: &Cancel,
    ) -> Self {
        let to_file = args.output.is_some();
        let style = if to_file { Style::Plain } else { Style::of(&io::stdout()) };
        let printer: Box<dyn Printer> = if args.json {
            Box::new(JsonPrinter::for_runs(expected))
        } else if args.ndjson {
            Box::new(NdjsonPrinter::default())
        } else if args.csv {
            Box::new(CsvPrinter::default())
        } else {
            let columns = columns_of(&io::stdout());
            let text = TextPrinter::for_runs(style, expected, !args.quiet && !to_file, to_file);
            Box::new(text.verbose(args.verbose).with_columns(columns))
        };
        let text_to_file = to_file && !(args.json || args.ndjson || args.csv);
        let narration = Narration::new(args.quiet, text_to_file);
        let mut reporter = Self::new(printer, destination, narration, cancel);
        reporter.status_line = if args.quiet { None } else { StatusLine::of_terminal() };
        reporter.on_screen = !to_file && io::stdout().is_terminal();
        reporter
    }

    /// A reporter of these parts. It asks `cancel` to stop once the result can't be read.
    pub fn new(
        printer: Box<dyn Printer>,
        destination: Destination,
        narration: Narration,
        cancel: &Cancel,
    ) -> Self {
        let cancel = cancel.clone();
        Self {
            printer,
            destination,
            narration,
            status_line: None,
            full_screen: None,
            on_screen: false,
            trouble: None,
            cancel,
        }
    }

    /// Shows the runs on the whole terminal while they go on.
    pub(crate) fn take_screen(&mut self, full_screen: FullScreen) {
        self.status_line = None;
        self.full_screen = Some(full_screen);
    }

    /// A run of this plan begins.
    pub fn begin(&mut self, plan: &Plan, turn: Turn) {
        if let Some(full_screen) = &mut self.full_screen {
            full_screen.begin(plan, turn);
        }
        if let Some(line) = &mut self.status_line {
            line.begin(plan, turn, Instant::now());
        }
    }

    /// Hands over what happens until all is over: until the other end of the channel has gone.
    pub fn follow(&mut self, events: &Receiver<Event>) {
        if self.full_screen.is_some() {
            return self.follow_on_screen(events);
        }
        if self.status_line.is_none() {
            return events.iter().for_each(|event| self.handle_event(&event));
        }
        loop {
            match events.recv_timeout(LOOK_EVERY) {
                Ok(event) => self.handle_event(&event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let Some(line) = &mut self.status_line else { continue };
            // A second Ctrl-C ends the program at once: nothing must be left on the screen then.
            match self.cancel.requested() {
                true => narrate(line.end()),
                false => narrate(&line.refresh(Instant::now())),
            }
        }
    }

    fn follow_on_screen(&mut self, events: &Receiver<Event>) {
        self.full_screen.iter_mut().for_each(FullScreen::raise);
        loop {
            match events.recv_timeout(full_screen::LOOK_EVERY) {
                Ok(event) => self.handle_event(&event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.full_screen.iter_mut().for_each(|full_screen| full_screen.look(&self.cancel));
        }
        self.full_screen.iter_mut().for_each(|full_screen| full_screen.lower(&self.cancel));
    }

    /// What showing the run that is over has cost: a note for it.
    pub(crate) fn cost_note(&mut self) -> Option<String> {
        self.full_screen.as_mut()?.cost_note()
    }

    /// Something happened.
    pub fn handle_event(&mut self, event: &Event) {
        if let Some(full_screen) = &mut self.full_screen {
            full_screen.handle_event(event);
        }
        if let Some(line) = &mut self.status_line {
            line.handle_event(event, Instant::now());
        }
        let narration = self.narration.render_event(event);
        let text = self.printer.render_event(event);
        self.tell(&narration, &text);
    }

    /// Tells the user what goes on, beside the result.
    pub(crate) fn narrate(&mut self, text: &str) {
        self.tell(text, "");
    }

    /// A run is over.
    pub fn handle_run(&mut self, run: &Run, dropped_events: u64) {
        let narration = self.narration.render_run(run, dropped_events);
        let text = self.printer.render_run(run, dropped_events);
        if let Some(line) = &mut self.status_line {
            narrate(line.end());
        }
        let held = self.full_screen.as_mut().map(FullScreen::take_held).unwrap_or_default();
        for held in held {
            match held {
                Held::Narration(text) => narrate(&text),
                Held::Text(text) => self.write(&text),
            }
        }
        self.tell(&narration, &text);
    }

    /// All runs of one plan are over.
    pub fn handle_repeats(&mut self, repeats: &Repeats) {
        let text = self.printer.render_repeats(repeats);
        self.tell("", &text);
    }

    fn tell(&mut self, narration: &str, text: &str) {
        if let Some(full_screen) = &mut self.full_screen {
            if !full_screen.holds(Held::Narration(narration.to_owned())) {
                narrate(narration);
            }
            if self.on_screen && full_screen.holds(Held::Text(text.to_owned())) {
                return;
            }
            return self.write(text);
        }
        let moves = !narration.is_empty() || self.on_screen && !text.is_empty();
        if let Some(line) = self.status_line.as_mut().filter(|_| moves) {
            narrate(line.give_way());
        }
        narrate(narration);
        self.write(text);
    }

    /// Everything is over.
    ///
    /// # Errors
    /// Where the result, or part of it, couldn't be written.
    pub fn close(mut self) -> Result<(), Unwritten> {
        let text = self.printer.render_end();
        self.write(&text);
        match self.trouble {
            Some(trouble) => Err(trouble),
            None => self.destination.commit().map_err(Unwritten::Failed),
        }
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() || self.trouble.is_some() {
            return;
        }
        if let Err(trouble) = self.destination.put(text) {
            self.trouble = Some(trouble);
            self.cancel.request();
        }
    }
}

/// Tells the user on standard error. If that is closed, the message is dropped.
pub(crate) fn narrate(text: &str) {
    if !text.is_empty() {
        let _ = io::stderr().write_all(text.as_bytes());
    }
}
