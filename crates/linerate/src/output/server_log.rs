//! What a server tells people: where it listens, then a line for each thing that happens.

use linerate_engine::event::Event;
use linerate_measure::{Kind, Run, Workload};

use super::Printer;
use super::text::render_transport;

/// Renders the log of `serve`.
pub struct ServerLog {
    quiet: bool,
}

impl ServerLog {
    /// `quiet` shows where the server listens and nothing else.
    pub fn new(quiet: bool) -> Self {
        Self { quiet }
    }
}

impl Printer for ServerLog {
    fn render_event(&mut self, event: &Event) -> String {
        match event {
            Event::Listening { address, fingerprint } => {
                format!("listening on {address}, TCP and UDP\nkey fingerprint {fingerprint}\n")
            }
            _ if self.quiet => String::new(),
            Event::TestStarted { run_id, client, workload } => {
                format!("{run_id}  started  {client}  {}\n", render_workload(workload))
            }
            Event::TestEnded { run_id, how } => format!("{run_id}  ended    {how}\n"),
            Event::Refused { client, why } => format!("refused  {client}  {why}\n"),
            Event::Note(text) => format!("{text}\n"),
            Event::Queued { .. } | Event::Started { .. } | Event::Sample(_) => String::new(),
        }
    }

    fn render_run(&mut self, _run: &Run, _dropped_events: u64) -> String {
        String::new()
    }

    fn render_end(&mut self) -> String {
        String::new()
    }
}

fn render_workload(workload: &Workload) -> String {
    let kind = match workload.kind {
        Kind::Stream { .. } => "stream",
        Kind::Rr { .. } => "rr",
        Kind::Connect { .. } => "connect",
    };
    let flows = workload.total_flows();
    let plural = if flows == 1 { "" } else { "s" };
    format!("{} {kind}, {flows} flow{plural}", render_transport(workload))
}
