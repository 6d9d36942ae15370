//! What a server tells people: where it listens, then a line for each thing that happens.

use jiff::Timestamp;
use linerate_engine::event::Event;
use linerate_measure::record::TestFigures;
use linerate_measure::repeats::Repeats;
use linerate_measure::units::{render_bytes, render_count, render_duration_ns, render_rate};
use linerate_measure::{Direction, End, Kind, Rate, Run, Workload};

use super::Printer;
use super::text::render_transport;

/// Renders the log of `serve`.
pub struct ServerLog {
    quiet: bool,
    /// What time it is: nanoseconds since 1970, UTC.
    clock: fn() -> i64,
}

impl ServerLog {
    /// `quiet` shows where the server listens and nothing else.
    pub fn new(quiet: bool, clock: fn() -> i64) -> Self {
        Self { quiet, clock }
    }
}

impl Printer for ServerLog {
    fn render_event(&mut self, event: &Event) -> String {
        let line = match event {
            Event::Listening { address, fingerprint } => {
                return format!(
                    "listening on {address}, TCP and UDP\nkey fingerprint {fingerprint}\n"
                );
            }
            _ if self.quiet => return String::new(),
            Event::TestStarted { run_id, client, workload, .. } => {
                format!("{run_id}  started  {client}  {}", render_workload(workload))
            }
            Event::TestEnded { run_id, how, figures, .. } => {
                let figures = figures.as_ref().map(render_figures).unwrap_or_default();
                format!("{run_id}  ended    {how}{figures}")
            }
            Event::Refused { client, why } => format!("refused  {client}  {why}"),
            Event::Note(text) => text.clone(),
            Event::Queued { .. }
            | Event::Armed { .. }
            | Event::Started { .. }
            | Event::Sample(_) => {
                return String::new();
            }
        };
        format!("{}  {line}\n", render_clock((self.clock)()))
    }

    fn render_run(&mut self, _run: &Run, _dropped_events: u64) -> String {
        String::new()
    }

    fn render_repeats(&mut self, _repeats: &Repeats) -> String {
        String::new()
    }

    fn render_end(&mut self) -> String {
        String::new()
    }
}

/// RFC 3339 in UTC, to the second.
fn render_clock(utc_ns: i64) -> String {
    Timestamp::from_second(utc_ns / 1_000_000_000)
        .map_or_else(|_| "-".to_owned(), |time| time.to_string())
}

/// What a client asked for.
fn render_workload(workload: &Workload) -> String {
    let kind = match (&workload.kind, workload.direction()) {
        (Kind::Stream { media: Some(_), .. }, Some(Direction::Up)) => "media up",
        (Kind::Stream { media: Some(_), .. }, Some(Direction::Down)) => "media down",
        (Kind::Stream { media: Some(_), .. }, _) => "media both ways",
        (Kind::Stream { .. }, Some(Direction::Up)) => "stream up",
        (Kind::Stream { .. }, Some(Direction::Down)) => "stream down",
        (Kind::Stream { .. }, _) => "stream both ways",
        (Kind::Rr { .. }, _) => "rr",
        (Kind::Connect { .. }, _) => "connect",
    };
    let flows = workload.total_flows();
    let plural = if flows == 1 { "" } else { "s" };
    let mut parts =
        vec![format!("{} {kind}", render_transport(workload)), format!("{flows} flow{plural}")];
    parts.push(match workload.end {
        End::Time { duration_ns } => {
            render_duration_ns(duration_ns.saturating_add(workload.omit_ns))
        }
        End::Bytes { bytes } => render_bytes(bytes),
        End::Count { count } => format!("{count} times"),
    });
    parts.extend(workload.rate.map(|rate| match rate {
        Rate::AllFlows { bps } => render_rate(bps as f64),
        Rate::EachFlow { bps } => format!("{} a flow", render_rate(bps as f64)),
    }));
    parts.extend(workload.schedule().map(|schedule| format!("{}/s", render_count(schedule.per_s))));
    parts.join(", ")
}

/// How long the load took, and what it carried in that time.
fn render_figures(figures: &TestFigures) -> String {
    let TestFigures { elapsed_ns, received_bytes, sent_bytes, transactions } = *figures;
    let seconds = elapsed_ns as f64 / 1e9;
    let mut text = format!(", {}", render_duration_ns(elapsed_ns));
    if seconds <= 0.0 {
        return text;
    }
    if transactions > 0 {
        text.push_str(&format!(", {}/s", render_count(transactions as f64 / seconds)));
    }
    for (bytes, what) in [(received_bytes, "received"), (sent_bytes, "sent")] {
        if bytes > 0 {
            text.push_str(&format!(", {what} {}", render_rate(bytes as f64 * 8.0 / seconds)));
        }
    }
    text
}
