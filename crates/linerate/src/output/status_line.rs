//! The line at the foot of a terminal that shows that a run goes on, while nothing else does.

use std::time::{Duration, Instant};

use linerate_engine::event::Event;
use linerate_measure::units::render_duration_ns;
use linerate_measure::{End, Plan};

use super::Style;
#[cfg(test)]
use super::foot_line::CLEAR;
use super::foot_line::FootLine;
use super::live::LiveLines;
use super::text::render_title;

/// So long may nothing move on the screen.
const STILL_AT_MOST: Duration = Duration::from_secs(1);

/// What a run does at the moment. It overwrites itself, and is gone before anything else is printed.
pub struct StatusLine {
    line: FootLine,
    stage: Stage,
    /// When something on the screen last moved.
    moved: Instant,
    /// The last interval's figures.
    figures: String,
    lines: LiveLines,
}

enum Stage {
    Nothing,
    Opening { what: String, since: Instant },
    Running { since: Instant, length: Option<Duration> },
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
        Self {
            line,
            stage: Stage::Nothing,
            moved: Instant::now(),
            figures: String::new(),
            lines: LiveLines::new(Style::Plain),
        }
    }

    /// A run of this plan begins.
    pub fn begin(&mut self, plan: &Plan, now: Instant) {
        self.stage = Stage::Opening { what: render_title(plan), since: now };
        self.moved = now;
    }

    /// Something happened.
    pub fn handle_event(&mut self, event: &Event, now: Instant) {
        let lines = self.lines.render_event(event);
        match event {
            Event::Started { plan, .. } => {
                self.figures.clear();
                let length = match plan.workload.end {
                    End::Time { duration_ns } => Some(Duration::from_nanos(
                        duration_ns.saturating_add(plan.workload.omit_ns),
                    )),
                    End::Bytes { .. } | End::Count { .. } => None,
                };
                self.stage = Stage::Running { since: now, length };
            }
            _ => {
                if let Some(last) = lines.lines().last() {
                    let cells = last.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
                    self.figures = cells.collect::<Vec<_>>().join("  ");
                }
            }
        }
    }

    /// Takes the line away, where it is, since something else is printed.
    pub fn give_way(&mut self, now: Instant) -> &'static str {
        self.moved = now;
        self.line.give_way()
    }

    /// The line anew, where nothing else has moved for a while.
    pub fn refresh(&mut self, now: Instant) -> String {
        if now.saturating_duration_since(self.moved) < STILL_AT_MOST {
            return String::new();
        }
        let seconds = |since: Instant| now.saturating_duration_since(since).as_secs();
        let text = match &self.stage {
            Stage::Nothing => return String::new(),
            Stage::Opening { what, since } => format!("{} s  opening  {what}", seconds(*since)),
            Stage::Running { since, length: Some(length) } if *since + *length <= now => {
                format!("{} s  the load is over, waiting for the results", seconds(*since))
            }
            Stage::Running { since, length } => {
                let of = length.map_or(String::new(), |length| {
                    format!(" of {}", render_duration_ns(length.as_nanos() as u64))
                });
                format!("{} s{of}  {}", seconds(*since), self.figures)
            }
        };
        self.moved = now;
        self.line.show(&text)
    }
}

#[cfg(test)]
mod tests;
