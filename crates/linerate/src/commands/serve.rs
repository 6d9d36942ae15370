//! `serve`: be measured.

use std::thread;

use linerate_engine::error::Error;
use linerate_engine::event::{Cancel, Event, Sink};
use linerate_engine::{ServeOptions, Server};
use linerate_measure::run::exit;

use super::Failure;
use crate::args::ServeArgs;
use crate::certificates::read_identity;
use crate::identity::{Kept, server_identity};
use crate::output::{NdjsonPrinter, Printer, ServerLog, narrate};
use crate::shared_key::read_shared_key;
use crate::signals::stop_on_signals;

/// Events that may wait for a slow terminal; more are dropped.
const EVENTS_WAITING_MAX: usize = 1024;

/// Serves until a signal comes.
pub(super) fn serve(args: &ServeArgs) -> Result<u8, Failure> {
    let (sink, events) = Sink::bounded(EVENTS_WAITING_MAX);
    let server = Server::bind(options_of(args)?, sink)?;
    let cancel = Cancel::default();
    stop_on_signals(&cancel)
        .map_err(|error| Failure::here(format!("can't listen for signals: {error}")))?;
    let listening = Event::Listening {
        address: server.address(),
        fingerprint: server.fingerprint().to_owned(),
    };
    let mut printer: Box<dyn Printer> = if args.ndjson {
        Box::new(NdjsonPrinter::default())
    } else {
        Box::new(ServerLog::new(args.quiet))
    };
    thread::scope(|scope| {
        let log = move || {
            show(&mut *printer, &listening);
            for event in events {
                match event {
                    // Shown already, from the server itself.
                    Event::Listening { .. } => {}
                    Event::Note(_) if args.quiet => {}
                    Event::Note(text) if !args.ndjson => narrate(&format!("linerate: {text}\n")),
                    event => show(&mut *printer, &event),
                }
            }
        };
        thread::Builder::new()
            .spawn_scoped(scope, log)
            .map_err(|error| Error::no_thread(&error))?;
        server.serve(&cancel)
    })?;
    Ok(exit::VALID)
}

fn options_of(args: &ServeArgs) -> Result<ServeOptions, Failure> {
    let shared_key =
        args.require_key.as_deref().map(read_shared_key).transpose().map_err(Failure::here)?;
    let kept = match (&args.cert, &args.key) {
        (Some(certificates), Some(key)) => {
            read_identity(certificates, key).map(|identity| Kept { identity, note: None })
        }
        _ => server_identity(args.identity.as_deref()),
    };
    let kept = kept.map_err(Failure::here)?;
    if let Some(note) = kept.note.filter(|_| !args.quiet) {
        narrate(&format!("linerate: {note}\n"));
    }
    Ok(ServeOptions {
        bind: args.bind,
        port: args.port,
        cpus: args.cpu.as_ref().map_or(Ok(Vec::new()), |cpus| cpus.resolve())?,
        bind_device: args.bind_device.clone(),
        max_tests: args.max_tests,
        max_rate_bps: args.max_rate,
        max_time_ns: args.max_time,
        busy_poll: args.busy_poll,
        shared_key,
        identity: kept.identity,
    })
}

/// A server serves on when nobody reads its log any more.
fn show(printer: &mut dyn Printer, event: &Event) {
    let text = printer.render_event(event);
    if !text.is_empty() {
        let _ = super::print(&text);
    }
}
