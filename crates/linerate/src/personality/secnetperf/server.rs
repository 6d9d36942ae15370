//! The server: it runs until it is stopped.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_engine::HandedSockets;
use linerate_engine::event::{Cancel, Observe};
use linerate_engine::perf::{Asked, Server, ServerEvent, ServerPlan, TestReport};
use linerate_personality::secnetperf::options::{Refusal, ServerOptions, SharedOptions};
use linerate_personality::secnetperf::status;

use super::Speech;
use super::client::refusal;
use super::plan::{delay, placement, quic_options};
use super::printer::render_ending;
use crate::output::narrate;

/// The port that the original can be stopped on.
const STOP_PORT: u16 = 9999;
/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a server; its status.
pub(super) fn run(
    options: &ServerOptions,
    shared: &SharedOptions,
    processors: u64,
    stoppable: bool,
    speech: &Speech,
    cancel: &Cancel,
    observe: Option<Arc<dyn Observe<Asked, TestReport>>>,
) -> Result<u8, Refusal> {
    let stop_address = SocketAddr::from((Ipv4Addr::LOCALHOST, STOP_PORT));
    let mut server = Server::start(&ServerPlan {
        handed: HandedSockets::take().map_err(refusal)?,
        address: options.address,
        threads: shared.threads.count.unwrap_or(processors as u32),
        placement: placement(&shared.threads),
        quic: quic_options(&shared.quic),
        suites: options.suites,
        delay: options.delay.map(delay),
        tells_connections: options.stats,
        observe,
        stop_address: stoppable.then_some(stop_address),
    })
    .map_err(refusal)?;
    if !server.serves_tcp() {
        speech.say("Warning: TCP Server failed to start!\n");
    }
    speech.started();
    if options.address.port() == 0 {
        narrate(&format!("secnetperf: listening on {}\n", server.address()));
    }
    let ends = shared.max_runtime.map(|limit| Instant::now() + limit);
    while !cancel.requested() && ends.is_none_or(|ends| Instant::now() < ends) {
        match server.next_event(LOOK) {
            Some(ServerEvent::StopAsked) => break,
            Some(ServerEvent::Broken(why)) => {
                narrate(&format!("secnetperf: a thread can't go on: {why}\n"));
                return Ok(status::FAILED);
            }
            Some(event) => tell(event, speech),
            None => {}
        }
    }
    for event in server.end() {
        if !matches!(event, ServerEvent::Refused(_)) {
            tell(event, speech);
        }
    }
    Ok(status::OK)
}

/// Prints what happens.
fn tell(event: ServerEvent, speech: &Speech) {
    match event {
        ServerEvent::ConnectionEnded(ending) => speech.say(&render_ending(&ending)),
        ServerEvent::Refused(why) => narrate(&format!("secnetperf: {why}\n")),
        ServerEvent::StopAsked | ServerEvent::Broken(_) => {}
    }
}
