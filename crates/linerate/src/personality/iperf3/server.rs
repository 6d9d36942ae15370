//! A server: its tests' output, and an exit code.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Control, Event, Failure, Observer, Server, ServerEvent};
use linerate_measure::Outcome;
use linerate_personality::iperf3::fault::render_failure;
use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::results::ServerOutput;
use linerate_wire::visible::visible;

use super::client::{render_interruption, tell_alone};
use super::context::Context;
use super::outlet::Outlet;
use super::printer::{Form, Printer};
use super::record::{Iperf3Server, TestRecord};
use super::signals::Signals;
use super::text::TextPrinter;
use crate::personality::recorder::ServerRecorder;

/// The printers of the tests that run, by their numbers.
type Printers = Mutex<HashMap<u64, Arc<Mutex<Record>>>>;

/// The longest output that is sent to a client that asks for it.
const MOST_OUTPUT_BYTES: usize = 4 << 20;

/// A test's printer, and what it has printed for a client that asks for it.
struct Record {
    printer: Printer,
    control: Option<Box<Control>>,
    /// None before the client has asked for something.
    recorded: Option<TestRecord>,
    printed: String,
    is_wanted: bool,
}

impl Record {
    fn record_event(&mut self, event: &Event, recorder: &ServerRecorder<Iperf3Server>) {
        match event {
            Event::Connected(control) => self.control = Some(control.clone()),
            Event::Asked(parameters) => {
                self.recorded = self.control.as_ref().map(|control| {
                    let asked = ((**control).clone(), (**parameters).clone());
                    TestRecord::of_server(recorder, &asked)
                });
            }
            other => self.recorded.iter_mut().for_each(|recorded| recorded.record_event(other)),
        }
    }

    /// The test is over; why, where not as planned.
    fn finish(&mut self, failure: Option<&Failure>, why: Option<&str>) {
        let Some(recorded) = self.recorded.take() else { return };
        let outcome = match failure {
            None => Outcome::Complete,
            Some(failure) if failure.interrupted || failure.code == Code::CLIENT_TERMINATED => {
                Outcome::Interrupted
            }
            Some(_) => Outcome::Failed,
        };
        recorded.finish(outcome, u8::from(failure.is_some()), why);
    }

    /// Keeps what was printed, unless it is too much or the test has begun without a wish for it.
    fn keep(&mut self, printed: &str) {
        if self.is_wanted && self.printed.len() + printed.len() <= MOST_OUTPUT_BYTES {
            self.printed.push_str(printed);
        } else if self.is_wanted {
            self.is_wanted = false;
            self.printed.push_str("(the rest of the output is too long to be sent)\n");
        }
    }
}

/// Serves until it is told to end, or has served its one test.
pub(super) fn serve(
    server: Server,
    context: &Context,
    recorder: &Arc<ServerRecorder<Iperf3Server>>,
    form: Form,
    outlet: &Arc<Outlet>,
    (signals, cancel): (&Signals, &Cancel),
) -> u8 {
    let printers = Printers::default();
    let observe = |test_number: u64| -> Box<dyn Observer> {
        let printer = Printer::new(context.clone(), form);
        let printed = String::new();
        let record = Record { printer, control: None, recorded: None, printed, is_wanted: true };
        let record = Arc::new(Mutex::new(record));
        let mut printers = printers.lock().unwrap_or_else(PoisonError::into_inner);
        printers.insert(test_number, Arc::clone(&record));
        let (recorder, outlet) = (Arc::clone(recorder), Arc::clone(outlet));
        Box::new(Show { record, recorder, outlet })
    };
    // Why the test failed that ended last, as long as nothing else has happened.
    let mut told = None;
    // Whether the document of a test has said that a signal ended the server.
    let mut is_interruption_told = false;
    let mut tell = |event: ServerEvent| {
        let failure = match &event {
            ServerEvent::TestEnded { failure, .. } => failure.as_ref(),
            _ => None,
        };
        told = failure.map(|failure| failure.code);
        is_interruption_told |=
            form.is_json() && failure.is_some_and(|failure| failure.interrupted);
        tell(&event, context, form, outlet, &printers, signals);
    };
    let ended = server.serve(&observe, &mut tell, cancel);
    let release = context.release;
    match ended {
        // That the one test failed is told; the server did what it was asked for.
        Err(failure) if !failure.interrupted && told == Some(failure.code) => 0,
        Err(failure) if !failure.interrupted => {
            give_up(&failure, context, form, outlet);
            1
        }
        _ if signals.last().is_some() => {
            if !is_interruption_told {
                let text = render_interruption("server", release, signals);
                tell_alone(context, form, outlet, &text, &text);
            }
            if release.is_new() { 0 } else { 1 }
        }
        _ => 0,
    }
}

