//! A server: its tests' output, and an exit code.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Event, Failure, Observer, Server, ServerEvent};
use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::results::ServerOutput;

use super::client::render_interruption;
use super::context::Context;
use super::fault::render_failure;
use super::outlet::Outlet;
use super::printer::{Form, Printer};
use super::signals::Signals;
use super::text::TextPrinter;

/// The printers of the tests that run, by their numbers.
type Printers = Mutex<HashMap<u64, Arc<Mutex<Record>>>>;

/// A test's printer, and what it has printed.
struct Record {
    printer: Printer,
    printed: String,
}

/// Serves until it is told to end, or has served its one test.
pub(super) fn serve(
    server: Server,
    context: &Context,
    form: Form,
    outlet: &Arc<Outlet>,
    (signals, cancel): (&Signals, &Cancel),
) -> u8 {
    let printers = Printers::default();
    let observe = |test_number: u64| -> Box<dyn Observer> {
        let record =
            Record { printer: Printer::new(context.clone(), form), printed: String::new() };
        let record = Arc::new(Mutex::new(record));
        let mut printers = printers.lock().unwrap_or_else(PoisonError::into_inner);
        printers.insert(test_number, Arc::clone(&record));
        Box::new(Show { record, outlet: Arc::clone(outlet) })
    };
    let mut tell = |event: ServerEvent| tell(&event, context, form, outlet, &printers);
    let ended = server.serve(&observe, &mut tell, cancel);
    let release = context.release;
    match ended {
        Err(failure) if !failure.interrupted => {
            outlet.complain(&format!("error - {}", render_failure(&failure, release)));
            1
        }
        _ if signals.last().is_some() => {
            let text = render_interruption("server", release, signals);
            match form {
                Form::Text => outlet.complain(&text),
                _ => {
                    let empty = Printer::new(context.clone(), form);
                    if let Printer::Json(printer) = empty {
                        outlet.print(&printer.render_rest(Some(&text)));
                    }
                }
            }
            if release.is_new() { 0 } else { 1 }
        }
        _ => 0,
    }
}

/// Prints what happens in one test, and keeps it for a client that asks for it.
struct Show {
    record: Arc<Mutex<Record>>,
    outlet: Arc<Outlet>,
}

impl Observer for Show {
    fn handle(&mut self, event: &Event) {
        if let Event::Warning(text) = event {
            crate::output::narrate(&format!("warning: {text}\n"));
        }
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let pieces = record.printer.record_event(event);
        if !pieces.is_empty() {
            let printed = self.outlet.print(&pieces);
            record.printed.push_str(&printed);
        }
    }

    fn server_output(&mut self) -> Option<ServerOutput> {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match &record.printer {
            Printer::Text(_) => ServerOutput::Text(record.printed.clone()),
            Printer::Json(printer) => ServerOutput::Json(printer.document(None).to_value()),
        })
    }
}

fn tell(event: &ServerEvent, context: &Context, form: Form, outlet: &Outlet, printers: &Printers) {
    match event {
        ServerEvent::Listening { address, test_number } if form == Form::Text => {
            let printer = TextPrinter::new(context.clone());
            outlet.print(&printer.render_listening(address.port(), *test_number));
        }
        ServerEvent::TestEnded { test_number, failure } => {
            let mut printers = printers.lock().unwrap_or_else(PoisonError::into_inner);
            let record = printers.remove(test_number);
            let error = failure.as_ref().map(|failure| render_failure(failure, context.release));
            let Some(record) = record else { return };
            let record = record.lock().unwrap_or_else(PoisonError::into_inner);
            match (&record.printer, &error) {
                (Printer::Json(printer), error) => {
                    outlet.print(&printer.render_rest(error.as_deref()));
                }
                (Printer::Text(_), Some(error)) if is_clients_end(failure.as_ref()) => {
                    outlet.complain(error);
                }
                (Printer::Text(_), Some(error)) => outlet.complain(&format!("error - {error}")),
                (Printer::Text(_), None) => {}
            }
        }
        ServerEvent::Idle { seconds } if form == Form::Text && context.verbose => {
            outlet.print(&[format!("No connection request was received for {seconds} sec\n")]);
        }
        ServerEvent::Listening { .. } | ServerEvent::Idle { .. } | ServerEvent::Busy { .. } => {}
    }
}

/// A client that ends its test is no error.
fn is_clients_end(failure: Option<&Failure>) -> bool {
    failure.is_some_and(|failure| failure.code == Code::CLIENT_TERMINATED)
}
