//! The server: it runs until it is stopped, and prints what happens.

use std::process;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use linerate_engine::event::Cancel;
use linerate_engine::qperf::{Server, ServerEvent};
use linerate_personality::qperf::options::Options;
use linerate_personality::qperf::output::{
    Style, render_accepted, render_accepted_in, render_closed, render_requested, render_reset,
    render_sent, render_start, render_stopped, render_stream_opened,
};

use super::record::{ServerRecords, interval, server_recorder};
use super::{Failure, complain, complain_of_dropped, plan};
use crate::certificates::read_identity_of;
use crate::output::narrate;
use crate::personality::stdout::say;

/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a server.
pub(super) fn run(options: &Options, words: &[String], cancel: &Cancel) -> Result<(), Failure> {
    let recorder = server_recorder(words, cancel).map_err(Failure::new)?;
    let listen = &options.listen;
    let identity =
        read_identity_of((&listen.certificate, "--tls-cert"), (&listen.key, "--tls-key"))
            .map_err(Failure::new)?;
    let server = Server::start(&plan::server(options, identity)?)?;
    say(&render_start(options, process::id()));
    if options.listen_port() == 0 {
        narrate(&format!("qperf: listening on {}\n", server.address()));
    }
    let mut records = ServerRecords::new(recorder, options, server.address());
    let style = Style::of(options);
    let mut failed = None;
    while !cancel.requested() && failed.is_none() {
        match server.events().recv_timeout(LOOK) {
            Ok(ServerEvent::Broken(why)) => failed = Some(broken(&why)),
            Ok(event) => tell(event, style, &mut records),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                failed = Some(Failure::new("the server's thread failed"));
            }
        }
    }
    for event in server.end() {
        match event {
            ServerEvent::Broken(why) => failed = Some(broken(&why)),
            event => tell(event, style, &mut records),
        }
    }
    failed.map_or(Ok(()), Err)
}

fn broken(why: &str) -> Failure {
    Failure::new(format!("the server can't go on: {why}"))
}

fn tell(event: ServerEvent, style: Style, records: &mut ServerRecords) {
    match &event {
        ServerEvent::Accepted { number, remote } => say(&render_accepted(*number, *remote)),
        ServerEvent::Established { number, elapsed_ns } => {
            say(&render_accepted_in(*number, *elapsed_ns));
        }
        ServerEvent::StreamOpened { number, stream } => {
            say(&render_stream_opened(*number, *stream));
        }
        ServerEvent::Requested { number } => say(&render_requested(*number)),
        ServerEvent::Stopped { code } => narrate(&render_stopped(*code)),
        ServerEvent::Reset { code } => narrate(&render_reset(*code)),
        ServerEvent::Interval { number, interval: over, window_bytes } => {
            say(&render_sent(style, *number, &interval(over), *window_bytes));
        }
        ServerEvent::Closed { number, close, total, .. } => {
            say(&render_closed(*number, close, *total));
        }
        ServerEvent::Dropped(count) => complain_of_dropped(*count),
        ServerEvent::FileFault(why) => complain(why),
        ServerEvent::Broken(_) => {}
    }
    records.record(&event);
}