/// Says why there is no server, or no longer.
pub(super) fn give_up(failure: &Failure, context: &Context, form: Form, outlet: &Outlet) {
    // A server's document has all of the sentence, a client's only the reason.
    let text = format!("error - {}", render_failure(failure, context.release));
    tell_alone(context, form, outlet, &text, &text);
    if !form.is_json() {
        outlet.complain("exiting");
    }
}

/// Prints what happens in one test, and keeps it for a client that asks for it.
struct Show {
    record: Arc<Mutex<Record>>,
    recorder: Arc<ServerRecorder<Iperf3Server>>,
    outlet: Arc<Outlet>,
}

impl Observer for Show {
    fn handle(&mut self, event: &Event) {
        if let Event::Warning(text) = event {
            crate::output::narrate(&format!("warning: {}\n", visible(text)));
        }
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        if let Event::Started(start) = event
            && !start.parameters.get_server_output
        {
            record.is_wanted = false;
            record.printed = String::new();
        }
        record.record_event(event, &self.recorder);
        let pieces = record.printer.record_event(event);
        if !pieces.is_empty() {
            let printed = self.outlet.print(&pieces);
            record.keep(&printed);
        }
    }

    fn server_output(&mut self) -> Option<ServerOutput> {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        match &record.printer {
            Printer::Text(_) => Some(ServerOutput::Text(record.printed.clone())),
            Printer::Json(printer) => {
                printer.render_line(MOST_OUTPUT_BYTES).map(ServerOutput::Json)
            }
        }
    }
}

fn tell(
    event: &ServerEvent,
    context: &Context,
    form: Form,
    outlet: &Outlet,
    printers: &Printers,
    signals: &Signals,
) {
    match event {
        ServerEvent::Listening { address, test_number } if form == Form::Text => {
            let printer = TextPrinter::new(context.clone());
            outlet.print(&printer.render_listening(address.port(), *test_number));
        }
        ServerEvent::TestEnded { test_number, failure } => {
            let mut printers = printers.lock().unwrap_or_else(PoisonError::into_inner);
            let record = printers.remove(test_number);
            drop(printers);
            let error = failure.as_ref().map(|failure| render_end(failure, context, signals));
            let is_signalled = signals.last().is_some()
                && failure.as_ref().is_some_and(|failure| failure.interrupted);
            let Some(record) = record else { return };
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            record.finish(failure.as_ref(), error.as_deref());
            match (&record.printer, &error) {
                (Printer::Json(printer), error) => {
                    outlet.write_pieces(printer.render_rest(error.as_deref()));
                }
                // That is said once, when all tests are over.
                (Printer::Text(_), Some(_)) if is_signalled => {}
                (Printer::Text(_), Some(error)) => outlet.complain(error),
                (Printer::Text(_), None) => {}
            }
        }
        ServerEvent::Listening { .. } | ServerEvent::Busy { .. } => {}
    }
}

/// Why a test ended. A client that goes is no error of the server's.
fn render_end(failure: &Failure, context: &Context, signals: &Signals) -> String {
    match failure.code {
        _ if failure.interrupted => render_interruption("server", context.release, signals),
        Code::CONTROL_CLOSED => "the client has unexpectedly closed the connection".to_owned(),
        Code::CLIENT_TERMINATED => render_failure(failure, context.release),
        _ => format!("error - {}", render_failure(failure, context.release)),
    }
}
