//! What is known of a run that goes on, and what of it is shown.

use std::collections::VecDeque;

use linerate_measure::so_far::SoFar;
use linerate_measure::{End, Plan, Sample};

use crate::history::History;

/// So many notes are kept.
const NOTES_KEPT: usize = 8;

/// What a key asks of whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing, or to draw anew.
    Nothing,
    /// To end the run, with what it has come to.
    End,
}

/// One of the screens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Page {
    #[default]
    Rates,
    Flows,
    Times,
}

/// A load that goes on.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) since_ns: u64,
    pub(crate) length_ns: Option<u64>,
    pub(crate) so_far: SoFar,
    pub(crate) history: History,
}

/// What is known of a run that goes on, and what of it is shown.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    pub(crate) has_colours: bool,
    pub(crate) title: String,
    /// Which of several runs it is; empty: there is one.
    pub(crate) turn: String,
    pub(crate) load: Option<Load>,
    pub(crate) notes: VecDeque<String>,
    pub(crate) page: Page,
    pub(crate) is_paused: bool,
    pub(crate) is_ending: bool,
}

impl Screen {
    /// A screen before the first run.
    pub fn new(has_colours: bool) -> Self {
        Self { has_colours, ..Self::default() }
    }

    /// A run begins: its title, and which of several it is; empty where there is one.
    pub fn begin(&mut self, title: &str, turn: &str) {
        let Self { has_colours, page, .. } = *self;
        let title = title.lines().last().unwrap_or_default().to_owned();
        *self = Self { title, turn: turn.to_owned(), has_colours, page, ..Self::default() };
    }

    /// The load of a plan begins.
    pub fn handle_started(&mut self, plan: &Plan, now_ns: u64) {
        let workload = plan.workload.clone();
        let length_ns = match workload.end {
            End::Time { duration_ns: duration_ns @ 1.. } => {
                Some(duration_ns.saturating_add(workload.omit_ns))
            }
            End::Time { .. } | End::Bytes { .. } | End::Count { .. } => None,
        };
        let so_far = SoFar::new(workload);
        let history = History::default();
        self.load = Some(Load { since_ns: now_ns, length_ns, so_far, history });
    }

    /// An interval of either end is over.
    pub fn handle_sample(&mut self, sample: &Sample) {
        if let Some(load) = &mut self.load {
            load.history.handle_sample(sample, load.so_far.workload());
            load.so_far.handle_sample(sample);
        }
    }

    /// Something the user should know.
    pub fn handle_note(&mut self, text: &str) {
        if self.notes.len() >= NOTES_KEPT {
            self.notes.pop_front();
        }
        self.notes.push_back(text.to_owned());
    }

    /// A key as the terminal sends it.
    pub fn handle_key(&mut self, key: u8) -> Asked {
        /// What Ctrl-C sends where the terminal makes no signal of it.
        const INTERRUPT: u8 = 3;
        match key {
            b'1' => self.page = Page::Rates,
            b'2' => self.page = Page::Flows,
            b'3' => self.page = Page::Times,
            b'p' => self.is_paused = !self.is_paused,
            b'q' | INTERRUPT => {
                self.is_ending = true;
                return Asked::End;
            }
            _ => return Asked::Nothing,
        }
        Asked::Nothing
    }

    /// Whether the screen stands still because it was asked to.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }
}
