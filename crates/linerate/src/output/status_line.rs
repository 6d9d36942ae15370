//! The line at the foot of a terminal that shows what a run does and has come to so far.

use std::time::{Duration, Instant};

use linerate_engine::event::Event;
use linerate_measure::so_far::SoFar;
use linerate_measure::{End, Plan};
use linerate_screen::render_so_far;

#[cfg(test)]
use super::foot_line::CLEAR;
use super::foot_line::FootLine;
use crate::host::render_host_port;

/// The line is drawn no more often.
const DRAW_EVERY: Duration = Duration::from_millis(250);
/// An opening, and the results after a load, are waited for so long without a word.
const USUAL_WAIT: Duration = Duration::from_secs(1);

/// Which of several runs one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// 1 for the first.
    pub number: usize,
    /// So many there are.
    pub of: usize,
    /// Whether there may be fewer, where they agree.
    pub at_most: bool,
}

impl Turn {
    /// The only one.
    pub const ONLY: Self = Self { number: 1, of: 1, at_most: false };

    /// `run 3 of 8, `; empty: there is one run.
    pub(super) fn render(self) -> String {
        let Self { number, of, at_most } = self;
        match (of, at_most) {
            (0 | 1, _) => String::new(),
            (_, false) => format!("run {number} of {of}, "),
            (_, true) => format!("run {number} of at most {of}, "),
        }
    }
}

/// What a run does at the moment. It overwrites itself, and is gone before anything else is printed.
pub struct StatusLine {
    line: FootLine,
    turn: Turn,
    stage: Stage,
    /// When it was last drawn, and what.
    drawn: Option<(Instant, String)>,
}

enum Stage {
    Nothing,
    Opening { server: String, since: Instant },
    Running { since: Instant, length: Option<Duration>, so_far: Box<SoFar> },
}

impl StatusLine {
    /// The line of standard error's terminal; `None` where there is none that understands it.
    pub fn of_terminal() -> Option<Self> {
        FootLine::of_terminal().map(Self::over)
    }

    /// A line of so many columns at most.
    pub fn new(columns: usize) -> Self {
        Self::over(FootLine::new(columns))
    }

    fn over(line: FootLine) -> Self {
        Self { line, turn: Turn::ONLY, stage: Stage::Nothing, drawn: None }
    }

    /// A run of this plan begins.
    pub fn begin(&mut self, plan: &Plan, turn: Turn, now: Instant) {
        let server = render_host_port(&plan.host, plan.port);
        self.stage = Stage::Opening { server, since: now };
        self.turn = turn;
    }

    /// Something happened.
    pub fn handle_event(&mut self, event: &Event, now: Instant) {
        match (event, &mut self.stage) {
            (Event::Started { plan, .. }, _) => {
                let workload = plan.workload.clone();
                let length = match workload.end {
                    End::Time { duration_ns: duration_ns @ 1.. } => {
                        Some(Duration::from_nanos(duration_ns.saturating_add(workload.omit_ns)))
                    }
                    End::Time { .. } | End::Bytes { .. } | End::Count { .. } => None,
                };
                let so_far = Box::new(SoFar::new(workload));
                self.stage = Stage::Running { since: now, length, so_far };
            }
            (Event::Sample(sample), Stage::Running { so_far, .. }) => so_far.handle_sample(sample),
            _ => {}
        }
    }

    /// Takes the line away, where it is, since something else is printed.
    pub fn give_way(&mut self) -> &'static str {
        self.line.give_way()
    }

    /// The run is over, or about to be: the line is taken away, and stays away.
    pub fn end(&mut self) -> &'static str {
        self.stage = Stage::Nothing;
        self.line.give_way()
    }

    /// The line anew, where it has something new to show.
    pub fn refresh(&mut self, now: Instant) -> String {
        let last = self.drawn.as_ref();
        if last.is_some_and(|(drawn, _)| now.saturating_duration_since(*drawn) < DRAW_EVERY) {
            return String::new();
        }
        let Some(text) = self.render(now) else { return String::new() };
        if self.line.is_shown() && last.is_some_and(|(_, shown)| *shown == text) {
            return String::new();
        }
        let shown = self.line.show(&text);
        self.drawn = Some((now, text));
        shown
    }

    fn render(&self, now: Instant) -> Option<String> {
        let turn = self.turn.render();
        match &self.stage {
            Stage::Nothing => None,
            Stage::Opening { server, since } => {
                let waited = now.saturating_duration_since(*since);
                (waited >= USUAL_WAIT)
                    .then(|| format!("{turn}connecting to {server} for {} s", waited.as_secs()))
            }
            Stage::Running { since, length, so_far } => {
                let passed = now.saturating_duration_since(*since);
                let time = match length {
                    Some(length) if passed >= *length + USUAL_WAIT => {
                        let passed = passed.as_secs();
                        return Some(format!(
                            "{turn}{passed} s, the load is over, waiting for the results"
                        ));
                    }
                    Some(length) => {
                        let passed = passed.min(*length).as_secs();
                        format!("{passed} of {} s", length.as_secs_f64())
                    }
                    None => format!("{} s", passed.as_secs()),
                };
                Some(format!("{turn}{time}{}", render_so_far(so_far)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
