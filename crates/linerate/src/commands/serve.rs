//! `serve`: be measured.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;

use linerate_engine::error::Error;
use linerate_engine::event::{Cancel, Event, Sink};
use linerate_engine::{HandedSockets, ServeOptions, Server, ServerGauge};
use linerate_measure::run::exit;

use super::{Failure, await_file};
use crate::args::ServeArgs;
use crate::http::HttpServer;
use crate::identity::identity_of;
use crate::metrics_site::MetricsSite;
use crate::output::{LOOK_EVERY, NdjsonPrinter, Printer, ServerLine, ServerLog, narrate};
use crate::shared_key::read_shared_key;
use crate::start_time::utc_now_ns;
use crate::store;

/// Events that may wait for a slow terminal; more are dropped.
const EVENTS_WAITING_MAX: usize = 1024;

/// Serves until a signal comes, or it has served enough.
pub(super) fn serve(args: &ServeArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let handed = HandedSockets::take()?;
    let (sink, events) = Sink::bounded(EVENTS_WAITING_MAX);
    let line = if args.quiet { None } else { ServerLine::of_terminal() };
    let gauge = line.as_ref().map(|_| Arc::<ServerGauge>::default());
    let mut server = Server::bind(ServeOptions { handed, ..options_of(args, cancel)? }, sink)?;
    if let Some(gauge) = &gauge {
        server.tell_status(Arc::clone(gauge));
    }
    let listening = Event::Listening {
        address: server.address(),
        fingerprint: server.fingerprint().to_owned(),
    };
    let _metrics = metrics_of(args)?;
    let printer: Box<dyn Printer> = if args.ndjson {
        Box::new(NdjsonPrinter::default())
    } else {
        Box::new(ServerLog::new(args.quiet, utc_now_ns))
    };
    let line = line.zip(gauge);
    let mut log = Log { args, printer, line };
    thread::scope(|scope| {
        let log = move || {
            log.show(&listening);
            log.follow(&events, cancel);
        };
        thread::Builder::new()
            .spawn_scoped(scope, log)
            .map_err(|error| Error::no_thread(&error))?;
        server.serve(cancel)
    })?;
    Ok(exit::VALID)
}

/// The page for monitoring systems, where it is asked for.
fn metrics_of(args: &ServeArgs) -> Result<Option<HttpServer>, Failure> {
    let Some(address) = args.metrics.metrics else { return Ok(None) };
    let path = store::place(args.metrics.store.as_deref()).map_err(Failure::usage)?;
    let server =
        HttpServer::start(address, "metrics", MetricsSite::new(path)).map_err(|error| {
            Failure::here(format!(
                "--metrics {address} can't be listened at ({error}): name another address or port"
            ))
        })?;
    if !args.quiet {
        narrate(&format!("linerate: metrics at http://{}/metrics\n", server.address()));
    }
    Ok(Some(server))
}

fn options_of(args: &ServeArgs, cancel: &Cancel) -> Result<ServeOptions, Failure> {
    let (shared, flags) = (args.require_key.clone(), args.identity.clone());
    let (shared_key, kept) = await_file(cancel, move || {
        let shared_key = shared.as_deref().map(read_shared_key).transpose();
        let kept = identity_of(&flags);
        Ok((shared_key.map_err(Failure::here)?, kept.map_err(Failure::here)?))
    })?;
    if let Some(note) = kept.note.filter(|_| !args.quiet) {
        narrate(&format!("linerate: {note}\n"));
    }
    Ok(ServeOptions {
        bind: args.bind.clone(),
        port: args.port,
        handed: HandedSockets::default(),
        cpus: args.cpu.as_ref().map_or(Ok(Vec::new()), |cpus| cpus.resolve())?,
        bind_device: args.bind_device.clone(),
        max_tests: args.max_tests,
        max_rate_bps: args.max_rate,
        max_time_ns: args.max_time,
        one_off: args.one_off,
        idle_timeout_ns: args.idle_timeout,
        busy_poll: args.busy_poll,
        shared_key,
        identity: kept.identity,
    })
}

/// What a server tells, and the line below it that shows what the server does.
struct Log<'a> {
    args: &'a ServeArgs,
    printer: Box<dyn Printer>,
    line: Option<(ServerLine, Arc<ServerGauge>)>,
}

impl Log<'_> {
    /// Tells what happens until the server has ended.
    fn follow(&mut self, events: &Receiver<Event>, cancel: &Cancel) {
        if self.line.is_none() {
            return events.iter().for_each(|event| self.handle_event(&event));
        }
        loop {
            match events.recv_timeout(LOOK_EVERY) {
                Ok(event) => self.handle_event(&event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.give_way(),
            }
            let Some((line, gauge)) = &mut self.line else { continue };
            // A second Ctrl-C ends the program at once: nothing must be left on the screen then.
            match cancel.requested() {
                true => narrate(line.give_way()),
                false => narrate(&line.refresh(gauge.status())),
            }
        }
    }

    fn handle_event(&mut self, event: &Event) {
        match event {
            // Shown already, from the server itself.
            Event::Listening { .. } => {}
            Event::Note(_) if self.args.quiet => {}
            Event::Note(text) if !self.args.ndjson => {
                self.give_way();
                narrate(&format!("linerate: {text}\n"));
            }
            event => self.show(event),
        }
    }

    /// A server goes on when its log has lost its reader.
    fn show(&mut self, event: &Event) {
        let text = self.printer.render_event(event);
        if !text.is_empty() {
            self.give_way();
            let _ = super::print(&text);
        }
    }

    fn give_way(&mut self) {
        if let Some((line, _)) = &mut self.line {
            narrate(line.give_way());
        }
    }
}
