//! A client: one test, its output, and an exit code.

use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Event, Failure, Observer, Report, TestPlan};
use linerate_measure::Outcome;
use linerate_personality::iperf3::fault::{render_failure, render_server_error};
use linerate_personality::iperf3::release::Release;
use linerate_wire::iperf3::Code;
use linerate_wire::visible::visible;

use super::context::Context;
use super::outlet::Outlet;
use super::printer::{Form, Printer};
use super::record::TestRecord;
use super::signals::Signals;
use crate::personality::stdout;

/// Runs one test.
pub(super) fn test(
    plan: &TestPlan,
    context: Context,
    record: TestRecord,
    form: Form,
    outlet: &Outlet,
    (signals, cancel): (&Signals, &Cancel),
) -> u8 {
    let release = context.release;
    let mut observer = Show { printer: Printer::new(context, form), record, outlet };
    if let Printer::Text(printer) = &observer.printer {
        outlet.print(&printer.render_opening());
    }
    let result = linerate_engine::iperf3::run(plan, &mut observer, cancel);
    let Show { mut printer, record, .. } = observer;
    let exit_code = conclude(&mut printer, outlet, result.as_ref(), release, signals);
    let outcome = match &result {
        Ok(_) => Outcome::Complete,
        Err(failure) if failure.interrupted => Outcome::Interrupted,
        Err(_) => Outcome::Failed,
    };
    let message = result.as_ref().err().map(|failure| render_end(failure, release, signals));
    record.finish(outcome, stdout::exit_code(exit_code, 1), message.as_deref());
    exit_code
}

/// Prints what happens as it happens.
struct Show<'a> {
    printer: Printer,
    record: TestRecord,
    outlet: &'a Outlet,
}

impl Observer for Show<'_> {
    fn handle(&mut self, event: &Event) {
        if let Event::Warning(text) = event {
            crate::output::narrate(&format!("warning: {}\n", visible(text)));
        }
        self.record.record_event(event);
        let pieces = self.printer.record_event(event);
        if !pieces.is_empty() {
            self.outlet.print(&pieces);
        }
    }
}

/// What is said last, and the exit code.
fn conclude(
    printer: &mut Printer,
    outlet: &Outlet,
    result: Result<&Report, &Failure>,
    release: Release,
    signals: &Signals,
) -> u8 {
    let failure = match result {
        Ok(report) => {
            match printer {
                Printer::Text(printer) => {
                    if let Some(output) = &report.server_output {
                        outlet.print_long(printer.render_output(output));
                    }
                    outlet.print(&printer.render_done());
                }
                Printer::Json(printer) => outlet.write_pieces(printer.render_rest(None)),
            }
            return 0;
        }
        Err(failure) => failure,
    };
    let text = render_end(failure, release, signals);
    match printer {
        Printer::Json(printer) => {
            if failure.code == Code::ACCESS_DENIED {
                printer.record_busy();
            }
            let error = text.strip_prefix("error - ").unwrap_or(&text);
            outlet.write_pieces(printer.render_rest(Some(error)));
        }
        Printer::Text(printer) => {
            if failure.code != Code::ACCESS_DENIED {
                outlet.print(&printer.render_refused());
            }
            if failure.from_peer && release.is_new() {
                outlet.complain(&render_server_error(failure, release));
            }
            outlet.complain(&text);
        }
    }
    // Releases since 3.19 call an end by signal a success.
    if failure.interrupted && release.is_new() { 0 } else { 1 }
}

/// Why nothing is begun.
pub(super) fn conclude_nothing(failure: &Failure, context: &Context, form: Form, outlet: &Outlet) {
    let text = render_failure(failure, context.release);
    tell_alone(context, form, outlet, &format!("error - {text}"), &text);
}

/// Says what belongs to no test: a complaint in text, the `error` of a document of its own in JSON.
pub(super) fn tell_alone(
    context: &Context,
    form: Form,
    outlet: &Outlet,
    complaint: &str,
    error: &str,
) {
    match Printer::new(context.clone(), form) {
        Printer::Text(_) => outlet.complain(complaint),
        Printer::Json(printer) => outlet.write_pieces(printer.render_rest(Some(error))),
    }
}

fn render_end(failure: &Failure, release: Release, signals: &Signals) -> String {
    if failure.interrupted {
        return render_interruption("client", release, signals);
    }
    format!("error - {}", render_failure(failure, release))
}

/// `interrupt - the client has terminated by signal Interrupt(2)`.
pub(super) fn render_interruption(role: &str, release: Release, signals: &Signals) -> String {
    match signals.last().filter(|_| release.is_new()) {
        Some(signal) => format!("interrupt - the {role} has terminated by signal {signal}"),
        None => format!("interrupt - the {role} has terminated"),
    }
}
