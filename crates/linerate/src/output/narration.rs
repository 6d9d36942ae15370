//! What is told on standard error while a measurement runs.

use std::io;

use linerate_engine::event::Event;
use linerate_measure::{Outcome, Run};

use super::Style;
use super::live::LiveLines;

/// Renders what standard error shows. It is narration: no program should read it.
pub struct Narration {
    quiet: bool,
    style: Style,
    live: Option<LiveLines>,
}

impl Narration {
    /// `quiet` leaves errors only. `live` shows the intervals too, where the result itself goes
    /// somewhere else.
    pub fn new(quiet: bool, live: bool) -> Self {
        let style = Style::of(&io::stderr());
        Self { quiet, style, live: (live && !quiet).then(|| LiveLines::new(style)) }
    }

    /// What an event is worth telling.
    pub fn render_event(&mut self, event: &Event) -> String {
        if self.quiet {
            return String::new();
        }
        match event {
            Event::Queued { place: 1 } => "linerate: waiting; next in line\n".to_owned(),
            Event::Queued { place } => format!("linerate: waiting; place {place} in line\n"),
            Event::Armed { .. } => "linerate: armed; standard input names the start\n".to_owned(),
            Event::Note(text) => format!("linerate: {text}\n"),
            other => self.live.as_mut().map_or(String::new(), |live| live.render_event(other)),
        }
    }

    /// What a run is worth telling: why it failed, and that something wasn't shown.
    pub fn render_run(&mut self, run: &Run, dropped_events: u64) -> String {
        let mut text = self.live.as_mut().map_or(String::new(), LiveLines::render_rest);
        if dropped_events > 0 && !self.quiet {
            text.push_str(&format!(
                "linerate: {dropped_events} events were not printed, because the output is too slow; \
                 the result includes them\n"
            ));
        }
        if run.status.outcome == Outcome::Failed {
            let message = run.status.message.as_deref().unwrap_or("the measurement failed");
            text.push_str(&format!("{} {message}\n", self.style.warning("linerate:")));
        }
        text
    }
}
